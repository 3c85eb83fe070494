"""From a source to a problem: layouts, sampled pairs, and given pairs in colours."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource, pair_list
from evdist.evclus.listed import ListedPairs, is_listed, listed_blocks
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sampling import (
    SourcePairs,
    colour_pair_list,
    draw_layout,
    random_dissimilarities,
    row_dissimilarities,
    sample_pairs,
)
from evdist.evclus.sites import LocalSite
from evdist.evclus.solver import total_square, total_weight

D0 = 1.3


def delta_of(D: np.ndarray) -> np.ndarray:
    return 1 - np.exp(np.log(0.05) * (D / D0) ** 2)


@given(n=st.integers(2, 80), k=st.integers(1, 30), seed=st.integers(0, 99))
def test_sampled_pairs_are_the_distances_of_the_layout(n, k, seed):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    source = AttributeSource.of(X, "euclidean")
    layout = draw_layout(n, min(k, n - 1), seed)
    pairs = sample_pairs(source, layout, D0)
    delta = delta_of(cdist(X, X))[np.ix_(layout.order, layout.order)]
    for p in range(n):
        block = pairs.block(p, p + 1)
        mine = block.partner[: block.degree[0]]
        np.testing.assert_allclose(block.delta[: block.degree[0]], delta[p, mine], atol=1e-5)
        assert p not in mine


def test_threads_and_blocks_change_no_bit(monkeypatch):
    monkeypatch.setattr("evdist.evclus.sampling._BLOCK", 32)
    X = np.random.default_rng(0).normal(size=(300, 2))
    source, layout = AttributeSource.of(X, "euclidean"), draw_layout(300, 12, 0)
    one, three = (sample_pairs(source, layout, D0, threads) for threads in (1, 3))
    np.testing.assert_array_equal(one.delta, three.delta)
    np.testing.assert_array_equal(one.partner, three.partner)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1200, 1201, 1203])
def test_pairs_in_lists_are_swept_to_the_same_bits(n, weighted, monkeypatch):
    monkeypatch.setattr("evdist.evclus.sampling._BLOCK", 100)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)) + 4 * rng.integers(3, size=(n, 1))
    source, layout = AttributeSource.of(X, "euclidean"), draw_layout(n, 7, 0)
    made = SourcePairs.in_order(source, layout, D0)
    assert is_listed(made)
    kept, listed = sample_pairs(source, layout, D0), ListedPairs.of(made, 2)
    assert listed.delta.nbytes == 4 * kept.entries + 4 * (7 * n - kept.entries)
    for mine, theirs in zip(listed.block(30, 1100), kept.block(30, 1100), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    weight = rng.uniform(0.5, 2, n).astype(np.float32) if weighted else np.zeros(0, np.float32)
    mass = rng.dirichlet(np.full(5, 0.3), n).astype(np.float32)
    plan = Plan.of(layout.bounds)
    halves = [range(0, len(plan.pieces), 2), range(1, len(plan.pieces), 2)]
    found = []
    for pairs in (kept, listed, made):
        problem = Problem(FocalSets.simple(3), pairs, plan, weight)
        with NumbaRows(2).executor(problem, mass) as executor:
            before = executor.objective()
            change = [executor.sweep(skip) for skip in (0.0, 1e-6, 0.0)]
            found.append((before, change, executor.objective(), executor.masses()))
        states = [NumbaRows().state(problem, mass, pieces) for pieces in halves]
        for step in range(4):
            for state in states:
                state.update([step], 0.0)
            for mine, other in (states, states[::-1]):
                mine.patch(*other.moved(step)[:2])
        found[-1] += (states[0].masses(0, n), {**states[0].changes(), **states[1].changes()})
    for other in found[1:]:
        for mine, theirs in zip(found[0], other, strict=True):
            np.testing.assert_equal(mine, theirs)


def test_lists_of_pairs_are_read_by_the_run():
    X = np.random.default_rng(0).normal(size=(2000, 2))
    made = SourcePairs.in_order(AttributeSource.of(X, "euclidean"), draw_layout(2000, 6, 0), D0)
    runs = [(0, 700), (1500, 2000)]
    for block, (lo, hi) in zip(listed_blocks(made, runs), runs, strict=True):
        whole = made.block(lo, hi)
        np.testing.assert_array_equal(block.delta, whole.delta)
        np.testing.assert_array_equal(block.degree, whole.degree)
        rows = np.arange(lo, hi, dtype=np.uint32)[:, None]
        partner = block.partner[block.at[:, None] + np.arange(6)] + rows
        np.testing.assert_array_equal(partner.reshape(-1), whole.partner)


@pytest.mark.parametrize("d", [3, 100])
def test_rows_put_in_order_give_the_same_dissimilarities(d):
    X = np.random.default_rng(0).normal(size=(151, d))
    source, layout = AttributeSource.of(X, "euclidean"), draw_layout(151, 12, 0)
    arranged = SourcePairs.in_order(source, layout)
    assert (arranged.order is None) == (d == 3)  # wide rows stay where they are
    both = zip(arranged.rows(10, 90), row_dissimilarities(source, layout, 10, 90), strict=True)
    for found, expected in both:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("metric", ["euclidean", "correlation", "mahalanobis"])
def test_rows_that_were_sent_elsewhere_lie_on_cache_lines_again(metric):
    X = np.random.default_rng(4).normal(size=(40, 5))
    source = AttributeSource.of(X, metric)
    sent: list = []
    head = pickle.dumps(source, protocol=5, buffer_callback=sent.append)
    assert max(len(b.raw()) for b in sent) == X.size * 4  # without the padding
    there = pickle.loads(head, buffers=[bytes(b.raw()) for b in sent])
    assert there.table.ctypes.data % 64 == 0
    np.testing.assert_array_equal(there.table, source.table)
    assert there.fingerprint() == source.fingerprint()


def test_the_layout_depends_on_n_k_and_seed_alone():
    a, b = draw_layout(100, 10, 5), draw_layout(100, 10, 5)
    np.testing.assert_array_equal(a.order, b.order)
    assert a.graph == b.graph
    assert not np.array_equal(a.order, draw_layout(100, 10, 6).order)


def test_random_dissimilarities_are_of_different_objects():
    X = np.arange(2000.0)[:, None]
    D = random_dissimilarities(AttributeSource.of(X, "cityblock"), 0, n_pairs=2000)
    assert len(D) == 2000
    assert D.min() >= 1
    # Of two random numbers in 0..n the mean difference is n / 3.
    assert D.mean() == pytest.approx(2000 / 3, rel=0.1)


def test_few_objects_give_all_their_pairs():
    X = np.array([[0.0], [1.0], [3.0]])
    source = AttributeSource.of(X, "cityblock")
    assert sorted(random_dissimilarities(source, 0).tolist()) == [1, 2, 3]


# ---------------------------------------------------------------------- given pairs
@st.composite
def graphs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric 0/1 matrix in which no object is alone, and dissimilarities."""
    n = draw(st.integers(2, 30))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    kept = rng.uniform(size=(n, n)) < draw(st.floats(0, 1))
    kept[np.arange(n), (np.arange(n) + 1) % n] = True
    kept = (kept | kept.T) & ~np.eye(n, dtype=bool)
    D = rng.uniform(0, 3, (n, n))
    return kept, D + D.T


@given(graphs(), st.integers(0, 9))
def test_given_pairs_are_laid_out_in_colours(drawn, seed):
    kept, D = drawn
    n = len(D)
    i, j = np.nonzero(np.triu(kept))
    pairs, plan, order = colour_pair_list(pair_list(i, j, D[i, j], n), D0, seed)
    assert sorted(order) == list(range(n))
    found = np.full((n, n), np.nan)
    for p in range(n):
        block = pairs.block(p, p + 1)
        assert len(block.partner) == block.degree[0]
        found[order[p], order[block.partner]] = block.delta
    np.testing.assert_array_equal(np.isfinite(found), kept)
    np.testing.assert_allclose(found[kept], delta_of(D)[kept], atol=1e-5)
    seen: list[int] = []
    for step in range(len(plan.steps)):
        rows = np.concatenate([r for _, r in plan.rows(step)])
        together = order[rows]
        assert not kept[np.ix_(together, together)].any()
        seen += together.tolist()
    assert sorted(seen) == list(range(n))


@given(n=st.integers(3, 60), k=st.integers(1, 20), weighted=st.booleans())
def test_the_total_weight_counts_each_pair_once(n, k, weighted):
    rng = np.random.default_rng(n)
    source = AttributeSource.of(rng.normal(size=(n, 2)), "euclidean")
    layout = draw_layout(n, min(k, n - 1), 0)
    pairs = sample_pairs(source, layout, D0)
    w = rng.uniform(0.5, 2, n).astype(np.float32) if weighted else np.zeros(0, np.float32)
    problem = Problem(FocalSets.simple(2), pairs, Plan.of(layout.bounds), w)
    count = squares = 0.0
    for p in range(n):
        block = pairs.block(p, p + 1)
        used = block.partner[: block.degree[0]]
        times = (float(w[p]) * w[used].astype(float)) if weighted else np.ones(len(used))
        count += times.sum() / 2
        squares += (times * block.delta[: block.degree[0]].astype(float) ** 2).sum() / 2
    np.testing.assert_allclose(total_weight(problem, LocalSite()), count, rtol=1e-9)
    np.testing.assert_allclose(total_square(problem, LocalSite()), squares, rtol=1e-9)
