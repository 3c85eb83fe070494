"""SECM: the definition of its distances, descent, ECM without neighbours, less noise than ECM."""

from __future__ import annotations

import doctest
from itertools import product

import numpy as np
import pytest
from ecm.noisy_image import error, noisy_image
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerances import ROUNDING, SINGLE

from evdist import ECM, SECM, FocalSets
from evdist.ecm.secm import SpatialModel, window_rows

WEIGHTS = "a weight of zero is refused; k-means++ draws other seeds from repeated objects"


@parametrize_with_checks(
    [SECM(2, n_init=1, n_jobs=1, random_state=0)],
    expected_failed_checks=lambda _: {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(SECM, "SECM")
    assert len(example.examples) >= 6
    assert doctest.DocTestRunner().run(example).failed == 0


def slow_distances(X, shape, V, radius, eta):
    """(|x_i - v|^2 + eta mean over the window of |x_r - v|^2) / (1 + eta), pixel by pixel."""
    image, own = X.reshape(*shape, -1), ((X[:, None] - V) ** 2).sum(axis=2)
    out = np.empty_like(own)
    for i, place in enumerate(np.ndindex(*shape)):
        window = product(range(-radius, radius + 1), repeat=len(shape))
        others = [tuple(np.add(place, shift)) for shift in window if any(shift)]
        around = [
            image[other]
            for other in others
            if all(0 <= p < m for p, m in zip(other, shape, strict=True))
        ]
        if around:
            mean = ((np.array(around)[:, None] - V) ** 2).sum(axis=2).mean(axis=0)
            out[i] = (own[i] + eta * mean) / (1 + eta)
        else:
            out[i] = own[i]
    return out


@pytest.mark.parametrize("shape", [(5, 4), (7,), (1, 6), (3, 4, 2), (1, 1), (2, 9)])
@pytest.mark.parametrize(("radius", "eta"), [(1, 4.0), (2, 0.7), (3, 0.0)])
def test_distances_are_those_of_the_window(shape, radius, eta):
    rng = np.random.default_rng(0)
    X, V = 100 + rng.normal(size=(int(np.prod(shape)), 2)), 100 + rng.normal(size=(3, 2))
    rows = window_rows(X, shape, radius, eta)
    D = ((rows[:, None, :-1] - V) ** 2).sum(axis=2) + rows[:, -1:] ** 2
    np.testing.assert_allclose(D, slow_distances(X, shape, V, radius, eta), rtol=1e-10)


def test_masses_and_objective_follow_from_the_distances():
    """Slides, ECM's update equations, with the distances of the windows."""
    rng = np.random.default_rng(1)
    X, V = rng.normal(size=(30, 2)), rng.normal(size=(3, 2))
    sets, delta, alpha, beta = FocalSets.full(3), 2.0, 0.7, 1.8
    rows = window_rows(X, (5, 6), 1, 3.0)
    model = SpatialModel(sets, np.column_stack([V, np.ones(3)]), alpha, beta, delta)
    b = np.full((30, len(sets)), delta**2)
    for j, members in enumerate(sets.sets):
        if members:
            centre = V[list(members)].mean(axis=0, keepdims=True)
            b[:, [j]] = len(members) ** alpha * slow_distances(X, (5, 6), centre, 1, 3.0)
    M = b ** (-1 / (beta - 1))
    M /= M.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.masses(rows, np.float64), M, **ROUNDING)
    objective = model.read(model.sums(rows)).objective
    assert objective == pytest.approx((M**beta * b).sum(), rel=1e-12)


def test_a_step_minimises_the_objective_for_the_masses():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    rows = window_rows(X, (5, 8), 1, 4.0)
    sets = FocalSets.pairs(3)
    model = SpatialModel(sets, np.column_stack([rng.normal(size=(3, 2)), np.zeros(3)]), delta=3.0)
    M = model.masses(rows, np.float64)

    def cost(V: np.ndarray) -> float:
        total = 0.0
        for j, members in enumerate(sets.sets[1:], start=1):
            centre = V[list(members)].mean(axis=0, keepdims=True)
            D = slow_distances(X, (5, 8), centre, 1, 4.0)[:, 0]
            total += float((len(members) * M[:, j] ** 2 * D).sum())
        return total

    V = model.step(model.read(model.sums(rows))).prototypes
    assert (V[:, -1] == 0).all()
    assert all(cost(V[:, :2] + 0.01 * rng.normal(size=(3, 2))) > cost(V[:, :2]) for _ in range(20))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["simple", "pairs", "full"]), st.floats(0, 9))
def test_the_objective_never_rises(seed, focal_sets, eta):
    X = np.random.default_rng(seed).normal(size=(42, 2))
    model = SECM(
        3, image_shape=(6, 7), spatial_weight=eta, focal_sets=focal_sets, n_init=1, delta=2,
        tol=1e-3, max_iter=1000, random_state=seed,
    ).fit(X)  # fmt: skip
    assert (np.diff(model.history_) <= 0).all()


@pytest.mark.parametrize("given", [{}, {"image_shape": (20, 15), "spatial_weight": 0.0}])
def test_without_neighbours_it_is_ecm(given):
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0, 0], [6, 0], [0, 6]], 100, 0)
    plain, spatial = ECM(3, init=X[::100]).fit(X), SECM(3, init=X[::100], **given).fit(X)
    np.testing.assert_allclose(
        spatial.credal_partition_.mass, plain.credal_partition_.mass, **SINGLE
    )
    np.testing.assert_allclose(spatial.prototypes_, plain.prototypes_, rtol=1e-9)
    np.testing.assert_allclose(spatial.predict_mass(X), plain.predict_mass(X), **SINGLE)


def test_a_turned_image_gives_the_turned_segments():
    _, X = noisy_image(16, 0.3, 2)
    start = np.array([[0.0, 0], [1, 0], [0, 1]])
    upright = SECM(3, image_shape=(16, 16), init=start).fit(X)
    turned = X.reshape(16, 16, 2).transpose(1, 0, 2)[::-1].reshape(-1, 2)
    model = SECM(3, image_shape=(16, 16), init=start).fit(turned)
    expected = upright.credal_partition_.mass.reshape(16, 16, -1).transpose(1, 0, 2)[::-1]
    np.testing.assert_allclose(
        model.credal_partition_.mass.reshape(expected.shape), expected, **SINGLE
    )


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("noise", [0.3, 0.4])
def test_noise_costs_it_fewer_pixels_than_ecm_and_a_gaussian_mixture(channels, noise):
    truth, X = noisy_image(64, noise, channels)
    spatial = error(truth, SECM(3, image_shape=truth.shape, random_state=0).fit(X).labels_)
    plain = error(truth, ECM(3, random_state=0).fit(X).labels_)
    mixture = error(truth, GaussianMixture(3, n_init=5, random_state=0).fit_predict(X))
    assert spatial < 0.5 * min(plain, mixture)
    assert spatial < 0.03


def test_pixels_on_an_edge_are_less_sure():
    truth, X = noisy_image(32, 0.1, 2)
    partition = SECM(3, image_shape=(32, 32), random_state=0).fit(X).credal_partition_
    largest = np.asarray(partition.mass).max(axis=1).reshape(32, 32)
    edge = np.zeros_like(truth, dtype=bool)
    edge[:, 1:] |= np.diff(truth, axis=1) != 0
    edge[1:] |= np.diff(truth, axis=0) != 0
    assert largest[edge].mean() < 0.8 * largest[~edge].mean()


def test_it_is_saved_with_the_model_of_its_pixels(tmp_path):
    _, X = noisy_image(16, 0.2, 1)
    model = SECM(3, image_shape=(16, 16), random_state=0).fit(X)
    assert model.prototypes_.shape == (3, 1)
    model.save(tmp_path / "model")
    twin = SECM.load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict_mass(X), model.predict_mass(X))
    np.testing.assert_array_equal(twin.labels_, model.labels_)


@pytest.mark.process
def test_a_cluster_changes_no_bit(two_workers):
    _, X = noisy_image(128, 0.4, 2)
    model = SECM(3, image_shape=(128, 128), init=[[0, 0], [1, 0], [0, 1]])
    here = model.fit(X).credal_partition_.mass
    there = model.fit(X, client=two_workers).credal_partition_.mass
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"image_shape": (5, 7)}, "an image of 30 pixels, one for each row of X, got 5 x 7"),
        ({"image_shape": (5, 0)}, "image_shape must be an integer of at least 1, got 0"),
        ({"radius": 0}, "radius must be an integer of at least 1, got 0"),
        ({"spatial_weight": -1}, "spatial_weight must be a number of at least 0, got -1"),
        ({"beta": 1}, "beta must be a number above 1"),
        ({"init": np.zeros((3, 3))}, "init must be one prototype per cluster"),
    ],
)
def test_what_cannot_be_is_refused(parameters, sentence):
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=sentence):
        SECM(**{"n_clusters": 3, **parameters}).fit(X)
