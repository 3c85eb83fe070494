"""Laws of ECM: each step is a minimum, the objective never rises, and what must not matter."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from ecm import ecm_slowly as slow
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist import ECM, RECM, FocalSets
from evdist.ecm import blocks as ecm_blocks
from evdist.ecm.blocks import LocalRows
from evdist.ecm.solver import ECMSolver, Model, metrics_from
from evdist.engine.loop import minimise

FAMILIES = ("simple", "pairs", "full")


@st.composite
def cases(draw):
    """Objects, weights or none, and a model, with or without a metric."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d, c = draw(st.integers(20, 90)), draw(st.integers(1, 4)), draw(st.integers(1, 4))
    X = rng.standard_normal((n, d)) * draw(st.sampled_from([0.1, 1.0, 30.0]))
    w = rng.uniform(0.1, 3.0, n) if draw(st.booleans()) else None
    model = slow.some_model(
        rng, c, d, draw(st.sampled_from(FAMILIES)),
        alpha=draw(st.sampled_from([0.0, 0.5, 1.0, 2.0])),
        beta=draw(st.sampled_from([1.1, 1.5, 2.0, 3.0])),
        delta=draw(st.sampled_from([0.5, 3.0, 100.0])),
    )  # fmt: skip
    if draw(st.booleans()):
        A = rng.standard_normal((c, d, d)) + 2 * np.eye(d)
        model = replace(model, metric=A @ A.transpose(0, 2, 1))
    return X, w, model


@given(cases())
def test_the_kernel_gives_the_masses_and_the_objective_of_the_slides(case):
    X, w, model = case
    M = slow.masses(X, model)
    np.testing.assert_allclose(model.masses(X, np.float64), M, rtol=1e-9, atol=1e-12)
    sums = LocalRows(X, w).sums(model)
    np.testing.assert_allclose(sums.objective, slow.objective(X, model, M, w), rtol=1e-10)
    W = M**model.beta if w is None else M**model.beta * w[:, None]
    np.testing.assert_allclose(sums.W, W.sum(axis=0), rtol=1e-8, atol=1e-12)


@given(cases(), st.integers(0, 2**32 - 1))
def test_no_other_masses_and_no_other_prototypes_cost_less(case, seed):
    X, w, model = case
    rng = np.random.default_rng(seed)
    M = model.masses(X, np.float64)
    least = slow.objective(X, model, M, w)
    other = rng.dirichlet(np.ones(M.shape[1]), len(M))
    for t in (1e-3, 0.1, 1.0):
        mixed = (1 - t) * M + t * other
        assert slow.objective(X, model, mixed, w) >= least * (1 - 1e-9)
    sums = LocalRows(X, w).sums(model)
    moved = replace(model, prototypes=model.step(sums).prototypes)
    least = slow.objective(X, moved, M, w)
    for scale in (1e-3, 0.1):
        V = moved.prototypes + scale * rng.standard_normal(moved.prototypes.shape)
        assert slow.objective(X, replace(moved, prototypes=V), M, w) >= least * (1 - 1e-9)


@given(cases(), st.integers(0, 2**32 - 1))
def test_no_other_metric_of_determinant_one_costs_less(case, seed):
    X, w, model = case
    rng = np.random.default_rng(seed)
    c, d = model.prototypes.shape
    model = model.adaptive()
    M = model.masses(X, np.float64)
    moved = model.step(LocalRows(X, w).sums(model))
    np.testing.assert_allclose(np.linalg.det(moved.metric), 1.0, rtol=1e-8)
    least = slow.objective(X, moved, M, w)
    for scale in (0.01, 0.3):
        A = np.eye(d) + scale * rng.standard_normal((c, d, d))
        S = A @ moved.metric @ A.transpose(0, 2, 1)
        S /= np.linalg.det(S)[:, None, None] ** (1 / d)
        assert slow.objective(X, replace(moved, metric=S), M, w) >= least * (1 - 1e-8)


@given(cases())
def test_every_step_lowers_the_objective(case):
    """The steps themselves: `ECMSolver` refuses one that rises, so its history cannot show it."""
    X, w, model = case
    rows = LocalRows(X, w)
    for start in (replace(model, metric=None), model.adaptive()):
        here, before = start, rows.sums(start).objective
        for _ in range(6):
            here = here.step(rows.sums(here))
            now = rows.sums(here).objective
            assert now <= before * (1 + 1e-9)
            before = now
        history = minimise(ECMSolver(rows, start, 0.0), 8).history
        assert all(b <= a for a, b in pairwise(history))


def test_an_object_on_a_prototype_is_surely_there():
    model = Model(FocalSets.full(2), np.array([[0.0, 0.0], [4.0, 0.0]]), delta=3.0)
    M = model.masses(np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [1e6, 0.0]]), np.float64)
    np.testing.assert_array_equal(M[0], [0, 1, 0, 0])
    np.testing.assert_array_equal(M[1], [0, 0, 0, 1])
    np.testing.assert_array_equal(M[2], [0, 0, 1, 0])
    assert M[3, 0] > 1 - 1e-6
    # Two prototypes in one place share what lies there.
    twins = replace(model, prototypes=np.zeros((2, 2)))
    np.testing.assert_allclose(
        twins.masses(np.zeros((1, 2)), np.float64)[0], [0, 1 / 3, 1 / 3, 1 / 3]
    )


@pytest.mark.parametrize("beta", [1.01, 30.0])
def test_extreme_fuzzifiers_neither_overflow_nor_lose_mass(beta):
    X = np.random.default_rng(0).standard_normal((50, 3)) * 1e5
    model = Model(FocalSets.pairs(3), X[:3] + 1e-9, beta=beta, delta=1e-4)
    M = model.masses(X, np.float64)
    assert np.isfinite(M).all()
    np.testing.assert_allclose(M.sum(axis=1), 1.0, **ROUNDING)


def test_a_prototype_that_nothing_determines_stays():
    X = np.random.default_rng(0).standard_normal((30, 2))
    sets = FocalSets.of([[0], [1]], 3)  # cluster 2 is in no focal set
    start = np.array([[-1.0, 0.0], [1.0, 0.0], [50.0, 50.0]])
    fit = minimise(ECMSolver(LocalRows(X), Model(sets, start), 1e-8), 50)
    np.testing.assert_allclose(fit.value.model.prototypes[2], start[2])
    assert np.abs(fit.value.model.prototypes[:2]).max() < 5


def test_a_cluster_of_too_few_objects_keeps_its_metric():
    model = Model(FocalSets.simple(2, omega=False), np.zeros((2, 2))).adaptive()
    scatter = np.array([np.zeros((2, 2)), np.diag([4.0, 1.0]), np.ones((2, 2))])
    S = metrics_from(model, scatter)
    np.testing.assert_allclose(S[0], np.diag([0.5, 2.0]))
    np.testing.assert_array_equal(S[1], np.eye(2))


# ---------------------------------------------------------------------- what must not matter
@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.concatenate([rng.standard_normal((60, 3)) + m for m in (0, 4, [8, 0, 0])])


@pytest.fixture(scope="module", params=["euclidean", "adaptive"])
def options(request, X) -> dict:
    return {"focal_sets": "pairs", "metric": request.param, "init": X[[5, 65, 125]], "tol": 1e-9}


@pytest.fixture(scope="module")
def model(X, options) -> ECM:
    return ECM(3, **options).fit(X)


def test_the_order_of_the_objects(X, options, model):
    order = np.random.default_rng(0).permutation(len(X))
    other = ECM(3, **options).fit(X[order])
    np.testing.assert_allclose(
        other.credal_partition_.mass, model.credal_partition_.mass[order], atol=1e-5
    )


def test_the_names_of_the_clusters(X, options, model):
    other = ECM(3, **(options | {"init": options["init"][::-1]})).fit(X)
    renamed = other.credal_partition_.relabel([2, 1, 0])
    sets = renamed.focal_sets
    at = [sets.index(members) for members in model.credal_partition_.focal_sets]
    np.testing.assert_allclose(renamed.mass[:, at], model.credal_partition_.mass, atol=1e-5)


@pytest.mark.parametrize(("shift", "factor"), [(1e6, 1.0), (0.0, 1e-3), (-50.0, 1e4)])
def test_the_place_and_the_unit_of_the_data(X, options, model, shift, factor):
    moved = options | {"init": options["init"] * factor + shift}
    other = ECM(3, **moved).fit(X * factor + shift)
    np.testing.assert_allclose(
        other.credal_partition_.mass, model.credal_partition_.mass, atol=1e-4
    )


def test_the_distance_to_the_empty_set_is_that_between_objects(X):
    model = ECM(3, random_state=0).fit(X)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    assert model.delta_ == pytest.approx(np.sqrt(squares.mean()))
    assert RECM(3, random_state=0).fit(squares).delta_ == pytest.approx(model.delta_)
    assert ECM(3, delta=7, random_state=0).fit(X).delta_ == 7


@pytest.mark.filterwarnings("ignore:X has 1 different row")
def test_equal_objects_share_all_clusters():
    model = ECM(2, random_state=0).fit(np.ones((5, 2)))
    np.testing.assert_allclose(model.credal_partition_.mass, np.tile([0, 1, 1, 1], (5, 1)) / 3)


def test_weights_are_repetitions(X, options):
    times = np.random.default_rng(2).integers(1, 4, len(X))
    weighted = ECM(3, **options).fit(X, sample_weight=times)
    repeated = ECM(3, **options).fit(np.repeat(X, times, axis=0))
    np.testing.assert_allclose(weighted.prototypes_, repeated.prototypes_, rtol=1e-6)
    share = len(X) / times.sum()
    assert weighted.objective_ == pytest.approx(repeated.objective_ * share)


def test_the_number_of_threads_and_the_precision_of_x(X, options, model, monkeypatch):
    monkeypatch.setattr(ecm_blocks, "BLOCK", 64)
    fits = [ECM(3, n_jobs=k, **options).fit(X) for k in (1, 2, 5)]
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.credal_partition_.mass, fits[0].credal_partition_.mass)
        assert fit.history_ == fits[0].history_
    single = ECM(3, **options).fit(X.astype(np.float32))
    np.testing.assert_allclose(
        single.credal_partition_.mass, model.credal_partition_.mass, atol=1e-4
    )


def test_more_starts_are_never_worse_and_more_objects_than_the_sample_go_through_it(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((3000, 2)) + 6 * rng.integers(0, 3, (3000, 2))
    one, five = (ECM(9, n_init=k, random_state=0).fit(X).objective_ for k in (1, 5))
    assert five <= one
    monkeypatch.setattr("evdist.ecm.start.SAMPLE", 500)
    monkeypatch.setattr("evdist.ecm.base.SAMPLE", 500)
    sampled = ECM(9, random_state=0).fit(X)
    assert sampled.objective_ == pytest.approx(five, rel=0.02)


def test_selected_pairs_join_neighbours_only():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((400, 2)) * 0.8 + np.repeat([[0, 0], [4, 0], [30, 0], [34, 0]], 100, 0)
    model = ECM(4, focal_sets="select", pair_neighbours=1, random_state=0).fit(X)
    pairs = [s for s in model.credal_partition_.focal_sets if len(s) == 2]
    near = {frozenset(np.argsort(model.prototypes_[:, 0])[a].tolist()) for a in ([0, 1], [2, 3])}
    assert {frozenset(s) for s in pairs} == near
