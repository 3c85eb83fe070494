"""BCM: the definition of its distances, exact steps, descent, its principle, refusals."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import BCM, CCM, ECM, FocalSets
from evdist.ecm.bcm import BeliefModel


def squared_distances(X: np.ndarray, V: np.ndarray, sets: FocalSets, gamma: float, delta: float):
    """D_ij^2, a mean of squared distances to the clusters of A_j and between them; (n, f)."""
    d2 = ((X[:, None] - V[None]) ** 2).sum(axis=2)
    D2 = np.full((len(X), len(sets)), delta**2)
    for j, members in enumerate(sets.sets):
        if members:
            k = list(members)
            pairs = [((V[a] - V[b]) ** 2).sum() for a, b in combinations(k, 2)]
            total = d2[:, k].sum(axis=1) + gamma * sum(pairs)
            D2[:, j] = total / (len(k) + gamma * len(pairs))
    return D2


def drawn(seed: int, gamma: float = 0.7, c: int = 4) -> tuple[np.ndarray, BeliefModel]:
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(c, 3))
    model = BeliefModel(FocalSets.full(c), V, 0.0, 2.0, 3.0, gamma=gamma)
    return 2 * rng.normal(size=(50, 3)), model


@pytest.mark.parametrize("gamma", [0.0, 1.0, 7.5])
def test_masses_and_objective_follow_from_the_distances(gamma):
    X, model = drawn(0, gamma)
    D2 = squared_distances(X, model.prototypes, model.focal_sets, gamma, 3.0)
    M = (1 / D2) / (1 / D2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.masses(X, np.float64), M, atol=1e-12)
    assert model.read(model.sums(X)).objective == pytest.approx((M**2 * D2).sum(), rel=1e-12)


@pytest.mark.parametrize("gamma", [0.0, 1.0, 7.5])
def test_a_step_minimises_the_objective_for_the_masses(gamma):
    X, model = drawn(1, gamma)
    M = model.masses(X, np.float64)

    def cost(V: np.ndarray) -> float:
        return float((M**2 * squared_distances(X, V, model.focal_sets, gamma, 3.0)).sum())

    V = model.step(model.read(model.sums(X))).prototypes
    rng = np.random.default_rng(2)
    assert all(cost(V + 0.01 * rng.normal(size=V.shape)) > cost(V) for _ in range(20))


@settings(max_examples=20)
@given(st.integers(0, 1000), st.sampled_from(["simple", "pairs", "full"]), st.floats(0, 5))
def test_the_objective_never_rises(seed, focal_sets, gamma):
    X = np.random.default_rng(seed).normal(size=(40, 2))
    model = BCM(
        3,
        gamma=gamma,
        focal_sets=focal_sets,
        delta=2,
        n_init=1,
        tol=1e-3,
        max_iter=1000,
        random_state=seed,
    ).fit(X)
    assert (np.diff(model.history_) <= 0).all()


class TestThePrincipleOfTheArticle:
    """Its abstract: what lies between clusters, what lies far from close ones."""

    SETS = FocalSets.pairs(2)
    MODEL = BeliefModel(SETS, np.array([[0.0, 0.0], [2.0, 0.0]]), 0.0, 2.0, 100.0, gamma=1.0)

    def test_an_object_in_the_middle_is_committed_equally_to_each_cluster(self):
        (mass,) = self.MODEL.masses(np.array([[1.0, 0.0]]), np.float64)
        one, two, both = (mass[self.SETS.index(s)] for s in ([0], [1], [0, 1]))
        assert one == pytest.approx(two)
        assert both < one
        ecm = ECM(2, init=self.MODEL.prototypes, delta=100, focal_sets="pairs", max_iter=1, tol=1)
        ecm.fit(np.array([[0.0, 0.0], [2.0, 0.0]]))
        assert ecm.predict_mass([[1.0, 0.0]])[0, self.SETS.index([0, 1])] > 0.99

    def test_an_object_far_from_clusters_close_together_goes_to_their_set(self):
        (mass,) = self.MODEL.masses(np.array([[1.0, 30.0]]), np.float64)
        one, two, both = (mass[self.SETS.index(s)] for s in ([0], [1], [0, 1]))
        assert one == pytest.approx(two)
        assert both > one

    def test_clusters_far_apart_share_no_object(self):
        """The farther the two clusters, the less is left for their set."""
        masses = [
            BeliefModel(self.SETS, np.array([[0.0], [gap]]), 0.0, 2.0, 100.0, gamma=1.0).masses(
                np.array([[-1.0]]), np.float64
            )[0, self.SETS.index([0, 1])]
            for gap in (1.0, 3.0, 10.0)
        ]
        assert masses[0] > masses[1] > masses[2]

    def test_the_centre_of_a_set_may_lie_on_another_cluster(self):
        """Three on a line: ECM's centre of {0, 2} lies on cluster 1; here that set is far."""
        sets = FocalSets.pairs(3)
        line = np.array([[0.0], [5.0], [10.0]])
        model = BeliefModel(sets, line, 0.0, 2.0, 100.0, gamma=1.0)
        (mass,) = model.masses(np.array([[5.2]]), np.float64)
        assert mass[sets.index([1])] > 0.9
        assert mass[sets.index([0, 2])] < mass[sets.index([0, 1])]


def test_without_the_distances_between_clusters_it_is_ccm_without_centres():
    X = np.random.default_rng(0).normal(size=(60, 2))
    belief, credal = (kind(3, gamma=0, init=X[:3], delta=2).fit(X) for kind in (BCM, CCM))
    np.testing.assert_allclose(
        belief.credal_partition_.mass, credal.credal_partition_.mass, atol=1e-6
    )


def test_blobs_are_found():
    X, y = make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    assert adjusted_rand_score(y, BCM(3, random_state=0).fit(X).labels_) == 1


def test_a_weight_is_as_good_as_copies():
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 2)), rng.integers(1, 4, 60)
    start = X[:3]
    a = BCM(3, init=start, tol=0, max_iter=400).fit(X, sample_weight=w)
    b = BCM(3, init=start, tol=0, max_iter=400).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(a.prototypes_, b.prototypes_, atol=1e-6)


@pytest.mark.process
def test_a_cluster_changes_no_bit(two_workers):
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    model = BCM(3, init=X[:3], max_iter=300)
    here = model.fit(X).credal_partition_.mass
    there = model.fit(X, client=two_workers).credal_partition_.mass
    np.testing.assert_array_equal(here, there)


def test_threads_change_no_bit():
    X = np.random.default_rng(0).normal(size=(20_000, 2))
    a, b = (BCM(3, n_jobs=j, n_init=1, max_iter=300, random_state=0).fit(X) for j in (1, 2))
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"gamma": -1}, "gamma must be a number of at least 0, got -1"),
        ({"beta": 1}, "beta must be a number above 1"),
        ({"delta": 0}, "delta must be a number above 0"),
        ({"n_clusters": 31}, "n_clusters must be at most the number of objects"),
        ({"focal_sets": "select"}, "focal_sets must be a FocalSets or one of"),
        ({"init": np.zeros((2, 2))}, "init must be one prototype per cluster"),
    ],
)
def test_what_cannot_be_is_refused(parameters, sentence):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=sentence):
        BCM(**{"n_clusters": 3, **parameters}).fit(X)
