"""EM of one model: monotone, weighted, equivariant, the same bits however it is run."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mixture.mixture_cases import clouds, start
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture as Reference

from evdist.mixture import MODELS, EMResult, Parameters, fit_em, fit_em_many, from_posterior


def close(a: Parameters, b: Parameters, rtol: float = 1e-8) -> None:
    np.testing.assert_allclose(a.weights, b.weights, rtol=rtol)
    np.testing.assert_allclose(a.means, b.means, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.covariances, b.covariances, rtol=rtol, atol=rtol)


def same_bits(a: EMResult, b: EMResult) -> None:
    for name in ("loglik", "n_iter", "converged", "failed"):
        assert getattr(a, name) == getattr(b, name)
    for name in ("weights", "means", "volumes", "shapes", "orientations"):
        np.testing.assert_array_equal(getattr(a.parameters, name), getattr(b.parameters, name))


@pytest.mark.parametrize("model", MODELS)
def test_the_likelihood_never_falls(model):
    X, y = clouds()
    w = np.random.default_rng(5).integers(0, 4, len(X))
    at = fit_em(X, start(X, y, model), sample_weight=w, tol=0, max_iter=1)
    for _ in range(60):
        then = fit_em(X, at.parameters, sample_weight=w, tol=0, max_iter=1)
        assert then.loglik >= at.loglik - 1e-10 * abs(at.loglik)
        at = then


@pytest.mark.parametrize("model", MODELS)
def test_the_reported_likelihood_is_that_of_the_parameters(model):
    X, y = clouds()
    w = np.random.default_rng(1).random(len(X))
    fit = fit_em(X, start(X, y, model), sample_weight=w)
    p = fit.parameters
    assert fit.converged
    assert fit.failed is None
    assert p.model == model
    np.testing.assert_allclose(p.weights.sum(), 1)
    np.testing.assert_allclose(p.loglik(X, w), fit.loglik)
    by_hand = np.log(sum(
        pi * multivariate_normal(m, S).pdf(X)
        for pi, m, S in zip(p.weights, p.means, p.covariances, strict=True)
    ))  # fmt: skip
    np.testing.assert_allclose(p.log_density(X), by_hand)


@pytest.mark.parametrize(
    ("model", "kind"), [("VII", "spherical"), ("VVI", "diag"), ("EEE", "tied"), ("VVV", "full")]
)
def test_scikit_learns_four_models_are_ours_step_by_step(model, kind):
    X, y = clouds(150, 2)
    at = start(X, y, model)
    inverse = np.linalg.inv(at.covariances)
    precision = {"spherical": inverse[:, 0, 0], "diag": np.diagonal(inverse, axis1=1, axis2=2),
                 "tied": inverse[0], "full": inverse}[kind]  # fmt: skip
    theirs = Reference(
        3, covariance_type=kind, reg_covar=0, tol=0, max_iter=1, weights_init=at.weights,
        means_init=at.means, precisions_init=precision, init_params="random", random_state=0,
    )  # fmt: skip
    for steps in (1, 2, 7):
        theirs.set_params(max_iter=steps)
        with pytest.warns(match="did not converge"):
            theirs.fit(X)
        ours = fit_em(X, at, tol=0, max_iter=steps).parameters
        np.testing.assert_allclose(ours.weights, theirs.weights_, rtol=1e-9)
        np.testing.assert_allclose(ours.means, theirs.means_, rtol=1e-9)
        np.testing.assert_allclose(ours.log_density(X), theirs.score_samples(X), rtol=1e-9)
        np.testing.assert_allclose(ours.posterior(X), theirs.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("model", MODELS)
@given(seed=st.integers(0, 10))
def test_whole_weights_are_repeated_rows(model, seed):
    X, y = clouds(120, 2, seed=seed)
    w = np.random.default_rng(seed).integers(0, 4, len(X))
    at = start(X, y, model)
    weighted = fit_em(X, at, sample_weight=w, tol=0, max_iter=5)
    repeated = fit_em(np.repeat(X, w, axis=0), at, tol=0, max_iter=5)
    np.testing.assert_allclose(weighted.loglik, repeated.loglik)
    close(weighted.parameters, repeated.parameters)


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_rows_makes_no_difference(model):
    X, y = clouds()
    at, order = start(X, y, model), np.random.default_rng(0).permutation(len(X))
    a, b = (fit_em(Z, at, tol=0, max_iter=10) for Z in (X, X[order]))
    close(a.parameters, b.parameters)


#: Transformations x -> T x + t after which each model is the same model.
ANY, TURN, STRETCH = "any", "turn", "stretch"
EQUIVARIANT = {
    ANY: ("EEE", "VEE", "EVV", "VVV"),
    TURN: ("EII", "VII", "EVE", "VVE", "EEV", "VEV"),
    STRETCH: ("EEI", "VEI", "EVI", "VVI"),
}


@pytest.mark.parametrize(("kind", "model"), [(k, m) for k, ms in EQUIVARIANT.items() for m in ms])
def test_a_change_of_coordinates_changes_the_coordinates_alone(kind, model):
    X, y = clouds()
    rng = np.random.default_rng(3)
    T = rng.normal(size=(3, 3))
    if kind == TURN:
        T = 1e3 * np.linalg.qr(T)[0]
    elif kind == STRETCH:
        T = np.diag([1e3, 1.0, 1e-3])
    Y = X @ T.T + 10
    # From one partition, to the end: what iterates inside the M-step starts at different places.
    a, b = (fit_em(Z, start(Z, y, model), tol=1e-13, max_iter=5000) for Z in (X, Y))
    expected = a.loglik - len(X) * np.linalg.slogdet(T)[1]
    np.testing.assert_allclose(b.loglik, expected, rtol=1e-8)
    np.testing.assert_allclose(b.parameters.posterior(Y), a.parameters.posterior(X), atol=2e-4)


@pytest.mark.parametrize("model", MODELS)
def test_many_replicates_at_once_are_the_same_bits_as_one_by_one(model):
    X, y = clouds(150, 2)
    at = fit_em(X, start(X, y, model)).parameters
    counts = np.random.default_rng(0).multinomial(150, np.full(150, 1 / 150), size=7)
    for one, w in zip(fit_em_many(X, at, counts), counts, strict=True):
        same_bits(one, fit_em(X, at, sample_weight=w))


def test_threads_make_no_difference():
    X, y = clouds(40_000, 2)
    at = start(X, y, "VVV")
    one, two = (fit_em(X, at, max_iter=5, tol=0, n_jobs=n) for n in (1, 2))
    same_bits(one, two)


def test_rows_of_weight_zero_are_as_good_as_absent():
    X, y = clouds()
    at, w = start(X, y, "VVV"), np.ones(len(X))
    w[::3] = 0
    same_bits(fit_em(X, at, sample_weight=w), fit_em(X[w > 0], at))


def test_tight_components_far_from_the_origin_lose_no_digits():
    X, y = clouds()
    near, far = (fit_em(X + 1e6 * s, start(X + 1e6 * s, y, "VVV"), tol=0, max_iter=20)
                 for s in (0, 1))  # fmt: skip
    np.testing.assert_allclose(far.parameters.covariances, near.parameters.covariances, rtol=1e-6)


# ------------------------------------------------------------------ collapse
@pytest.mark.parametrize("model", MODELS)
def test_a_component_on_one_repeated_point_is_said_to_have_failed_and_stays_finite(model):
    X, y = clouds(60, 2, 2)
    X, y = np.r_[X, np.full((20, 2), 9.0)], np.r_[y, np.full(20, 2)]
    fit = fit_em(X, from_posterior(X, np.eye(3)[y], model))
    assert np.isfinite(fit.loglik)
    assert np.isfinite(fit.parameters.covariances).all()
    np.testing.assert_allclose(fit.parameters.posterior(X).sum(axis=1), 1)
    if model in ("EII", "EEI", "EEE", "EEV"):
        assert fit.failed is None
    else:
        assert "collapsed" in fit.failed


def test_a_component_that_loses_its_objects_is_said_to_have_failed():
    X, y = clouds(60, 2, 2)
    at = from_posterior(X, np.eye(2)[y], "EII")
    away = Parameters("EII", at.weights, [at.means[0], [1e6, 1e6]], at.volumes, at.shapes,
                      at.orientations)  # fmt: skip
    fit = fit_em(X, away)
    assert fit.failed == "component 1 has lost all its weight"
    assert np.isfinite(fit.loglik)


@given(st.integers(0, 1000), st.sampled_from(MODELS), st.integers(4, 12))
def test_nothing_is_ever_nan(seed, model, n):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 3)).astype(float)
    y = np.arange(n) % 3
    w = rng.integers(0, 3, n).astype(float)
    w[0] += 1
    fit = fit_em(X, from_posterior(X, np.eye(3)[y], model), sample_weight=w, max_iter=50)
    p = fit.parameters
    assert np.isfinite(fit.loglik)
    for value in (p.weights, p.means, p.covariances, p.posterior(X), p.log_density(X)):
        assert np.isfinite(value).all()


def test_a_row_at_any_distance_has_a_posterior():
    X, y = clouds()
    P = start(X, y, "VVV").posterior(np.array([[1e200, -1e200, 0.0], [0.0, 0.0, 0.0]]))
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1)


# ------------------------------------------------------------------ parameters and errors
def test_parameters_are_pickled_and_cannot_be_changed():
    X, y = clouds()
    p = start(X, y, "VEV")
    q = pickle.loads(pickle.dumps(p))
    np.testing.assert_array_equal(q.posterior(X), p.posterior(X))
    with pytest.raises(ValueError, match="read-only"):
        p.means[0] = 0
    with pytest.raises(AttributeError, match="cannot assign"):
        p.model = "VVV"  # type: ignore[misc]


def test_what_cannot_be_fitted_is_refused_with_a_reason():
    X, y = clouds(30)
    p = start(X, y, "VVV")
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\) for these parameters"):
        fit_em(X[:, :2], p)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(30,\), got \(29,\)"):
        fit_em(X, p, sample_weight=np.ones(29))
    with pytest.raises(ValueError, match=r"counts must have shape \(B, 30\)"):
        fit_em_many(X, p, np.ones(30))
    with pytest.raises(ValueError, match=r"not negative, but row 4 has -1.0 \(replicate 1\)"):
        fit_em_many(X, p, np.r_[np.ones((1, 30)), np.where(np.arange(30) == 4, -1.0, 1.0)[None]])
    with pytest.raises(ValueError, match="not all be zero, but those of replicate 0 are"):
        fit_em(X, p, sample_weight=np.zeros(30))
    Z = X.copy()
    Z[7, 1] = np.nan
    with pytest.raises(ValueError, match="X must be finite, but row 7"):
        fit_em(Z, p)
    with pytest.raises(ValueError, match="Component 1 has no weight"):
        from_posterior(X, np.eye(2)[np.zeros(30, dtype=int)], "EII")
    with pytest.raises(ValueError, match="model must be one of EII"):
        Parameters("full", p.weights, p.means, p.volumes, p.shapes, p.orientations)
    with pytest.raises(ValueError, match=r"weights must have shape \(3,\)"):
        Parameters("VVV", p.weights[:2], p.means, p.volumes, p.shapes, p.orientations)
    with pytest.raises(ValueError, match=r"weights must be above zero, got 0.0"):
        Parameters("VVV", [0, 0.5, 0.5], p.means, p.volumes, p.shapes, p.orientations)
    with pytest.raises(ValueError, match=r"X must have shape \(n, 3\)"):
        p.posterior(X[:, :1])
