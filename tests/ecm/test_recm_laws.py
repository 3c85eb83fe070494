"""RECM: ECM without coordinates, an objective that never rises, dissimilarities of any kind."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.datasets import make_blobs

from evdist import ECM, RECM, CredalPartition, FocalSets
from evdist.ecm.blocks import LocalRows
from evdist.ecm.relational import RECMSolver, RelationalModel, euclidean_shift, seeded_weights
from evdist.ecm.solver import ECMSolver, Model
from evdist.engine.loop import minimise


def start(D, sets: FocalSets, Q, shift=0.0, **parameters) -> RelationalModel:
    numbers = {"alpha": 1.0, "beta": 2.0, "delta": 3.0} | parameters
    return RelationalModel(sets, Q, np.zeros((len(Q), len(Q))), shift=shift, **numbers)


@given(
    st.integers(5, 40), st.integers(1, 4), st.integers(1, 4),
    st.sampled_from(["simple", "pairs", "full"]), st.sampled_from([1.2, 2.0, 3.0]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_on_squared_distances_it_takes_the_steps_of_ecm(n, d, c, family, beta, seed):
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.uniform(0.5, 2.0, n)
    D = squareform(pdist(X, "sqeuclidean"))
    sets = getattr(FocalSets, family)(c)
    Q = rng.dirichlet(np.ones(n), c)
    relational = minimise(RECMSolver(D, start(D, sets, Q, beta=beta), 0.0, w), 4)
    model = Model(sets, Q @ X, 1.0, beta, 3.0)
    plain = minimise(ECMSolver(LocalRows(X, w), model, 0.0), 4)
    same = min(len(plain.history), len(relational.history))
    np.testing.assert_allclose(relational.history[:same], plain.history[:same], rtol=1e-6)
    np.testing.assert_allclose(relational.value.model.Q.sum(axis=1), 1.0)


@given(st.integers(4, 30), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_the_objective_never_rises_whatever_the_dissimilarities(n, c, seed):
    rng = np.random.default_rng(seed)
    D = rng.uniform(0, 5, (n, n))
    D = (D + D.T) / 2
    np.fill_diagonal(D, 0)
    shift = euclidean_shift(D)
    model = start(D, FocalSets.pairs(c), seeded_weights(D, c, rng, np.ones(n)), shift)
    w = np.ones(n)
    model, G = model.at(D, model.Q)
    M, J = model.masses(G)
    for _ in range(6):
        model, G = model.at(D, model.weights(M, w))
        M, now = model.masses(G)
        assert now.sum() <= J.sum() * (1 + 1e-6)
        J = now
    history = minimise(RECMSolver(D, model, 0.0, w), 10).history
    assert all(b <= a for a, b in pairwise(history))


@given(st.integers(3, 30), st.integers(0, 2**32 - 1))
def test_the_shift_is_the_least_that_makes_the_matrix_euclidean(n, seed):
    rng = np.random.default_rng(seed)
    D = rng.uniform(0, 5, (n, n))
    D = (D + D.T) / 2
    np.fill_diagonal(D, 0)
    P = np.eye(n) - 1 / n
    values = np.linalg.eigvalsh(-0.5 * P @ D @ P)
    top = np.abs(values).max()
    assert euclidean_shift(D) == pytest.approx(max(0.0, -2 * values[0]), abs=1e-4 * top)


def test_points_need_no_shift():
    X = np.random.default_rng(0).standard_normal((50, 3))
    assert euclidean_shift(squareform(pdist(X, "sqeuclidean"))) == 0
    assert euclidean_shift(np.zeros((4, 4))) == 0


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, centers=[[0, 0], [7, 0], [0, 7]], random_state=0)[0]


def test_it_finds_what_ecm_finds(blobs):
    D = squareform(pdist(blobs, "sqeuclidean"))
    model = RECM(3, focal_sets="pairs", random_state=0, tol=1e-10).fit(D)
    plain = ECM(3, focal_sets="pairs", init=model.weights_ @ blobs, tol=1e-10).fit(blobs)
    np.testing.assert_allclose(
        model.credal_partition_.mass, plain.credal_partition_.mass, atol=1e-4
    )
    new = np.random.default_rng(1).uniform(-3, 9, (20, 2))
    np.testing.assert_allclose(
        model.predict_mass(cdist(new, blobs, "sqeuclidean")), plain.predict_mass(new), atol=1e-4
    )


def test_weights_are_repetitions(blobs):
    X = blobs[::3]
    times = np.arange(len(X)) % 3 + 1
    D = squareform(pdist(X, "sqeuclidean"))
    many = np.repeat(np.arange(len(X)), times)
    mass = np.random.default_rng(0).dirichlet(np.ones(5), len(X))
    weighted = RECM(3, init=mass, tol=1e-10).fit(D, sample_weight=times)
    repeated = RECM(3, init=mass[many], tol=1e-10).fit(D[np.ix_(many, many)])
    np.testing.assert_allclose(
        weighted.credal_partition_.mass[many], repeated.credal_partition_.mass, atol=1e-4
    )


def test_a_partition_is_a_start(blobs):
    D = squareform(pdist(blobs, "sqeuclidean"))
    first = RECM(3, random_state=0).fit(D)
    again = RECM(3, init=first.credal_partition_).fit(D)
    assert isinstance(first.credal_partition_, CredalPartition)
    assert again.objective_ <= first.objective_ * (1 + 1e-6)
    assert again.n_iter_ <= 2


@pytest.mark.parametrize("metric", ["cityblock", "chebyshev", "cosine", "correlation"])
def test_other_metrics_are_squared_and_made_euclidean(metric):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 2.0, (40, 4))
    model = RECM(2, metric=metric, delta=1.0, random_state=0).fit(X)
    same = RECM(2, delta=1.0, random_state=0).fit(squareform(pdist(X, metric)) ** 2)
    np.testing.assert_allclose(model.credal_partition_.mass, same.credal_partition_.mass, atol=1e-5)
