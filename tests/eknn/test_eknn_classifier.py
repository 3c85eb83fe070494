"""EKNNClassifier: Dempster's rule, gradients, soft labels, the printed error, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from sklearn.datasets import load_iris, make_blobs

from evdist import CredalPartition, EKNNClassifier, FocalSets
from evdist.belief import contour, dempster, discount
from evdist.eknn.labels import CrispLabels, SoftLabels

ALPHA = 0.9


@pytest.fixture
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Squared distances of 40 objects to 5 neighbours, which these are, and classes."""
    rng = np.random.default_rng(0)
    d2, who = rng.gamma(1.0, size=(40, 5)), rng.integers(0, 40, (40, 5)).astype(np.int32)
    return d2, who, rng.integers(0, 3, 40).astype(np.int32)


def soft_masses(n: int) -> np.ndarray:
    mass = np.zeros((n, 8))
    mass[:, 1:] = np.random.default_rng(1).dirichlet(np.ones(7), n)
    return mass


# ---------------------------------------------------------------------- the rule
def test_masses_are_those_of_dempsters_rule(drawn):
    d2, who, y = drawn
    gamma, sets = np.array([0.5, 1.0, 2.0]), FocalSets.simple(3)
    got = CrispLabels(y, 3).masses(d2, who, ALPHA, gamma)
    for i in range(10):
        m = np.array([0, 0, 0, 0, 1.0])
        for e in range(5):
            k = y[who[i, e]]
            one = np.zeros(5)
            one[1 + k] = ALPHA * np.exp(-gamma[k] * d2[i, e])
            one[-1] = 1 - one[1 + k]
            m, _ = dempster([m, one], sets)
        np.testing.assert_allclose(got[i], m, atol=1e-12)


def test_soft_labels_are_discounted_and_combined(drawn):
    d2, who, _ = drawn
    mass, full = soft_masses(40), FocalSets.full(3)
    got = SoftLabels.of(mass, full).masses(d2, who, ALPHA, np.array([0.7]))
    for i in range(10):
        m = np.zeros(8)
        m[-1] = 1.0
        for e in range(5):
            reliability = ALPHA * np.exp(-0.7 * d2[i, e])
            one = discount(mass[who[i, e]], full, 1 - reliability)
            m, _ = dempster([m, one], full)
        np.testing.assert_allclose(got[i], m, atol=1e-12)


def test_soft_labels_that_are_sure_are_crisp_ones(drawn):
    d2, who, y = drawn
    sure = CredalPartition.from_labels(y, 3)
    soft = SoftLabels.of(np.asarray(sure.mass), sure.focal_sets)
    crisp, gamma = CrispLabels(y, 3), np.array([0.7])
    got, expected = (
        soft.masses(d2, who, ALPHA, gamma),
        crisp.masses(d2, who, ALPHA, np.full(3, 0.7)),
    )
    np.testing.assert_allclose(got[:, [0, 1, 2, 4, 7]], expected, atol=1e-12)
    ours, theirs = soft.loss(d2, who, ALPHA, gamma), crisp.loss(d2, who, ALPHA, np.full(3, 0.7))
    assert ours[0] == pytest.approx(theirs[0], rel=1e-12)
    assert ours[1][0] == pytest.approx(theirs[1].sum(), rel=1e-9)


# ---------------------------------------------------------------------- the loss
def test_the_loss_is_the_squared_error_of_the_plausibilities(drawn):
    d2, who, y = drawn
    labels, gamma = CrispLabels(y, 3), np.array([0.5, 1.0, 2.0])
    pl = contour(labels.masses(d2, who, ALPHA, gamma), labels.focal_sets)
    expected = ((pl - np.eye(3)[y]) ** 2).sum()
    assert labels.loss(d2, who, ALPHA, gamma)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("soft", [False, True])
def test_gradients_are_those_of_finite_differences(drawn, soft):
    d2, who, y = drawn
    labels = SoftLabels.of(soft_masses(40), FocalSets.full(3)) if soft else CrispLabels(y, 3)
    gamma = np.array([0.7]) if soft else np.array([0.5, 1.0, 2.0])
    slope = labels.loss(d2, who, ALPHA, gamma)[1]
    other = approx_fprime(gamma, lambda g: labels.loss(d2, who, ALPHA, g)[0], 1e-7)
    np.testing.assert_allclose(slope, other, rtol=1e-4)


def test_learning_never_raises_the_objective():
    X, y = make_blobs(200, centers=4, cluster_std=3.0, random_state=1)
    model = EKNNClassifier(8).fit(X, y)
    assert model.converged_
    assert (np.diff(model.history_) <= 0).all()
    assert model.objective_ < model.history_[0]


def test_units_do_not_matter():
    X, y = make_blobs(150, centers=3, cluster_std=3.0, random_state=1)
    a, b = EKNNClassifier(8).fit(X, y), EKNNClassifier(8).fit(1000 * X, y)
    np.testing.assert_allclose(a.gamma_, 1e6 * b.gamma_, rtol=1e-3)
    np.testing.assert_allclose(a.predict_mass(X), b.predict_mass(1000 * X), atol=1e-4)


# ---------------------------------------------------------------------- as a classifier
def test_ionosphere_is_learnt_as_well_as_the_slides_print(shared):
    """Slides on evidential machine learning (2021): K = 10, first 176 train, error 0.074."""
    data = pd.read_csv(shared / "data" / "ionosphere.csv.gz")
    X, y = data.drop(columns="label").to_numpy(), data.label.to_numpy()
    model = EKNNClassifier(10).fit(X[:176], y[:176])
    assert 1 - model.score(X[176:], y[176:]) <= 0.0743


def test_classes_may_be_words():
    X, y = load_iris(return_X_y=True)
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    model = EKNNClassifier(10).fit(X, words)
    assert model.score(X, words) > 0.95
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.classes_[probability.argmax(axis=1)], model.predict(X))


def test_soft_labels_say_what_experts_do_not_know():
    X, y = make_blobs(200, centers=[[0, 0], [6, 0], [0, 6]], random_state=2)
    unsure = np.random.default_rng(0).random(200) < 0.5
    mass = np.asarray(CredalPartition.from_labels(y, 3).mass).astype(float)
    sets = FocalSets.simple(3)
    wide = np.concatenate([mass[:, :4], np.zeros((200, 1))], axis=1)
    wide[unsure] = [0, 0, 0, 0, 1]
    model = EKNNClassifier(10).fit(X, CredalPartition(wide, sets))
    assert (model.predict(X) == y).mean() > 0.97
    assert model.predict_mass(X).shape == (200, 8)


def test_far_objects_are_not_classified():
    X, y = make_blobs(100, centers=2, random_state=0)
    model = EKNNClassifier(5, gamma=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict_mass([[1e4, 1e4]]), [[0, 0, 0, 1]], atol=1e-9)


def test_gamma_may_be_given():
    X, y = make_blobs(60, centers=2, random_state=0)
    model = EKNNClassifier(5, gamma=[0.1, 0.2]).fit(X, y)
    np.testing.assert_array_equal(model.gamma_, [0.1, 0.2])
    assert model.n_iter_ == 0


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1"),
        ({"alpha": 1.0}, "alpha must be a number above 0 and below 1, got 1.0"),
        ({"gamma": "guess"}, 'gamma must be "learn" or positive numbers'),
        ({"gamma": -1.0}, 'gamma must be "learn", a positive number or 2 of them'),
        ({"gamma": [1, 2, 3]}, 'gamma must be "learn", a positive number or 2 of them'),
        ({"tol": -1}, "tol must be a number of at least 0"),
    ],
)
def test_what_cannot_be_is_refused(parameters, sentence):
    X, y = make_blobs(30, centers=2, random_state=0)
    with pytest.raises(ValueError, match=sentence):
        EKNNClassifier(**parameters).fit(X, y)


def test_soft_labels_must_fit():
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.raises(ValueError, match="y has soft labels of 11 objects, X has 12"):
        EKNNClassifier().fit(X, CredalPartition.from_labels([0, 1] * 5 + [0]))
    with pytest.raises(ValueError, match="at most 10 classes, got 11"):
        EKNNClassifier().fit(X, CredalPartition.from_labels([*range(11), 0]))
