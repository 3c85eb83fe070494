"""The pair graph: symmetric, coloured, without repeats, the same from every side."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evdist.evclus.sampling import draw_layout
from evdist.kernels.graph import MIN_COLOURS, PairGraph, draw_graph, greedy_colours


def adjacency(graph: PairGraph) -> NDArray[np.int64]:
    """How often each position lists each other one, (n, n)."""
    partner, degree = graph.partners(0, graph.n)
    A = np.zeros((graph.n, graph.n), np.int64)
    for i in range(graph.n):
        np.add.at(A[i], partner[i, : degree[i]].astype(int), 1)
    return A


def colour_of(graph: PairGraph) -> NDArray[np.int64]:
    return np.repeat(np.arange(graph.colours), np.diff(graph.bounds))


@st.composite
def graphs(draw: st.DrawFn, max_n: int = 120) -> tuple[int, int, PairGraph]:
    n = draw(st.integers(2, max_n))
    k = draw(st.integers(1, n - 1))
    seed = draw(st.integers(0, 1000))
    return n, k, draw_graph(n, k, np.random.default_rng(seed))


# ---------------------------------------------------------------------- laws
@settings(max_examples=150)
@given(graphs())
def test_symmetric_without_self_or_repeats_and_properly_coloured(drawn):
    _, _, graph = drawn
    A = adjacency(graph)
    assert (A == A.T).all()
    assert A.max(initial=0) <= 1
    assert not A.diagonal().any()
    i, j = np.nonzero(A)
    colour = colour_of(graph)
    assert (colour[i] != colour[j]).all()


@settings(max_examples=150)
@given(graphs())
def test_rows_have_k_partners_less_one_for_each_empty_place(drawn):
    n, k, graph = drawn
    partner, degree = graph.partners(0, n)
    # n k must be even for a regular graph; a tiny odd one gets a partner more.
    assert graph.k in (k, k + 1)
    assert graph.k == k or n * k % 2 == 1
    empty = graph.colours * graph.size - n
    assert (degree <= graph.k).all()
    assert (degree >= graph.k - empty).all()
    assert partner.shape == (n, graph.k)
    # Places without a partner hold the row itself, at the end.
    unused = np.arange(graph.k) >= degree[:, None]
    assert (partner[unused] == np.nonzero(unused)[0]).all()


def test_few_partners_are_lost_however_n_and_k_divide():
    lost = {}
    for n in range(2, 70):
        for k in range(1, n):
            graph = draw_graph(n, k, np.random.default_rng(0))
            lost[n, k] = 1 - graph.partners(0, n)[1].mean() / graph.k
    worst = max(lost, key=lost.__getitem__)
    assert lost[worst] <= 0.05, f"(n, k) = {worst} loses {lost[worst]:.0%} of its partners"


@pytest.mark.parametrize(("n", "k"), [(1000, 100), (1000, 99), (64, 7), (800, 50)])
def test_every_row_has_exactly_k_partners_when_the_colours_divide_n(n, k):
    graph = draw_graph(n, k, np.random.default_rng(5))
    assert n % graph.colours == 0
    assert (graph.partners(0, n)[1] == k).all()


@pytest.mark.parametrize("n", [2, 3, 7, 8, 9, 16, 31, 64])
def test_k_of_n_minus_1_is_the_full_matrix(n):
    graph = draw_graph(n, n - 1, np.random.default_rng(0))
    assert (adjacency(graph) == 1 - np.eye(n, dtype=int)).all()
    assert graph.colours == n


def test_colours_are_of_almost_equal_size():
    for n in (50, 1001, 4099):
        graph = draw_graph(n, 10, np.random.default_rng(0))
        sizes = np.diff(graph.bounds)
        assert graph.bounds[0] == 0
        assert graph.bounds[-1] == n
        assert sizes.max() - sizes.min() <= 1
        assert sizes.max() == graph.size


@given(graphs(), st.data())
def test_any_rows_are_known_without_the_others(drawn, data):
    n, _, graph = drawn
    lo = data.draw(st.integers(0, n))
    hi = data.draw(st.integers(lo, n))
    partner, degree = graph.partners(lo, hi)
    everyone, every_degree = graph.partners(0, n)
    np.testing.assert_array_equal(partner, everyone[lo:hi])
    np.testing.assert_array_equal(degree, every_degree[lo:hi])


@given(graphs(), st.data())
def test_rows_may_be_asked_for_in_any_order(drawn, data):
    n, _, graph = drawn
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=20)), np.int64)
    partner, degree = graph.partners_of(rows)
    everyone, every_degree = graph.partners(0, n)
    np.testing.assert_array_equal(partner, everyone[rows])
    np.testing.assert_array_equal(degree, every_degree[rows])


@given(st.integers(2, 500), st.integers(0, 5), st.data())
def test_the_same_seed_draws_the_same_graph(n, seed, data):
    k = data.draw(st.integers(1, n - 1))
    one, two = (draw_graph(n, k, np.random.default_rng(seed)) for _ in range(2))
    assert one == two


def test_seeds_draw_different_graphs():
    drawn = {draw_graph(1000, 20, np.random.default_rng(seed)).shifts for seed in range(20)}
    assert len(drawn) == 20


def test_a_million_positions_need_no_more_than_the_fewest_colours():
    graph = draw_graph(1_000_000, 100, np.random.default_rng(0))
    assert graph.colours == MIN_COLOURS
    partner, degree = graph.partners(499_990, 500_010)
    assert (degree == 100).all()
    for row, i in zip(partner, range(499_990, 500_010), strict=True):
        assert len(set(row.tolist())) == 100
        back, _ = graph.partners(int(row[7]), int(row[7]) + 1)
        assert i in back[0]


@pytest.mark.parametrize("k", [0, -1, 10, 11])
def test_k_out_of_range_is_refused(k):
    with pytest.raises(ValueError, match=rf"10 objects can keep 1 to 9 partners, got k = {k}"):
        draw_graph(10, k, np.random.default_rng(0))


# ---------------------------------------------------------------------- chance
@pytest.mark.parametrize(("n", "k"), [(12, 4), (13, 3), (16, 6)])
def test_every_pair_of_objects_is_equally_likely(n, k):
    rounds = 2000
    kept = np.zeros((n, n))
    for seed in range(rounds):
        layout = draw_layout(n, k, seed)
        A = adjacency(layout.graph)
        kept[np.ix_(layout.order, layout.order)] += A
    counts = kept[np.triu_indices(n, 1)]
    p = counts.mean() / rounds
    # Chi-square with about n (n - 1) / 2 degrees of freedom; the seeds are fixed.
    chi2 = ((counts - rounds * p) ** 2).sum() / (rounds * p * (1 - p))
    freedom = len(counts) - 1
    assert abs(chi2 - freedom) < 5 * np.sqrt(2 * freedom)
    assert np.abs(counts - rounds * p).max() < 5 * np.sqrt(rounds * p * (1 - p))


@pytest.mark.parametrize(("n", "k"), [(80, 4), (80, 30)], ids=["few drawn", "most drawn"])
def test_every_offset_and_shift_is_equally_likely(n, k):
    # Few are drawn by rejection, many from the full list.
    rounds = 2000
    rng = np.random.default_rng(3)
    counts: Counter[tuple[int, int]] = Counter()
    for _ in range(rounds):
        graph = draw_graph(n, k, rng)
        counts.update(zip(graph.offsets, graph.shifts, strict=True))
    B, s = graph.colours, graph.size
    two_way = [
        (o, r) for o in range(1, B) for r in range(s) if ((o * 2) % B, (r * 2) % s) != (0, 0)
    ]
    p = k / len(two_way)
    assert set(counts) <= set(two_way)
    deviation = [abs(counts[pair] - rounds * p) for pair in two_way]
    assert max(deviation) < 5 * np.sqrt(rounds * p * (1 - p))


# ---------------------------------------------------------------------- given graphs
@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 100))
def test_greedy_colours_tell_neighbours_apart(n, density, seed):
    rng = np.random.default_rng(seed)
    A = np.triu(rng.random((n, n)) < density, 1)
    A |= A.T
    first = np.concatenate([[0], np.cumsum(A.sum(axis=1))])
    other = np.nonzero(A)[1]
    colour = greedy_colours(first, other, rng.permutation(n))
    i, j = np.nonzero(A)
    assert (colour[i] != colour[j]).all()
    assert (colour >= 0).all()
    assert colour.max() <= A.sum(axis=1).max()
    assert set(colour) == set(range(colour.max() + 1))


def test_greedy_colours_leave_rows_that_are_not_visited_at_minus_one():
    # A path 0 - 1 - 2 - 3; row 1 is not visited, so it does not count either.
    first, other = np.array([0, 1, 3, 5, 6]), np.array([1, 0, 2, 1, 3, 2])
    assert greedy_colours(first, other, np.array([0, 2, 3])).tolist() == [0, -1, 0, 1]


@given(n=st.integers(2, 200), k=st.integers(1, 60), seed=st.integers(0, 5))
def test_entries_is_the_sum_of_the_degrees(n, k, seed):
    graph = draw_graph(n, min(k, n - 1), np.random.default_rng(seed))
    assert graph.entries == graph.partners(0, n)[1].sum()
