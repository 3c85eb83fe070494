"""The parameters of EVCLUS: what each does, and the sentence that refuses a bad value."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition, FocalSets
from evdist.evclus.d0 import QUANTILES
from evdist.evclus.resolution import TIE

N = 90


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(N, centers=[[0, 0], [6, 0], [0, 6]], random_state=2)[0]


@pytest.fixture(scope="module")
def y() -> np.ndarray:
    return make_blobs(N, centers=[[0, 0], [6, 0], [0, 6]], random_state=2)[1]


def fit(X, **options) -> EVCLUS:
    known = {"d0": "q0.5", "random_state": 0, "n_dissimilarities": 30}
    return EVCLUS(**{"metric": "euclidean", "n_clusters": 3, **known, **options}).fit(X)


def test_very_many_focal_sets_are_told_before_the_work(X):
    with pytest.raises(UserWarning, match=r'1,832 focal sets.*focal_sets="select"'):
        fit(X, n_clusters=60, focal_sets="pairs")


# ---------------------------------------------------------------------- refused
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("n_clusters", 0, "n_clusters must be an integer of at least 1, got 0"),
        ("n_clusters", 2.5, "n_clusters must be an integer of at least 1, got 2.5"),
        ("n_clusters", True, "n_clusters must be an integer of at least 1, got True"),
        ("n_clusters", N + 1, f"at most the number of objects, got {N + 1} clusters for .*={N}"),
        ("n_dissimilarities", 0, "n_dissimilarities must be an integer of at least 1, got 0"),
        ("metric", "euclid", "metric must be one of chebyshev, .*, or a callable, got 'eu"),
        ("metric", "manhattan", "got 'manhattan', which is cityblock here"),
        ("metric", ["x"], r"metric must be one of .*, got \['x'\]"),
        ("focal_sets", "all", r"must be a FocalSets or one of \('simple', .*'select'\), got 'all'"),
        ("focal_sets", FocalSets.full(2), "over 2 clusters, but n_clusters is 3"),
        ("pair_neighbours", 0, "pair_neighbours must be an integer of at least 1"),
        ("d0", 0, 'd0 must be a positive number, a quantile such as "q0.9", or "auto", got 0'),
        ("d0", "q1.5", "d0 must be .*, got 'q1.5'"),
        ("d0", "median", "d0 must be .*, got 'median'"),
        ("d0", np.inf, "d0 must be .*, got inf"),
        ("d0", True, "d0 must be .*, got True"),
        ("init", "kmeans", r"init must be masses or one of \('auto', .*\), got 'kmeans'"),
        ("init", np.full((2, 5), 0.2), f"init has 2 objects, X has {N}"),
        ("init", np.full((N, 4), 0.25), "got 4 columns for 5 focal sets"),
        ("init", np.ones((N, 5)), "Row 0 of mass sums to 5"),
        ("init", CredalPartition(np.full((N, 8), 0.125), FocalSets.full(3)),
         r"init must have masses on ∅, \{0\}, \{1\}, \{2\}, Ω, got .* Pass focal_sets=init.focal"),
        ("init", CredalPartition(np.full((N, 4), 0.25), FocalSets.simple(2)), "init must have mas"),
        ("n_init", 0, "n_init must be an integer of at least 1, got 0"),
        ("tol", -1e-3, "tol must be a number of at least 0, got -0.001"),
        ("tol", "small", "tol must be \"auto\" or a number of at least 0, got 'small'"),
        ("tol", np.nan, "tol must be a number of at least 0, got nan"),
        ("max_iter", 0, "max_iter must be an integer of at least 1, got 0"),
        ("constraint_weight", -1, "constraint_weight must be a number of at least 0, got -1"),
        ("expand_constraints", -1, "expand_constraints must be an integer of at least 0, got -1"),
        ("n_jobs", 0, "n_jobs must be an integer other than 0, or None or -1 for all cores, got 0"),
        ("n_jobs", "many", "n_jobs must be an integer other than 0, .* got 'many'"),
        ("random_state", "seed", "'seed' cannot be used to seed"),
        ("checkpoint_every", 0, "checkpoint_every must be an integer of at least 1"),
        ("callbacks", print, "callbacks must be a list of functions of one Progress, got <built"),
        ("callbacks", [3], r"callbacks must be a list of functions of one Progress, got \[3\]"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused_with_its_sentence(X, name, value, says):
    with pytest.raises(ValueError, match=says):
        fit(X, **{name: value})


@pytest.mark.parametrize(
    ("weight", "says"),
    [
        (np.ones(3), rf"sample_weight must have shape \({N},\), got \(3,\)"),
        (np.r_[np.ones(N - 1), 0], f"above zero and finite, but object {N - 1} has 0.0. Leave out"),
        (np.r_[-1, np.ones(N - 1)], "above zero and finite, but object 0 has -1.0"),
        (np.r_[np.nan, np.ones(N - 1)], "above zero and finite, but object 0 has nan"),
    ],
)
def test_bad_weights_are_refused(X, weight, says):
    with pytest.raises(ValueError, match=says):
        EVCLUS(3, metric="euclidean", d0=1.0).fit(X, sample_weight=weight)


def test_a_checkpoint_without_a_random_state_could_not_be_resumed(X, tmp_path):
    with pytest.raises(ValueError, match="checkpoint needs a random_state, such as random_state=0"):
        fit(X, checkpoint=tmp_path, random_state=None)


# ---------------------------------------------------------------------- focal sets
@pytest.mark.parametrize(
    ("family", "sets"),
    [
        ("simple", FocalSets.simple(3)),
        ("pairs", FocalSets.pairs(3)),
        ("full", FocalSets.full(3)),
        (FocalSets.simple(3, omega=False), FocalSets.simple(3, omega=False)),
        (FocalSets.of([[0], [1], [2], [0, 1]], 3), FocalSets.of([[0], [1], [2], [0, 1]], 3)),
    ],
)
def test_masses_lie_on_the_focal_sets_asked_for(X, y, family, sets):
    model = fit(X, focal_sets=family)
    assert model.credal_partition_.focal_sets == sets
    assert adjusted_rand_score(y, model.labels_) == 1


def test_more_focal_sets_fit_better(X):
    simple, full = (fit(X, focal_sets=s, tol=1e-7).objective_ for s in ("simple", "full"))
    assert full <= simple * (1 + 1e-6)


def test_select_adds_the_pairs_of_neighbouring_clusters():
    """Four clusters in a row: only neighbours overlap."""
    X = make_blobs(400, centers=[[0, 0], [4, 0], [8, 0], [12, 0]], random_state=0)[0]
    options = {"n_clusters": 4, "d0": "q0.6", "pair_neighbours": 1}
    model = fit(X, focal_sets="select", **options)
    sets = model.credal_partition_.focal_sets
    pairs = [s for s in sets if len(s) == 2]
    assert len(sets) == 6 + len(pairs)
    place = np.argsort(np.argsort([X[model.labels_ == k, 0].mean() for k in range(4)]))
    assert 1 <= len(pairs) <= 3
    assert all(abs(place[a] - place[b]) == 1 for a, b in pairs)
    # The second fit starts from the first and can only gain.
    assert model.objective_ <= fit(X, focal_sets="simple", **options).objective_


# ---------------------------------------------------------------------- start
@pytest.mark.parametrize("init", ["auto", "landmarks", "k-means++", "random"])
def test_every_start_finds_plain_clusters(X, y, init):
    assert adjusted_rand_score(y, fit(X, init=init, n_init=5).labels_) == 1


def test_restarts_keep_the_best():
    X = make_blobs(200, centers=6, cluster_std=1.5, random_state=1)[0]
    options = {"n_clusters": 6, "init": "random", "d0": "q0.3"}
    one, many = (fit(X, n_init=n, **options).objective_ for n in (1, 8))
    assert many <= one


def test_given_masses_are_where_the_fit_starts(X):
    start = np.random.default_rng(0).dirichlet(np.ones(5), N)
    model = fit(X, init=start)
    again = fit(X, init=CredalPartition(start, FocalSets.simple(3)))
    np.testing.assert_array_equal(model.credal_partition_.mass, again.credal_partition_.mass)
    # A start at the solution stays there.
    best = fit(X, tol=1e-9, max_iter=2000)
    stay = fit(X, init=best.credal_partition_)
    np.testing.assert_allclose(stay.history_, best.objective_, rtol=1e-5)
    np.testing.assert_array_equal(stay.labels_, best.labels_)


def test_a_start_on_fewer_focal_sets_is_widened(X):
    simple = fit(X)
    full = fit(X, init=simple.credal_partition_, focal_sets="full")
    assert len(full.credal_partition_.focal_sets) == 8
    np.testing.assert_allclose(full.history_[0], simple.objective_, rtol=1e-6)


def test_landmarks_place_the_objects_that_are_none(X):
    X = make_blobs(3000, centers=[[0, 0], [9, 0], [0, 9]], random_state=2)[0]
    model = fit(X, n_dissimilarities=20, max_iter=60)
    assert len(model.credal_partition_.mass) == 3000
    # The pass over the landmarks is nearly there: the sweeps gain little.
    assert model.history_[0] < 2 * model.objective_


# ---------------------------------------------------------------------- stop
def test_too_few_sweeps_warn_and_say_so(X):
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=2 sweeps; raise"):
        model = fit(X, init="random", max_iter=2)
    assert not model.converged_
    assert model.n_iter_ == 2


def test_a_smaller_tolerance_sweeps_longer(X):
    loose, tight = (fit(X, init="random", tol=tol) for tol in (1e-2, 1e-7))
    assert loose.converged_
    assert tight.converged_
    assert loose.n_iter_ < tight.n_iter_
    assert tight.objective_ < loose.objective_
    # The same sweeps, seen for longer, but for rows that rest: their gains are below the tolerance.
    n = loose.n_iter_ + 1
    np.testing.assert_allclose(tight.history_[:n], loose.history_, rtol=loose.tol)


# ---------------------------------------------------------------------- d0
def test_d0_as_a_number_is_taken_as_it_is(X):
    model = fit(X, d0=3.5)
    assert model.d0_ == 3.5
    assert model.d0_curve_ == []


def test_d0_as_a_quantile_is_that_of_the_dissimilarities(X):
    for q in (0.1, 0.5, 1):
        np.testing.assert_allclose(fit(X, d0=f"q{q}").d0_, np.quantile(pdist(X), q), rtol=1e-5)


def test_d0_auto_shows_what_it_tried(X, y):
    model = fit(X, d0="auto")
    quantiles, agreement = np.array(model.d0_curve_).T
    assert tuple(quantiles) == QUANTILES
    # The last of those that agree all but as well as the best.
    chosen = quantiles[agreement >= agreement.max() - TIE][-1]
    np.testing.assert_allclose(model.d0_, fit(X, d0=f"q{chosen}").d0_)
    assert adjusted_rand_score(y, model.labels_) == 1


def test_one_cluster_is_allowed(X):
    model = fit(X, n_clusters=1)
    assert model.credal_partition_.mass.shape == (N, 2)
    assert set(model.labels_) == {0}


@pytest.mark.parametrize(("n", "k"), [(60, 59), (401, 100)])
def test_auto_keeps_all_pairs_where_they_are_few(n, k):
    X = np.random.default_rng(0).normal(size=(n, 2))
    given = {"d0": 2.0, "init": "random", "max_iter": 5, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = EVCLUS(2, metric="euclidean", n_dissimilarities="auto", **given).fit(X)
        known = EVCLUS(2, metric="euclidean", n_dissimilarities=k, **given).fit(X)
    np.testing.assert_array_equal(found.credal_partition_.mass, known.credal_partition_.mass)
    assert found.predict_mass(X[:3]).shape == (3, 4)
