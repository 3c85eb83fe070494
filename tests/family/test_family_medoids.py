"""ECMdd and MECM: costs by their definitions, exact updates, descent, attributes and matrices."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import MECM, ECMdd, FocalSets
from evdist.ecm.solver import cheapest
from evdist.engine.loop import minimise
from evdist.medoids.mecm import MedianMedoids
from evdist.medoids.solver import Medoids, MedoidSolver, WeightedMedoids, seed_medoids

SETS = FocalSets.full(3)


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(120, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


@pytest.fixture(scope="module")
def D() -> np.ndarray:
    X = np.random.default_rng(0).normal(size=(25, 2))
    return cdist(X, X)


def tiny(seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(10, 2))
    return cdist(X, X)


FAMILY = {
    "sECMdd": lambda **p: ECMdd(**p),
    "wECMdd": lambda **p: ECMdd(weighted=True, **p),
    "MECM": lambda **p: MECM(**p),
}


# ---------------------------------------------------------------------- masses
@given(st.integers(0, 1000), st.sampled_from([1.3, 2.0, 3.0]))
def test_the_cheapest_masses_cost_least(seed, beta):
    rng = np.random.default_rng(seed)
    b = rng.gamma(1.0, size=(6, 4))
    M, Z = cheapest(b, beta)
    J = (b.min(axis=1) * Z[:, 0] ** (1.0 - beta)).sum()
    np.testing.assert_allclose(M.sum(axis=1), 1.0)
    assert ((M**beta * b).sum()) == pytest.approx(J, rel=1e-9)
    assert (rng.dirichlet(np.ones(4), 6) ** beta * b).sum() >= J


def test_an_object_on_a_medoid_is_in_its_cluster():
    b = np.array([[100.0, 0.0, 3.0], [100.0, 0.0, 0.0]])
    M, _ = cheapest(b, 2.0)
    np.testing.assert_array_equal(M, [[0, 1, 0], [0, 0.5, 0.5]])
    assert (M**2 * b).sum() == 0


# ---------------------------------------------------------------------- costs
def test_costs_of_single_medoids(D):
    model = Medoids(SETS, np.array([3, 7, 11]), 2.0, 2.0, 5.0, 1.0, 0.5)
    own = model.set_medoids(D)
    for j, members in enumerate(SETS.sets):
        v = model.medoid[list(members)]
        if len(members) > 1:
            score = [D[p, v].std() + D[p, v].mean() for p in range(25)]
            assert own[j] == np.argmin(score)
        for i in (0, 5):
            if not members:
                expected = 25.0
            elif len(members) == 1:
                expected = D[i, v[0]]
            else:
                expected = len(v) ** 2 * (0.5 * D[i, own[j]] + D[i, v].mean()) / 1.5
            assert model.costs(D)[i, j] == pytest.approx(expected, rel=1e-12)


def test_costs_of_weighted_medoids(D):
    V = np.random.default_rng(1).dirichlet(np.ones(25), 3)
    model = WeightedMedoids(SETS, V, 2.0, 2.0, 5.0, 2.0, 5.0)
    W = model.set_weights()
    np.testing.assert_allclose(W[1:].sum(axis=1), 1.0)
    both = np.minimum(V[0], V[2]) ** 5
    np.testing.assert_allclose(W[SETS.index([0, 2])], both / both.sum(), rtol=1e-9)
    got = model.costs(D)
    assert got[4, 0] == 25.0
    assert got[4, SETS.index([1])] == pytest.approx((V[1] ** 2 * D[4]).sum())
    pair = SETS.index([0, 2])
    assert got[4, pair] == pytest.approx(4 * (W[pair] ** 2 * D[4]).sum())


def test_the_best_weights_are_the_best():
    rng = np.random.default_rng(0)
    R = rng.gamma(2.0, size=(2, 9))
    V = cheapest(R, 3.0)[0]
    least = (V**3 * R).sum(axis=1)
    for _ in range(50):
        assert ((rng.dirichlet(np.ones(9), 2) ** 3 * R).sum(axis=1) >= least).all()


def test_costs_of_median_medoids(D):
    model = MedianMedoids(SETS, np.array([3, 7, 11]), 1.0, 2.0, 5.0, 2.0, 0.5)
    got = model.costs(D)
    for j, members in enumerate(SETS.sets):
        v = model.medoid[list(members)]
        for i in (0, 5):
            if len(v) == 1:
                assert got[i, j] == pytest.approx(D[i, v[0]] ** 2)
            elif len(v) > 1:
                unlike = sum(abs(D[i, a] - D[i, b]) for a, b in combinations(v, 2))
                rho = unlike / (2.0 * sum(D[a, b] for a, b in combinations(v, 2)))
                d2 = (0.5 * (D[i, v] ** 2).mean() + rho * D[i, v].min() ** 2) / 1.5
                assert got[i, j] == pytest.approx(len(v) * d2, rel=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([0.0, 0.5, 3.0]), st.sampled_from([0.3, 2.0]))
def test_a_median_step_takes_the_best_object_for_each_cluster(seed, gamma, eta):
    """By trying every object, one cluster after the other."""
    D = tiny(seed)
    model = MedianMedoids(SETS, np.array([3, 7, 1]), 1.0, 2.0, 5.0, eta, gamma)
    powers = cheapest(model.costs(D), 2.0)[0] ** 2

    def cost(medoid: list[int]) -> float:
        return float((powers * replace(model, medoid=np.array(medoid)).costs(D)).sum())

    medoid = [3, 7, 1]
    for k in range(3):
        free = [p for p in range(len(D)) if p == medoid[k] or p not in medoid]
        medoid[k] = min(free, key=lambda p: cost([*medoid[:k], p, *medoid[k + 1 :]]))
    found = next(model.proposals(D, powers), model)
    assert cost(found.medoid.tolist()) == pytest.approx(cost(medoid), rel=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from([1.5, 2.0]))
def test_a_medoid_step_takes_the_best_object_for_each_cluster(seed, beta):
    """By trying every object: those of the clusters' own terms, sum_i m_ik^beta D[i, l]."""
    D = tiny(seed)
    model = Medoids(SETS, np.array([3, 7, 1]), 2.0, beta, 5.0, 1.0, 1.0)
    powers = cheapest(model.costs(D), beta)[0] ** beta
    best = []
    for single in ([0], [1], [2]):
        own = [sum(p * D[i, m] for i, p in enumerate(powers[:, SETS.index(single)]))
               for m in range(len(D))]  # fmt: skip
        best.append(int(np.argmin(own)))
    proposals = [found.medoid.tolist() for found in model.proposals(D, powers)]
    if best == [3, 7, 1]:
        assert not proposals
    elif len(set(best)) == 3:
        assert proposals[0] == best
    for medoid in proposals:
        assert all(medoid[k] in (model.medoid[k], best[k]) for k in range(3))


@given(st.integers(0, 1000), st.sampled_from([1.2, 2.0, 4.0]))
def test_the_derivatives_at_the_best_weights_are_alike(seed, psi):
    """What minimises sum_l V_l^psi R_l, a convex function, among weights that sum to one."""
    R = np.random.default_rng(seed).gamma(2.0, size=(2, 9))
    V = cheapest(R, psi)[0]
    np.testing.assert_allclose(V.sum(axis=1), 1.0)
    slope = psi * V ** (psi - 1.0) * R
    np.testing.assert_allclose(slope, slope[:, :1].repeat(9, axis=1), rtol=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 1000))
@pytest.mark.parametrize("kind", [Medoids, MedianMedoids])
def test_descent_from_any_pair_ends_no_higher_and_the_best_pair_stays(kind, seed):
    """By trying every pair of ten objects as medoids."""
    D = tiny(seed)

    def at(pair: tuple[int, ...]) -> Medoids | MedianMedoids:
        return kind(FocalSets.full(2), np.array(pair), 1.0, 2.0, 3.0, 1.0, 0.5)

    least = {
        p: MedoidSolver(D, at(p), 0.0).init().objective for p in combinations(range(len(D)), 2)
    }
    for pair, value in least.items():
        fit = minimise(MedoidSolver(D, at(pair), 0.0), 100)
        first, second = sorted(fit.value.prototypes.medoid)
        assert fit.history[-1] == pytest.approx(least[first, second], rel=1e-12)
        assert fit.history[-1] <= value
    best = min(least, key=least.get)
    stays = minimise(MedoidSolver(D, at(best), 0.0), 100).value.prototypes
    assert stays.medoid.tolist() == list(best)


# ---------------------------------------------------------------------- fits
@pytest.mark.filterwarnings("ignore:.*did not converge")
@settings(max_examples=10)
@given(st.integers(0, 1000), st.sampled_from(["simple", "pairs", "full"]))
@pytest.mark.parametrize("name", FAMILY)
def test_the_objective_never_rises(name, seed, focal_sets):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    model = FAMILY[name](
        n_clusters=3, focal_sets=focal_sets, n_init=1, max_iter=30, random_state=seed
    ).fit(X)
    assert (np.diff(model.history_) <= 0).all()
    if name != "wECMdd":
        assert len(set(model.medoids_)) == 3


@pytest.mark.parametrize("name", FAMILY)
def test_plain_clusters_are_found_from_attributes_and_from_a_matrix(name, blobs):
    X, y = blobs
    a = FAMILY[name](n_clusters=3, random_state=0).fit(X)
    metric = a.metric
    b = FAMILY[name](n_clusters=3, random_state=0, metric="precomputed").fit(cdist(X, X, metric))
    assert adjusted_rand_score(y, a.labels_) == 1
    np.testing.assert_allclose(a.credal_partition_.mass, b.credal_partition_.mass, atol=1e-9)
    new = X[:7] + 0.3
    np.testing.assert_allclose(
        a.predict_mass(new), b.predict_mass(cdist(new, X, metric)), atol=1e-9
    )


@pytest.mark.parametrize("name", FAMILY)
def test_fitted_objects_are_predicted_as_they_were_fitted(name, blobs):
    model = FAMILY[name](n_clusters=3, random_state=0).fit(blobs[0])
    np.testing.assert_allclose(
        model.predict_mass(blobs[0]), model.credal_partition_.mass, atol=1e-12
    )


@pytest.mark.parametrize("name", FAMILY)
def test_medoids_may_be_given(name, blobs):
    X, y = blobs
    first = [int(np.flatnonzero(y == k)[0]) for k in range(3)]
    model = FAMILY[name](n_clusters=3, init=first).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    if name != "wECMdd":
        assert [y[m] for m in model.medoids_] == [0, 1, 2]


def test_weights_tell_how_typical_objects_are(blobs):
    X, y = blobs
    model = ECMdd(3, weighted=True, random_state=0).fit(X)
    np.testing.assert_allclose(model.weights_.sum(axis=1), 1.0)
    for k, row in enumerate(model.weights_):
        assert (y[np.argsort(-row)[:20]] == y[model.medoids_[k]]).all()


def test_seeds_are_different_objects_even_among_copies():
    D = np.zeros((6, 6))
    assert len(set(seed_medoids(D, 6, np.random.default_rng(0)))) == 6


@pytest.mark.parametrize("estimator", [ECMdd, MECM])
@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1"),
        ({"n_clusters": 31}, "n_clusters must be at most the number of objects"),
        ({"beta": 1}, "beta must be a number above 1"),
        ({"gamma": -1}, "gamma must be a number of at least 0"),
        ({"eta": -1}, "eta must be a number"),
        ({"metric": "mahalanobis"}, "metric must be one of euclidean"),
        ({"metric": "precomputed"}, "A dissimilarity matrix must be square"),
        ({"focal_sets": "select"}, "focal_sets must be a FocalSets or one of"),
        ({"focal_sets": FocalSets.of([[0], [1], [0, 1, 2]], 3)}, "focal_sets must hold every"),
        ({"init": "random"}, r"init must be one of k-means\+\+, got 'random'"),
        ({"init": [0, 1]}, "init must be .* or 3 object numbers"),
        ({"init": [0, 1, 1]}, "init must name 3 different objects from 0 to 29"),
        ({"init": [0, 1, 30]}, "init must name 3 different objects from 0 to 29"),
    ],
)
def test_what_cannot_be_is_refused(estimator, parameters, sentence):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=sentence):
        estimator(**{"n_clusters": 3, **parameters}).fit(X)


def test_weights_need_a_power_above_one():
    with pytest.raises(ValueError, match="psi must be a number above 1, got 1"):
        ECMdd(2, weighted=True, psi=1).fit(np.eye(5))
