"""ECM, CECM and RECM refuse what cannot be before they start."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from evdist import CECM, ECM, RECM, CredalPartition, FocalSets

X = np.random.default_rng(0).standard_normal((20, 2))
D = ((X[:, None] - X) ** 2).sum(axis=2)

SHARED = [
    ({"n_clusters": 0}, r"n_clusters must be an integer of at least 1, got 0"),
    ({"n_clusters": 21}, r"n_clusters must be at most the number of objects, got 21"),
    ({"alpha": -1}, r"alpha must be a number of at least 0, got -1"),
    ({"delta": 0}, r"delta must be a number above 0, got 0"),
    ({"delta": "wide"}, r"delta must be a number above 0, got 'wide'"),
    ({"focal_sets": "all"}, r"focal_sets must be a FocalSets or one of .*got 'all'"),
    ({"focal_sets": FocalSets.simple(5)}, r"focal_sets are over 5 clusters, but n_clusters is 2"),
    ({"n_init": 0}, r"n_init must be an integer of at least 1, got 0"),
    ({"max_iter": 0}, r"max_iter must be an integer of at least 1, got 0"),
    ({"tol": -1e-3}, r"tol must be a number of at least 0, got -0.001"),
    ({"callbacks": [3]}, r"callbacks must be a list of functions"),
    ({"init": "random"}, r'init must be (prototypes|masses) or "k-means\+\+", got \'random\''),
]
PROTOTYPES = [
    ({"metric": "cosine"}, r"metric must be one of euclidean, adaptive, got 'cosine'"),
    ({"init": X[:3]}, r"one prototype per cluster, shape \(2, 2\), got \(3, 2\)"),
    ({"init": [[0, 0], [np.nan, 1]]}, r"init must be finite, but prototype 1 is \[nan, 1.0\]"),
    ({"n_jobs": 0}, r"n_jobs must be an integer other than 0"),
]
FUZZIFIER = [
    ({"beta": 1.0}, r"beta must be a number above 1, got 1.0; 2 is the usual one"),
    ({"beta": "2"}, r"beta must be a number above 1, got '2'"),
]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [*SHARED, *PROTOTYPES, *FUZZIFIER, ({"pair_neighbours": 0}, r"pair_neighbours must be an")],
)
def test_ecm(parameters, message):
    with pytest.raises(ValueError, match=message):
        ECM(**({"n_clusters": 2} | parameters)).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *SHARED,
        *PROTOTYPES,
        ({"constraint_weight": 1.0}, r"constraint_weight must be below 1, got 1.0"),
        ({"constraint_weight": -0.1}, r"constraint_weight must be a number of at least 0"),
        ({"focal_sets": "select"}, r"one of \('simple', 'pairs', 'full'\), got 'select'"),
    ],
)
def test_cecm(parameters, message):
    with pytest.raises(ValueError, match=message):
        CECM(**({"n_clusters": 2} | parameters)).fit(X, must_link=[(0, 1)])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        *SHARED,
        *FUZZIFIER,
        ({"metric": "adaptive"}, r"metric must be one of precomputed, .*got 'adaptive'"),
        (
            {"init": CredalPartition.from_labels([0, 1] * 10)},
            r"init must have masses on ∅, \{0\}, \{1\}, Ω, got",
        ),
        ({"init": np.full((3, 4), 0.25)}, r"init has 3 objects, X has 20"),
    ],
)
def test_recm(parameters, message):
    with pytest.raises(ValueError, match=message):
        RECM(**({"n_clusters": 2} | parameters)).fit(D)


def test_data_that_are_no_squared_dissimilarities():
    with pytest.raises(ValueError, match=r"square matrix of squared dissimilarities, got shape"):
        RECM(2).fit(X)
    bent = D.copy()
    bent[3, 7] += 1
    with pytest.raises(ValueError, match=r"X must be symmetric, but X\[3, 7\] is .* X\[7, 3\] is"):
        RECM(2).fit(bent)
    with pytest.raises(ValueError, match=r"at 0 from itself, but X\[0, 0\] is 1"):
        RECM(2).fit(D + np.eye(20))
    with pytest.raises(ValueError, match=r"must not be negative, but X\[.*metric=.euclidean."):
        RECM(2).fit(-D)
    model = RECM(2, random_state=0).fit(D)
    with pytest.raises(ValueError, match="must not be negative"):
        model.predict_mass(-D)
    zero = np.concatenate([X, np.zeros((1, 2))])
    with pytest.raises(ValueError, match=r"cosine distance from row \d+ is not defined"):
        RECM(2, metric="cosine").fit(zero)


def test_links_weights_and_values():
    with pytest.raises(ValueError, match=r"cannot_link row 0, \(0, 2\), contradicts must_link"):
        CECM(2).fit(X, must_link=[(0, 1), (1, 2)], cannot_link=[(0, 2)])
    with pytest.raises(ValueError, match="sample_weight must be above zero"):
        ECM(2).fit(X, sample_weight=np.zeros(20))
    bad = X.copy()
    bad[4, 1] = np.inf
    with pytest.raises(ValueError, match=r"row 4, column 1 is inf"):
        ECM(2).fit(bad)
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got str"):
        ECM(2).fit(X, client="tcp://nowhere")


@pytest.mark.parametrize("kind", [ECM, CECM])
def test_an_adaptive_metric_needs_columns_that_vary_by_themselves(kind):
    with pytest.raises(ValueError, match=r"columns that vary, but column 2 is constant"):
        kind(2, metric="adaptive").fit(np.c_[X, np.ones(20)])
    with pytest.raises(ValueError, match=r"in all 3 directions, but some columns follow"):
        kind(2, metric="adaptive").fit(np.c_[X, X.sum(axis=1)])


def test_more_memory_than_there_is(monkeypatch):
    free = type("Memory", (), {"available": 1000})
    monkeypatch.setattr("psutil.virtual_memory", lambda: free)
    with pytest.raises(MemoryError, match=r"ECM of 20 objects with 32 focal sets needs about"):
        ECM(5, focal_sets="full").fit(X)
    with pytest.raises(MemoryError, match=r"CECM of 20 objects with 4 focal sets needs about"):
        CECM(2).fit(X)
    with pytest.raises(MemoryError, match=r"RECM of 20 objects needs about"):
        RECM(2, metric="euclidean").fit(X)


@pytest.mark.parametrize("model", [ECM(2, init=X[:2]), CECM(2, init=X[:2]), RECM(2, n_init=1)])
def test_running_out_of_iterations_is_said(model):
    model.set_params(max_iter=1, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 iterations"):
        model.fit(D if isinstance(model, RECM) else X)
    assert not model.converged_
    assert model.n_iter_ == 1


@pytest.mark.parametrize("kind", [ECM, CECM, RECM])
def test_every_iteration_is_reported(kind):
    news = []
    model = kind(2, n_init=1, random_state=0, callbacks=[news.append])
    model.fit(D if kind is RECM else X)
    last = news[-1]
    assert (last.sweep, last.objective) == (model.n_iter_, model.objective_)
    assert last.seconds_left == 0
    assert last.rows_per_second > 0
