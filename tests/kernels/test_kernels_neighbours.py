"""The search for nearest rows: what it finds, and that it depends on nothing but rows and seed."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from evdist.kernels.neighbours import EXACT, LARGEST, NeighbourIndex


def blobs(n, d, seed=0, centres=20):
    rng = np.random.default_rng(seed)
    middle = rng.normal(0, 3, (centres, d))
    return (middle[rng.integers(centres, size=n)] + rng.normal(size=(n, d))).astype(np.float32)


def in_rows(index, places):
    """Places of the table of cells as numbers of the rows given, in the order of these."""
    found = np.empty_like(places)
    found[index.order] = index.order[places]
    return found


def test_few_rows_are_all_compared():
    X = blobs(700, 6)
    index = NeighbourIndex.build(X, 0)
    places, squared = index.nearest(10)
    far, near = NearestNeighbors(n_neighbors=10).fit(X).kneighbors()
    assert index.cells == 1
    np.testing.assert_array_equal(in_rows(index, places), near)
    np.testing.assert_allclose(np.sqrt(squared), far[index.order], rtol=1e-5)


def test_of_many_rows_nearly_all_neighbours_are_found():
    X = blobs(2 * EXACT, 20)
    index = NeighbourIndex.build(X, 0, threads=2)
    places, squared = index.nearest(15, threads=2)
    near = NearestNeighbors(n_neighbors=16, algorithm="brute").fit(X).kneighbors(X[:500])[1][:, 1:]
    found = in_rows(index, places)[:500]
    assert index.cells > 1
    assert np.mean([np.isin(a, b).mean() for a, b in zip(near, found, strict=True)]) > 0.9
    assert (np.diff(squared, axis=1) >= 0).all()


@pytest.mark.parametrize("n", [EXACT, EXACT + 1])
def test_same_bits_for_any_number_of_threads(n):
    X = blobs(n, 8)
    found = [NeighbourIndex.build(X, 3, threads).nearest(5, threads) for threads in (1, 2, 3)]
    for places, squared in found[1:]:
        np.testing.assert_array_equal(places, found[0][0])
        np.testing.assert_array_equal(squared, found[0][1])


def test_nobody_is_its_own_neighbour_not_even_among_copies():
    X = np.repeat(blobs(EXACT // 2, 3), 4, axis=0)
    places, squared = NeighbourIndex.build(X, 0, threads=2).nearest(6, threads=2)
    assert (places != np.arange(len(X))[:, None]).all()
    assert (places >= 0).all()
    assert (squared[:, :3] == 0).mean() > 0.99


def test_rows_that_are_all_the_same_have_neighbours_too():
    X = np.ones((EXACT + 500, 4), np.float32)
    index = NeighbourIndex.build(X, 0)
    places, squared = index.nearest(4)
    assert np.diff(index.first).max() <= LARGEST
    assert (places >= 0).all()
    assert (squared == 0).all()


def test_new_rows_find_themselves_among_the_fitted():
    X = blobs(EXACT + 100, 12)
    index = NeighbourIndex.build(X, 0, threads=2)
    places, squared = index.search(X[:300], 3, threads=2)
    np.testing.assert_array_equal(index.order[places[:, 0]], np.arange(300))
    np.testing.assert_allclose(squared[:, 0], 0, atol=1e-9)


def test_cells_with_too_few_rows_nearby_do_not_leave_a_row_without_neighbours():
    rng = np.random.default_rng(0)
    # Most rows are copies of a few: their cells are cut, the others' are tiny.
    X = np.vstack([np.repeat(rng.normal(size=(4, 5)), 3000, axis=0), rng.normal(size=(50, 5)) * 50])
    places, _ = NeighbourIndex.build(X, 0, threads=2).nearest(30, threads=2)
    assert (places >= 0).all()
