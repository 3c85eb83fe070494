"""GaussianMixture: BIC's choice, scikit-learn's conventions, and what it refuses."""

from __future__ import annotations

import doctest
import pickle
import warnings

import numpy as np
import pytest
from mixture.mixture_cases import clouds
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from evdist.mixture import MODELS, GaussianMixture, fit_em, select_mixture
from evdist.mixture import estimator as module


# Some of these checks fit three distinct rows, or columns that depend on each other.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [GaussianMixture(n_components=2, covariance_models=("EEI", "VVV"), n_jobs=1, random_state=0)]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def test_the_example_of_the_docstring_is_true():
    finder = doctest.DocTestFinder(recurse=False)
    (example,) = finder.find(module.GaussianMixture, "GaussianMixture")
    assert len(example.examples) == 5
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.fixture(scope="module")
def plain() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 80)
    return np.array([[0, 0], [7, 0], [0, 7]])[y] + rng.normal(size=(240, 2)), y


def test_bic_chooses_model_and_number_of_components(plain):
    X, y = plain
    mixture = GaussianMixture(n_components=range(1, 5)).fit(X)
    assert (mixture.covariance_model_, mixture.n_components_) == ("EII", 3)
    assert mixture.bics_.shape == (4, 14)
    assert list(mixture.bics_.columns) == list(MODELS)
    assert mixture.bic_ == mixture.bics_.loc[3, "EII"] == mixture.bics_.to_numpy().max()
    np.testing.assert_allclose(
        mixture.bic_, 2 * mixture.loglik_ - mixture.parameters_.n_parameters * np.log(240)
    )
    assert adjusted_rand_score(y, mixture.predict(X)) == 1
    assert mixture.converged_
    assert mixture.failed_ is None


def test_what_is_fitted_fits_together(plain):
    X, _ = plain
    mixture = GaussianMixture(3, covariance_models="VVV").fit(X)
    P = mixture.predict_proba(X)
    assert P.shape == (240, 3)
    np.testing.assert_array_equal(P.argmax(axis=1), mixture.predict(X))
    np.testing.assert_allclose(mixture.score_samples(X).sum(), mixture.loglik_)
    np.testing.assert_allclose(mixture.score(X), mixture.loglik_ / 240)
    assert mixture.covariances_.shape == (3, 2, 2)
    assert fit_em(X, mixture.parameters_).n_iter <= 1
    again = pickle.loads(pickle.dumps(mixture))
    np.testing.assert_array_equal(again.predict_proba(X), P)


def test_models_that_cannot_differ_share_their_bic(plain):
    X, _ = plain
    one = select_mixture(X, 1).bics.loc[1]
    assert one.nunique() == 3
    assert one["EEE"] == one["VVV"]
    line = select_mixture(X[:, :1], 2).bics.loc[2]
    assert line.nunique() == 2
    assert line["VII"] == line["VEV"]


def test_a_repeated_row_is_a_row_of_more_weight(plain):
    X, _ = plain
    w = np.random.default_rng(2).integers(0, 3, len(X))
    options = {"n_components": [2, 3], "covariance_models": ["EEI", "VEV", "VVV"]}
    a = GaussianMixture(**options).fit(X, sample_weight=w)
    b = GaussianMixture(**options).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(a.bics_, b.bics_)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-8)


def test_the_order_of_rows_and_the_number_of_threads_make_no_difference(plain):
    X, _ = plain
    order = np.random.default_rng(3).permutation(len(X))
    a, b = (GaussianMixture(3, covariance_models="VVV", n_jobs=n).fit(Z)
            for n, Z in ((1, X), (2, X[order])))  # fmt: skip
    np.testing.assert_allclose(a.means_, b.means_)
    np.testing.assert_allclose(a.loglik_, b.loglik_)


@pytest.mark.parametrize("init", ["hierarchical", "k-means++"])
def test_larger_data_is_started_from_some_of_its_rows(init):
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=20_000)
    X = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])[y] + rng.normal(size=(20_000, 2))
    mixture = GaussianMixture(4, covariance_models=["EII", "VVV"], init=init, random_state=1)
    labels = mixture.fit(X).predict(X)
    assert adjusted_rand_score(y, labels) > 0.999
    assert mixture.covariance_model_ == "EII"
    np.testing.assert_array_equal(clone(mixture).fit(X).means_, mixture.means_)


def test_a_fit_that_failed_is_chosen_only_when_all_have():
    X, _ = clouds(60, 2, 2)
    X = np.c_[X, X[:, 0] + X[:, 1]]  # no full covariance has an inverse
    mixture = GaussianMixture(2, covariance_models=["EEI", "EEE", "VVV"]).fit(X)
    assert mixture.covariance_model_ == "EEI"
    assert np.isneginf(mixture.bics_[["EEE", "VVV"]].to_numpy()).all()
    with pytest.warns(ConvergenceWarning, match="No mixture was fitted well: a component has coll"):
        alone = GaussianMixture(2, covariance_models="VVV").fit(X)
    assert "collapsed" in alone.failed_
    assert np.isfinite(alone.predict_proba(X)).all()


def test_constant_columns_and_few_rows_do_no_harm():
    X = np.c_[np.arange(12.0) % 6, np.ones(12)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture = GaussianMixture(2).fit(X)
    assert np.isfinite(mixture.predict_proba(X)).all()
    assert np.isfinite(mixture.loglik_)


def test_too_few_iterations_are_told(plain):
    with pytest.warns(ConvergenceWarning, match="EM did not converge in max_iter=1 iterations"):
        mixture = GaussianMixture(4, covariance_models="VVV", max_iter=1, tol=0).fit(plain[0])
    assert not mixture.converged_
    assert mixture.n_iter_ == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_components": []}, "n_components must be an integer of at least 1"),
        ({"n_components": [2, 2.5]}, "n_components must be an integer of at least 1"),
        ({"covariance_models": "full"}, 'covariance_models must be "auto" or some of EII, VII'),
        ({"covariance_models": []}, 'covariance_models must be "auto" or some of EII, VII'),
        ({"init": "random"}, "init must be one of hierarchical, k-means"),
        ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
        ({"max_iter": 1.5}, "max_iter must be an integer of at least 1, got 1.5"),
        ({"tol": -1}, "tol must be a number of at least 0, got -1"),
        ({"n_jobs": 0}, "n_jobs must be an integer other than 0"),
        ({"n_components": 241}, "at most the number of different rows, got 241 for 240"),
    ],
)
def test_settings_are_checked(plain, wrong, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixture(**wrong).fit(plain[0])


def test_weights_are_checked(plain):
    X, _ = plain
    w = np.ones(240)
    for value, message in ((-1.0, "row 3 has -1.0"), (np.inf, "row 3 has inf")):
        w[3] = value
        with pytest.raises(ValueError, match=message):
            GaussianMixture().fit(X, sample_weight=w)
    with pytest.raises(ValueError, match="must not be zero for all rows"):
        GaussianMixture().fit(X, sample_weight=np.zeros(240))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(240,\)"):
        GaussianMixture().fit(X, sample_weight=np.ones(3))
    with pytest.raises(NotFittedError, match="not fitted yet"):
        GaussianMixture().predict(X)
