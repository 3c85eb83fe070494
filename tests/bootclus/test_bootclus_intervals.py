"""Percentile intervals of pairs: the quantiles, R's bounds, and blocks that do not matter."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from bootclus.bootclus_cases import from_covariances, reference, three_gaussians
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evdist.bootclus import intervals as module
from evdist.bootclus.interval_kernel import interval_rows, mark_live, ranks
from evdist.bootclus.intervals import MIN_BAND, RING, IntervalPairs, draw_band, some_intervals
from evdist.bootclus.replicates import GaussianReplicates, ModelReplicates
from evdist.kernels.graph import MIN_COLOURS
from evdist.mixture import fit_em, from_posterior

#: Posteriors and their products are rounded to float32.
SINGLE = 3e-7


def bounds_of(post: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of all pairs of the rows of post (w, c, B), through the kernel."""
    w, c, B = post.shape
    post = np.ascontiguousarray(post, dtype=np.float32)
    live = np.zeros((w, c), bool)
    mark_live(post, live)
    everyone = np.tile(np.arange(w), (w, 1))
    target = np.empty((w, 2 * w), np.float32)
    interval_rows(
        post, live, np.arange(w), everyone, np.full(w, w), *ranks(B, confidence), target
    )  # fmt: skip
    return target[:, :w], 1.0 - target[:, w:]


def quantiles_of(post: np.ndarray, confidence: float) -> np.ndarray:
    P = np.einsum("ikb,jkb->ijb", post, post)
    return np.quantile(P, [(1 - confidence) / 2, (1 + confidence) / 2], axis=2)


@given(
    st.integers(1, 40), st.integers(1, 4), st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.999]),
    st.sampled_from([0.02, 0.3, 5.0]), st.integers(0, 99),
)  # fmt: skip
def test_bounds_are_the_quantiles_of_numpy_and_r(B, c, confidence, spread, seed):
    # A small spread gives probabilities of exactly 0 and 1, and so many ties.
    post = np.random.default_rng(seed).dirichlet(np.full(c, spread), (6, B)).transpose(0, 2, 1)
    lower, upper = bounds_of(post, confidence)
    expected = quantiles_of(post, confidence)
    np.testing.assert_allclose(lower, expected[0], atol=SINGLE)
    np.testing.assert_allclose(upper, expected[1], atol=SINGLE)
    assert (lower <= upper + SINGLE).all()


@given(arrays(np.float32, (1, 1, 12), elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])))
def test_repeated_values_are_counted_as_often_as_they_stand_there(values):
    lower, upper = bounds_of(values, 0.7)
    expected = quantiles_of(values.astype(float), 0.7)
    np.testing.assert_allclose([lower[0, 0], upper[0, 0]], expected[:, 0, 0], atol=SINGLE)


def test_one_replicate_gives_its_own_value_as_both_bounds():
    lower, upper = bounds_of(np.array([[[0.3], [0.7]]]), 0.9)
    np.testing.assert_allclose([lower[0, 0], upper[0, 0]], 0.58, atol=SINGLE)


def test_the_intervals_of_rs_replicates_are_those_of_r(shared):
    r = reference(shared, "bootclus_iris_replicates.json.gz")
    iris = np.loadtxt(shared / "data" / "iris.csv", delimiter=",", skiprows=1, usecols=range(4))
    replicates = GaussianReplicates.of([
        from_covariances(weights, np.transpose(means), np.array(covariances))
        for weights, means, covariances in zip(r["pro"], r["mean"], r["variance"], strict=True)
    ])  # fmt: skip
    layout = draw_band(150, 149, 0)
    pairs = IntervalPairs(iris[layout.order], layout.graph, replicates, 0.9)
    found = some_intervals(pairs.in_memory(), layout.order)
    assert len(found) == 150 * 149 // 2
    lower, upper = np.array(r["CI_lower"]), np.array(r["CI_upper"])
    np.testing.assert_allclose(found.lower, lower[found.i, found.j], atol=SINGLE)
    np.testing.assert_allclose(found.upper, upper[found.i, found.j], atol=SINGLE)


# ---------------------------------------------------------------------- large n
@pytest.fixture(scope="module")
def replicates() -> GaussianReplicates:
    X, y = three_gaussians(300)
    start = from_posterior(X, np.eye(3)[y], "VVV")
    rng = np.random.default_rng(1)
    fits = [fit_em(X, start, sample_weight=rng.multinomial(300, np.full(300, 1 / 300)))
            for _ in range(6)]  # fmt: skip
    return GaussianReplicates.of([fit.parameters for fit in fits])


#: The fewest objects whose partners lie in a band.
N_BAND = MIN_COLOURS * RING * MIN_BAND + 3


@pytest.mark.parametrize("k", [4, 5])
def test_the_band_is_symmetric_coloured_and_narrow(k):
    graph = draw_band(N_BAND, k, seed=3).graph
    partner, degree = graph.partners(0, N_BAND)
    assert degree.max() == k
    assert degree.sum() == graph.entries
    kept = [(i, j) for i in range(N_BAND) for j in partner[i, : degree[i]].tolist()]
    assert len(kept) == len(set(kept))
    assert {(j, i) for i, j in kept} == set(kept)
    colour = np.searchsorted(graph.bounds, np.arange(N_BAND), side="right") - 1
    i, j = np.array(kept).T
    assert (colour[i] != colour[j]).all()
    place = np.arange(N_BAND) - graph.bounds[colour]
    apart = np.abs(place[i] - place[j])
    assert np.minimum(apart, graph.size - apart).max() <= MIN_BAND


def test_two_seeds_draw_different_bands_and_one_seed_the_same():
    a, b, c = (draw_band(N_BAND, 6, seed).graph for seed in (0, 0, 1))
    assert a == b != c


def test_a_smaller_set_has_partners_anywhere_and_a_small_one_all():
    layout = draw_band(30, 29, 0)
    assert layout.graph.entries == 30 * 29
    wide = draw_band(N_BAND - 100, 6, 0).graph
    assert max(min(r, wide.size - r) for r in wide.shifts) > 2 * MIN_BAND


@pytest.fixture(scope="module")
def pairs(replicates) -> IntervalPairs:
    X, _ = three_gaussians(N_BAND, seed=5)
    return IntervalPairs(X, draw_band(N_BAND, 5, 0).graph, replicates, 0.9)


@pytest.fixture(scope="module")
def whole(pairs):
    assert pairs.banded
    return pairs.in_memory()


class TestWindows:
    def test_threads_make_no_difference(self, pairs, whole):
        again = pairs.in_memory(n_threads=3)
        for name in ("first", "degree", "partner", "delta"):
            np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))

    def test_any_block_has_the_bits_of_the_whole(self, pairs, whole):
        for lo, hi in ((0, 100), (8000, N_BAND), (2040, 2060), (5, 6)):
            some, expected = pairs.block(lo, hi), whole.block(lo, hi)
            assert some.row0 == expected.row0 == lo
            for a, b in zip(some[1:], expected[1:], strict=True):
                np.testing.assert_array_equal(a, b)

    def test_a_sent_copy_starts_with_an_empty_window(self, pairs, whole):
        pairs.block(0, 10)
        sent = pickle.dumps(pairs)
        assert len(sent) < 3 * pairs.X.nbytes
        block = pickle.loads(sent).block(100, 200)
        np.testing.assert_array_equal(block.delta, whole.block(100, 200).delta)

    def test_a_window_that_holds_no_more_than_it_needs_gives_the_same(
        self, pairs, whole, monkeypatch
    ):
        monkeypatch.setattr(module, "WINDOW_BYTES", 0)
        tight = IntervalPairs(pairs.X, pairs.graph, pairs.replicates, pairs.confidence)
        np.testing.assert_array_equal(tight.in_memory().delta, whole.delta)
        held = module._Window(pairs.X, pairs.replicates)
        tight._fill(held, 0, 200, np.empty((200, 10), np.uint32), np.empty((200, 10), np.float32))
        assert len(held.post) < N_BAND // 2

    def test_both_sides_of_a_pair_have_the_same_bounds(self, whole):
        n, k = whole.n, 5
        bound = {}
        for i in range(n):
            a, g = whole.first[i], whole.degree[i] // 2
            for t in range(g):
                j = int(whole.partner[a + t])
                assert whole.partner[a + g + t] == j + n
                bound[i, j] = whole.delta[a + t], whole.delta[a + g + t]
        assert all(bound[i, j] == bound[j, i] for i, j in bound)
        assert len(bound) == whole.entries // 2 <= n * k

    def test_the_sample_for_people_holds_each_pair_once(self, pairs, whole, monkeypatch):
        order = np.arange(N_BAND, dtype=np.uint32)
        full = some_intervals(whole, order)
        assert len(full) == pairs.n_pairs
        monkeypatch.setattr(module, "MAX_INTERVALS", 1000)
        some = some_intervals(whole, order)
        assert 500 < len(some) <= 1000
        known = {(int(i), int(j)): b for i, j, b in zip(full.i, full.j, full.upper, strict=True)}
        for i, j, upper in zip(some.i.tolist(), some.j.tolist(), some.upper, strict=True):
            assert known[min(i, j), max(i, j)] == upper
        assert len({frozenset(p) for p in zip(some.i, some.j, strict=True)}) == len(some)


def test_any_model_with_probabilities_gives_the_intervals_of_the_same_gaussians(replicates):
    class Plain:
        def __init__(self, parameters):
            self.parameters = parameters

        def predict_proba(self, X):
            return self.parameters.posterior(X)

    names = replicates.arrays
    singles = [from_covariances(w, m, c) for w, m, c in zip(
        replicates.weights, replicates.means,
        (replicates.orientations * (replicates.volumes[..., None] * replicates.shapes)[:, :, None])
        @ np.swapaxes(replicates.orientations, -1, -2), strict=True)]  # fmt: skip
    assert set(names) == {"weights", "means", "volumes", "shapes", "orientations"}
    models = ModelReplicates(tuple(Plain(p) for p in singles), 3)
    X, _ = three_gaussians(50, seed=9)
    layout = draw_band(50, 49, 0)
    a, b = (IntervalPairs(X, layout.graph, r, 0.9).in_memory() for r in (replicates, models))
    np.testing.assert_allclose(a.delta, b.delta, atol=1e-6)
