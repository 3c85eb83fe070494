"""Many clusters: rows as lists of clusters, near partners, a preliminary partition.

Laws: sparse and dense rows have the same minimiser; the objective never rises; the same bits for
threads, workers and chunks. And what users see: accuracy, prediction, a model on disk.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus import begin, landmarks
from evdist.evclus.d0 import d0_of_groups
from evdist.evclus.groups import SPARSE_FROM, find_groups, likelier, near_share
from evdist.evclus.means import CELLS_FROM, Means
from evdist.evclus.problem import MemoryPairs, Plan, Problem
from evdist.evclus.rows import numba as rows_numba
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.rows.sparse_loss import sparse_objective
from evdist.evclus.rows.sparse_sweep import update_sparse
from evdist.evclus.rows.sweep import block_objective, update_rows
from evdist.evclus.sampling import near_layout
from evdist.kernels.graph import PairGraph, draw_graph
from evdist.kernels.grid import project_rows, quantise
from evdist.kernels.slots import joined, split
from evdist.kernels.sparse_rows import SLOTS, WORDS, decode, encode, full_rows, ids_of, labelled
from evdist.kernels.vector import aligned_zeros
from evdist.partition.sparse import SparseMasses


def gaussians(c: int, n: int, seed: int = 0, d: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    return (3 * rng.normal(size=(c, d)))[y] + rng.normal(size=(n, d)), y


def on_grid(mass: np.ndarray) -> np.ndarray:
    out = mass.astype(float)
    for row in out:
        quantise(row, len(row))
    return out.astype(np.float32)


def random_problem(c: int, n: int, k: int, seed: int) -> tuple[Problem, Problem, np.ndarray]:
    """The same random pairs for dense and for sparse rows, and a start."""
    rng = np.random.default_rng(seed)
    graph = draw_graph(n, k, rng)
    partner, degree = graph.partners(0, n)
    # Dissimilarities of labels, disturbed, the same for both rows of a pair.
    label = rng.integers(c, size=n)
    noise = rng.random((n, n)) * 0.3
    apart = np.abs((label[:, None] != label) * 1.0 - noise - noise.T).clip(0, 1)
    delta = apart[np.arange(n)[:, None], partner].astype(np.float32)
    first = np.arange(n, dtype=np.int64) * partner.shape[1]
    pairs = MemoryPairs(first, degree, partner.ravel(), delta.ravel())
    sets, plan = FocalSets.simple(c), Plan.of(graph.bounds)
    mass = rng.dirichlet(np.full(c + 2, 0.1), n)
    mass[np.arange(n), 1 + label] += 0.5
    start = on_grid(mass / mass.sum(axis=1, keepdims=True))
    return Problem(sets, pairs, plan), Problem(sets, pairs, plan, sparse=True), start


# ---------------------------------------------------------------------- rows
@settings(max_examples=40, deadline=None)
@given(c=st.integers(2, 18), n=st.integers(30, 90), seed=st.integers(0, 10**6))
def test_sparse_and_dense_rows_have_the_same_minimiser(c: int, n: int, seed: int) -> None:
    """From the same masses the update of one row brings the same change of the objective."""
    dense, _, start = random_problem(c, n, 12, seed)
    block, none = dense.pairs.block(0, n), np.zeros(0, np.float32)
    P = dense.projection
    table = aligned_zeros(n, P.shape[2])
    project_rows(start, P, table, 0, n)
    J = block_objective(start, table, block, none, dense.all_links, np.array([0, n]))[0, 0]
    T = split(encode(start))
    assert sparse_objective(T, ids_of(T), block, none, 0, n) == pytest.approx(J, rel=1e-12)
    for row in (0, n // 2, n - 1):
        one, other, rows = np.zeros(n), np.zeros(n), np.array([row])
        M, tables = start.copy(), table.copy()
        update_rows(M, tables, P, block, none, dense.all_links, rows, one)
        U = T.copy()
        update_sparse(U, ids_of(U), c, block, none, rows, other)
        assert other[row] == pytest.approx(one[row], abs=1e-7)


@given(c=st.integers(1, 40), n=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_rows_are_split_into_lines_and_joined(c: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = encode(on_grid(rng.dirichlet(np.full(c + 2, 0.3), n)))
    T, some = split(rows), rng.integers(n, size=n)
    for chosen in (slice(None), slice(n // 2, n), some, some[:0]):
        np.testing.assert_array_equal(ids_of(joined(T, chosen)), ids_of(rows[chosen]))


@settings(max_examples=25, deadline=None)
@given(c=st.integers(2, 30), weighted=st.booleans(), seed=st.integers(0, 10**6))
def test_clusters_of_little_promise_do_not_enter(c: int, weighted: bool, seed: int) -> None:
    """A row takes another cluster in where its gradient is far enough below, and only there."""
    rng = np.random.default_rng(seed)
    n, k, promise = 60, 12, 0.02
    dense, _, start = random_problem(c, n, k, seed)
    block = dense.pairs.block(0, n)
    weight = rng.uniform(0.5, 2, n if weighted else 0).astype(np.float32)
    T = split(encode(start))
    for row in (0, n - 1):
        U, brought = [T.copy() for _ in range(3)], np.zeros((3, n))
        for V, change, at_least in zip(U, brought, (0.0, promise, np.inf), strict=True):
            update_sparse(V, ids_of(V), c, block, weight, np.array([row]), change, 0.0, at_least)
        exact, enough, own = brought[:, row]
        assert exact - 1e-9 <= enough <= own + 1e-9 <= 1e-9
        before, found, last = (decode(joined(V, [row]), c)[0] for V in (T, U[1], U[2]))
        assert not last[1:-1][before[1:-1] == 0].any()
        # kappa = m' C m_j; the gradient of set A is sum_j w_j (kappa_j - delta_j) C(A, j).
        mine = slice(block.first[row], block.first[row] + block.degree[row])
        others = block.partner[mine]
        C = dense.focal_sets.C @ start[others].T.astype(float)
        w = weight[row] * weight[others] if weighted else np.ones(len(others))
        gradient = (C @ (w * (last @ C - block.delta[mine])))[1:-1]
        promised = last @ C @ (w * (last @ C - block.delta[mine])) - gradient - promise * w.sum()
        others = before[1:-1] == 0
        assert (promised[others & (found[1:-1] > 0)] > -1e-4).all()
        if (promised[others] > 1e-2).any():
            assert enough < own


@settings(max_examples=25, deadline=None)
@given(c=st.integers(2, 60), promise=st.sampled_from([0.0, 1e-3, 0.05]), seed=st.integers(0, 10**6))
def test_the_objective_of_sparse_rows_never_rises(c: int, promise: float, seed: int) -> None:
    _, sparse, start = random_problem(c, 60, 16, seed)
    sparse = replace(sparse, promise=promise)
    with NumbaRows().executor(sparse, encode(start)) as executor:
        J = executor.objective()[0]
        for skip in (0.0, 1e-9, 1e-9, 0.0):
            change = executor.sweep(skip)
            now = executor.objective()[0]
            assert change <= 0.0
            assert now == pytest.approx(J + change, abs=1e-9)
            J = now


@settings(max_examples=25, deadline=None)
@given(c=st.integers(10, 40), seed=st.integers(0, 10**6))
def test_no_mass_is_lost_where_conflicts_are_exact(c: int, seed: int) -> None:
    """Far objects that are sure have kappa = delta = 1: sums of their clusters are zero."""
    _, sparse, start = random_problem(c, 90, 40, seed)
    rng = np.random.default_rng(seed)
    delta = sparse.pairs.delta
    saturated = replace(sparse, pairs=replace(sparse.pairs, delta=np.where(delta > 0.6, 1, delta)))
    sure = rng.random(90) < 0.7
    start[sure] = np.eye(c + 2, dtype=np.float32)[1 + rng.integers(c, size=sure.sum())]
    with NumbaRows().executor(saturated, encode(start)) as executor:
        for _ in range(4):
            before = executor.objective()[0]
            change = executor.sweep()
            assert (decode(executor.masses(), c).sum(axis=1, dtype=float) == 1.0).all()
            assert executor.objective()[0] == pytest.approx(before + change, abs=1e-9)


@given(c=st.integers(1, 40), n=st.integers(1, 20), seed=st.integers(0, 10**6))
def test_encoded_rows_are_the_masses(c: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mass = np.where(rng.random((n, c + 2)) < min(1.0, 10 / c), rng.random((n, c + 2)), 0.0)
    mass[:, 0] += 0.1
    mass = on_grid(mass / mass.sum(axis=1, keepdims=True))
    named = (mass[:, 1:-1] > 0).sum(axis=1)
    back = decode(encode(mass), c)
    few = named <= SLOTS
    assert np.array_equal(back[few], mass[few])
    assert np.allclose(back.sum(axis=1), 1.0)
    assert not np.isnan(encode(mass)).any()
    assert full_rows(encode(mass)) == (named >= SLOTS).sum()


# ---------------------------------------------------------------------- pairs
@settings(max_examples=20, deadline=None)
@given(
    n=st.integers(400, 900),
    near=st.sampled_from([10, 20]),
    width=st.sampled_from([1, 2, 20]),
    seed=st.integers(0, 10**6),
)
def test_a_graph_with_near_pairs_is_symmetric_and_coloured(
    n: int, near: int, width: int, seed: int
) -> None:
    graph = PairGraph.draw_near(n, 40, near, width, seed, np.random.default_rng(seed))
    assert graph.k == 40
    partner, degree = graph.partners(0, n)
    assert degree.sum() == graph.entries
    kept = np.arange(graph.k) < degree[:, None]
    i, j = np.repeat(np.arange(n), degree), partner[kept]
    count = np.zeros((n, n), int)
    np.add.at(count, (i, j), 1)
    assert np.array_equal(count, count.T)
    colour = np.searchsorted(graph.bounds, np.arange(n), side="right") - 1
    assert (colour[i] != colour[j]).all()
    some, part = np.arange(0, n, 7), graph.partners_of(np.arange(0, n, 7))[0]
    assert np.array_equal(part, partner[some])


def test_near_partners_are_of_the_own_group_and_the_next() -> None:
    labels = np.random.default_rng(0).integers(50, size=20_000)
    layout = near_layout(labels, 100, 0.5, seed=0)
    partner, _ = layout.graph.partners(0, 20_000)
    apart = np.abs(labels[layout.order][partner] - labels[layout.order][:, None])
    close, far = apart[:, : layout.graph.near], apart[:, layout.graph.near :]
    assert layout.graph.near == 50
    assert 0.4 < (close == 0).mean() < 0.6
    assert (np.minimum(close, 50 - close) <= 2).all()  # the last group is next to the first
    assert (far == 0).mean() < 0.04


def test_near_partners_in_small_groups_count_several_times() -> None:
    labels = np.repeat(np.arange(100), 20)
    layout = near_layout(labels, 100, 0.5, seed=0)
    partner, degree = layout.graph.partners(0, 2000)
    assert (degree == 100).all()
    label = labels[layout.order]
    near = layout.graph.near
    apart = np.abs(label[partner[:, :near]] - label[:, None])
    assert near == 50
    assert (np.minimum(apart, 100 - apart) <= 1).all()
    assert 0.4 < (apart == 0).mean() < 0.6
    # Five places a colour, three other colours: the own group has fifteen partners to offer.
    own = [len(set(row[a == 0])) for row, a in zip(partner[:, :near], apart, strict=True)]
    assert max(own) <= 15
    assert np.mean(own) > 12


def test_many_small_clusters_are_found() -> None:
    rng = np.random.default_rng(11)
    y = np.repeat(np.arange(100), 20)
    X = (4 * rng.normal(size=(100, 6)))[y] + rng.normal(size=(2000, 6))
    found = EVCLUS(100, metric="euclidean", random_state=0).fit(X).labels_
    peer = KMeans(100, n_init=10, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, found) >= adjusted_rand_score(y, peer) - 0.02


def test_few_clusters_have_uniform_partners() -> None:
    assert near_share(100, 4) == near_share(20, 4) == near_share(200, 20) == 0.0
    assert near_share(100, 50) > 0.0


# ---------------------------------------------------------------------- the fit
@pytest.fixture(scope="module")
def fitted() -> tuple[np.ndarray, np.ndarray, EVCLUS]:
    X, y = gaussians(40, 3000)
    return X, y, EVCLUS(40, metric="euclidean", random_state=0, n_jobs=1).fit(X)


def test_forty_clusters_are_found(fitted: tuple[np.ndarray, np.ndarray, EVCLUS]) -> None:
    X, y, model = fitted
    peer = KMeans(40, n_init=10, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, model.labels_) >= adjusted_rand_score(y, peer) - 0.01
    history = np.array(model.history_)
    assert (np.diff(history) <= 0).all()
    assert isinstance(model.credal_partition_.mass, SparseMasses)


def test_threads_do_not_change_a_bit(fitted: tuple[np.ndarray, np.ndarray, EVCLUS]) -> None:
    X, _, model = fitted
    two = EVCLUS(40, metric="euclidean", random_state=0, n_jobs=2).fit(X)
    assert two.credal_partition_ == model.credal_partition_
    assert two.objective_ == model.objective_


def test_workers_do_not_change_a_bit(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], two_workers: object
) -> None:
    X, _, model = fitted
    there = EVCLUS(40, metric="euclidean", random_state=0).fit(X, client=two_workers)
    assert there.credal_partition_ == model.credal_partition_


@pytest.mark.parametrize("place", ["one thread", "two threads", "workers"])
@pytest.mark.parametrize("kind", ["lists", "masses"])
def test_a_fit_goes_on_from_given_masses(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], two_workers: object, place: str, kind: str
) -> None:
    """With other pairs, near ones among them; the clusters keep their numbers."""
    X, y, model = fitted
    known = model.credal_partition_
    first = known if kind == "lists" else np.asarray(known.mass)
    again = EVCLUS(
        40, metric="euclidean", init=first, random_state=1, n_jobs=2 if "two" in place else 1
    )
    again.fit(X, client=two_workers if place == "workers" else None)
    assert isinstance(again.credal_partition_.mass, SparseMasses)
    assert adjusted_rand_score(y, again.labels_) >= adjusted_rand_score(y, model.labels_) - 0.01
    assert (again.labels_ == model.labels_).mean() > 0.99
    assert (np.diff(again.history_) <= 0).all()
    alone = EVCLUS(40, metric="euclidean", init=known, random_state=1, n_jobs=1).fit(X)
    assert again.credal_partition_ == alone.credal_partition_
    assert again.history_ == alone.history_


def test_only_masses_are_those_that_were_given(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS],
) -> None:
    X, _, model = fitted
    again = EVCLUS(
        40, metric="euclidean", init=model.credal_partition_, random_state=0, n_jobs=1
    ).fit(X)
    assert again.d0_ == model.d0_
    for mine, theirs in zip(again.shepard_pairs(), model.shepard_pairs(), strict=True):
        assert mine.shape == theirs.shape
    np.testing.assert_array_equal(again.shepard_pairs()[0], model.shepard_pairs()[0])
    assert again.objective_ <= model.objective_


def test_given_lists_are_made_dense_where_rows_are(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS],
) -> None:
    X, y, model = fitted
    some = EVCLUS(40, metric="euclidean", init=model.credal_partition_, random_state=0, max_iter=3)
    with pytest.warns(ConvergenceWarning):
        some.fit(X, must_link=[(0, int(np.flatnonzero(y == y[0])[1]))])
    assert isinstance(some.credal_partition_.mass, np.ndarray)
    assert (some.labels_ == model.labels_).mean() > 0.98


def test_the_memory_that_is_told_is_that_of_the_rows() -> None:
    """From random masses rows are of all clusters; from given ones they are lists."""
    X, y = gaussians(400, 3000)
    few = {"memory_limit": 10_000_000, "max_iter": 1, "partitions": "never", "random_state": 0}
    with pytest.raises(MemoryError, match=r"about 22\.2 MB .* 19\.6 MB for masses"):
        EVCLUS(400, metric="euclidean", init="random", **few).fit(X)
    first = CredalPartition(SparseMasses(labelled(y, 0.9), 400), FocalSets.simple(400))
    with pytest.warns(ConvergenceWarning):
        assert EVCLUS(400, metric="euclidean", init=first, **few).fit(X).n_iter_ == 1


@pytest.mark.parametrize("at_once", [1, 150, 1 << 20])
def test_new_objects_meet_the_clusters_of_the_nearest_middles(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], monkeypatch, at_once: int
) -> None:
    """However many are looked at at once; of equally near ones the first."""
    X, _, model = fitted
    monkeypatch.setattr(landmarks, "_AT_ONCE", at_once)
    known = model._landmarks
    assert known is not None
    assert known.members is not None
    placing = landmarks.Placing(known, X[:90], np.arange(5), spread=False)
    middles = X[known.objects[known.members[:, 0]]]
    far = np.linalg.norm(X[10:40, None] - middles, axis=2)
    near = placing.near(10, 40)
    np.testing.assert_array_equal(near, np.argsort(far, axis=1, kind="stable")[:, :3])
    chosen = placing.chosen(10, 40)
    np.testing.assert_array_equal(chosen[:, 0], known.members[near[:, 0], 0])
    np.testing.assert_array_equal(placing.label(chosen), known.labels()[chosen[:, 0]])
    twice = replace(known, members=np.repeat(known.members, 2, axis=0))
    first = landmarks.Placing(twice, X[:90], np.arange(5), spread=False).near(10, 40)[:, :2]
    np.testing.assert_array_equal(first, 2 * near[:, :1] + [0, 1])


def test_a_stored_fit_has_the_same_bits(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], tmp_path: object
) -> None:
    X, _, model = fitted
    stored = EVCLUS(
        40, metric="euclidean", random_state=0, checkpoint=f"{tmp_path}/job", max_iter=6
    )
    with pytest.warns(ConvergenceWarning):
        stored.sample_pairs(X).fit(X)
    resumed = EVCLUS(40, metric="euclidean", random_state=0, checkpoint=f"{tmp_path}/job").fit(X)
    assert resumed.credal_partition_ == model.credal_partition_


@pytest.mark.parametrize("other", ["nothing", "data", "seed", "number"])
def test_groups_that_the_pairs_were_drawn_from_are_found_once(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], tmp_path: Path, monkeypatch, other: str
) -> None:
    X, _, model = fitted
    found: list[int] = []

    def counted(source: Any, c: int, *rest: Any) -> Any:
        found.append(c)
        return find_groups(source, c, *rest)

    for module in (begin, rows_numba):
        monkeypatch.setattr(module, "find_groups", counted)
    stored = EVCLUS(
        40, metric="euclidean", random_state=0, checkpoint=f"{tmp_path}/job"
    ).sample_pairs(X)
    if other == "nothing":
        assert stored.fit(X).credal_partition_ == model.credal_partition_
        assert found == [40]
    else:  # another fit than that which was prepared finds its own
        changed = {"seed": {"random_state": 1}, "number": {"n_clusters": 41}}.get(other, {})
        stored.set_params(checkpoint=None, **changed)
        stored.fit(X[::2] if other == "data" else X)
        assert found == [40, changed.get("n_clusters", 40)]
    found.clear()
    stored.set_params(checkpoint=None).fit(X)
    assert len(found) == 1, "kept for one fit only"


def test_new_objects_go_to_their_clusters(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], tmp_path: object
) -> None:
    X, _, model = fitted
    mass = model.predict_mass(X[:500])
    assert mass.shape == (500, 42)
    assert np.allclose(mass.sum(axis=1), 1.0)
    assert (model.predict(X[:500]) == model.labels_[:500]).mean() > 0.97
    model.save(f"{tmp_path}/model")
    again = EVCLUS.load(f"{tmp_path}/model")
    assert np.array_equal(again.predict_mass(X[:50]), mass[:50])
    assert np.array_equal(model.predict_mass(X[3:4]), mass[3:4])


@pytest.mark.parametrize("partitions", ["never", 4])
@pytest.mark.parametrize("c", [WORDS - 3, WORDS - 2, WORDS - 1])
def test_as_many_focal_sets_as_words_are_no_dense_rows(
    c: int, partitions: str | int, tmp_path: Path
) -> None:
    """Thirty clusters have 32 focal sets, and an encoded row has 32 words."""
    X, y = gaussians(c, 2000)
    model = EVCLUS(c, metric="euclidean", random_state=0, partitions=partitions).fit(X)
    assert adjusted_rand_score(y, np.asarray(model.labels_)) > 0.9
    mass = model.predict_mass(X[:100])
    assert mass.sum(axis=1) == pytest.approx(1.0)
    model.save(str(tmp_path / "model"))
    again = EVCLUS.load(str(tmp_path / "model"))
    assert np.array_equal(again.predict_mass(X[:100]), mass)


def test_what_a_sparse_partition_says_is_what_a_dense_one_says(
    fitted: tuple[np.ndarray, np.ndarray, EVCLUS], tmp_path: object
) -> None:
    sparse = fitted[2].credal_partition_
    dense = CredalPartition(np.asarray(sparse.mass), sparse.focal_sets)
    assert sparse == dense
    assert np.array_equal(sparse.labels(), dense.labels())
    assert np.array_equal(sparse.outliers(), dense.outliers())
    assert str(sparse.summary()) == str(dense.summary())
    assert np.array_equal(sparse.plausibility, dense.plausibility)
    assert sparse[10:20] == dense[10:20]
    assert sparse[7] == dense[7]
    assert sparse[[3, 1]] == dense[[3, 1]]
    sparse.save(f"{tmp_path}/p.zarr")
    assert CredalPartition.load(f"{tmp_path}/p.zarr") == sparse


def test_a_metric_without_means_has_groups_too() -> None:
    X, y = gaussians(30, 1500)
    model = EVCLUS(30, metric="cityblock", random_state=0).fit(X)
    peer = KMeans(30, n_init=10, random_state=0).fit(X).labels_
    assert adjusted_rand_score(y, model.labels_) >= adjusted_rand_score(y, peer) - 0.03


@pytest.mark.parametrize("long", [True, False])
def test_groups_follow_the_shape_of_clusters(long: bool) -> None:
    rng = np.random.default_rng(0)
    # Three lines side by side, nearer to each other than they are long; or three balls.
    size, middles = ((8.0, 0.3), (0, 2, 4)) if long else ((1.0, 1.0), (0, 8, 16))
    S = np.vstack([[0, y] + rng.normal(size=(400, 2)) * size for y in middles])
    lines, some = np.repeat(np.arange(3), 400), slice(None, None, 7)
    # What Ward's method would best make of small groups: the lines themselves.
    merged = Means(S[some].astype(np.float32), lines[some], np.ones(len(S[some])))
    single = Means.single(KMeans(3, n_init=10, random_state=0).fit(S).cluster_centers_)
    chosen = likelier(S, (merged, merged.nearest(S)), (single, single.nearest(S)))
    assert chosen is (merged if long else single)
    assert adjusted_rand_score(lines, chosen.nearest(S)) > 0.9


def test_thousands_of_groups_are_found_cell_by_cell() -> None:
    rng = np.random.default_rng(5)
    y = rng.permutation(np.arange(12_000) % CELLS_FROM)
    X = (6 * rng.normal(size=(CELLS_FROM, 8)))[y] + rng.normal(size=(12_000, 8))
    source = AttributeSource.of(X, "euclidean")
    one, two = (find_groups(source, CELLS_FROM, 0, threads) for threads in (1, 2))
    assert np.array_equal(one.labels, two.labels)
    assert one.means is not None
    assert np.array_equal(one.labels, one.means.nearest(source.table[:, :8]))
    assert one.count == CELLS_FROM
    assert adjusted_rand_score(y, one.labels) > 0.95
    # The next number is a near group: nearer than another one.
    middles = one.means.middles()
    next_one = np.linalg.norm(np.diff(middles, axis=0), axis=1).mean()
    assert (
        next_one < 0.6 * np.linalg.norm(middles[1:] - rng.permutation(middles)[1:], axis=1).mean()
    )


def test_thousands_of_clusters_of_few_different_objects() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(900, 3)), 5, axis=0)
    groups = find_groups(AttributeSource.of(X, "euclidean"), CELLS_FROM, 0)
    assert groups.count <= 900
    assert groups.labels.max() < groups.count
    assert (groups.labels.reshape(900, 5) == groups.labels[::5, None]).all()


def test_groups_of_equal_objects() -> None:
    source = AttributeSource.of(np.repeat(np.eye(5), 300, axis=0), "euclidean")
    groups = find_groups(source, SPARSE_FROM, seed=0)
    assert len(np.unique(groups.labels)) == 5


def test_a_start_has_its_mass_on_label_and_omega() -> None:
    mass = decode(labelled(np.array([2, 0]), 0.75), 3)
    assert mass.tolist() == [[0, 0, 0, 0.75, 0.25], [0, 0.75, 0, 0, 0.25]]


# ---------------------------------------------------------------------- d0
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_groups_that_reach_as_far_as_all_pairs_do_not_set_d0(metric: str) -> None:
    # In fifty dimensions twice the end of a group is beyond the largest of all dissimilarities.
    X, _ = gaussians(30, 4000, d=50)
    noisy = X / 15 + np.random.default_rng(1).normal(size=X.shape)
    source = AttributeSource.of(noisy, metric)
    D = source.distances(np.arange(200, dtype=np.uint32), np.tile(np.arange(200), (200, 1)))
    median = np.median(D[~np.eye(200, dtype=bool)])
    d0 = d0_of_groups(source, find_groups(source, 30, 0), 0)
    assert d0 == pytest.approx(2 * median, rel=0.03)


def test_groups_that_are_apart_set_d0() -> None:
    X, y = gaussians(30, 4000)
    source = AttributeSource.of(X, "euclidean")
    inside = [pdist(X[y == g]) for g in range(30)]
    end = np.quantile(np.concatenate(inside), 0.95)
    assert d0_of_groups(source, find_groups(source, 30, 0), 0) == pytest.approx(2 * end, rel=0.05)


def test_one_cluster_more_makes_no_jump_of_d0() -> None:
    # 12 and 13 clusters are found in different ways, and so are 24 and 25: none moves d0.
    X, _ = gaussians(10, 3000, d=50)
    source = AttributeSource.of(X / 6 + np.random.default_rng(1).normal(size=X.shape), "euclidean")
    d0 = [d0_of_groups(source, find_groups(source, c, 0), 0) for c in (12, 13, 24, 25)]
    assert max(d0) < 1.05 * min(d0)
