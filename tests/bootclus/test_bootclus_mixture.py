"""Bootclus with a mixture that the user brings: fit(X, sample_weight) and predict_proba."""

from __future__ import annotations

import numpy as np
import pytest
from bootclus.bootclus_cases import three_gaussians
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score

from evdist import Bootclus
from evdist.bootclus.replicates import bootstrap_models
from evdist.mixture import GaussianMixture


class TwoLevels(BaseEstimator):
    """Latent classes of binary data: a mixture of products of coins, fitted by EM."""

    def __init__(self, n_components=2, warm_start=False, seed=0):
        self.n_components = n_components
        self.warm_start = warm_start
        self.seed = seed

    def fit(self, X, y=None, sample_weight=None):
        X, w = np.asarray(X, float), np.ones(len(X)) if sample_weight is None else sample_weight
        if not (self.warm_start and hasattr(self, "coins_")):
            rng = np.random.default_rng(self.seed)
            self.coins_ = rng.uniform(0.3, 0.7, (self.n_components, X.shape[1]))
            self.parts_ = np.full(self.n_components, 1 / self.n_components)
        for _ in range(60):
            P = self.predict_proba(X) * w[:, None]
            self.parts_ = P.sum(axis=0) / P.sum()
            self.coins_ = (P.T @ X + 0.5) / (P.sum(axis=0)[:, None] + 1.0)
        return self

    def predict_proba(self, X):
        X = np.asarray(X, float)
        log = X @ np.log(self.coins_).T + (1 - X) @ np.log1p(-self.coins_).T + np.log(self.parts_)
        P = np.exp(log - log.max(axis=1, keepdims=True))
        return P / P.sum(axis=1, keepdims=True)


def binary(n=100, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return (rng.uniform(size=(n, 8)) < np.where(y[:, None] == 0, 0.2, 0.8)).astype(float), y


def test_latent_classes_of_binary_data():
    X, y = binary()
    model = Bootclus(mixture=TwoLevels(), n_bootstrap=20, random_state=0, n_jobs=2).fit(X)
    assert isinstance(model.mixture_, TwoLevels)
    assert model.covariance_model_ is None
    assert model.n_clusters_ == 2
    assert adjusted_rand_score(y, model.labels_) > 0.7
    assert model.objective_ < model.history_[0]
    near = model.predict_mass(X) - model.credal_partition_.mass
    assert np.abs(near).mean() < 0.01


def test_threads_make_no_difference():
    X, _ = binary(60)
    a, b = (
        Bootclus(mixture=TwoLevels(), n_bootstrap=12, random_state=0, n_jobs=j).fit(X)
        for j in (1, 2)
    )
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)


def test_warm_starts_go_on_from_the_full_solution():
    X, _ = binary(60)
    fitted = TwoLevels(warm_start=False).fit(X)
    found = bootstrap_models(X, fitted, 3, 0)
    assert all(m.warm_start for m in found.replicates.models)
    assert not fitted.warm_start


def test_the_gaussian_mixture_itself_may_be_brought():
    X, _ = three_gaussians(120)
    model = Bootclus(
        mixture=GaussianMixture(3, covariance_models="EII", n_init=1, random_state=0),
        n_bootstrap=5, random_state=0,
    ).fit(X)  # fmt: skip
    assert model.credal_partition_.mass.shape == (120, 7)


def test_one_without_weights_is_refused():
    X, _ = three_gaussians(20)

    class Deaf(BaseEstimator):
        def fit(self, X, y=None):
            return self

        def predict_proba(self, X):
            return np.ones((len(X), 1))

    with pytest.raises(TypeError, match=r"fit\(X, sample_weight=\.\.\.\).*got Deaf"):
        Bootclus(mixture=Deaf()).fit(X)


def test_one_that_raises_or_gives_nan_is_drawn_again():
    class Shaky(TwoLevels):
        def fit(self, X, y=None, sample_weight=None):
            if sample_weight is not None and sample_weight[0] == 0:
                raise ValueError("object 0 is missing")
            return super().fit(X, y, sample_weight)

    X, _ = binary(40)
    found = bootstrap_models(X, Shaky().fit(X), 10, 0)
    assert found.n_failed > 0
    assert found.replicates.size == 10


def test_it_cannot_be_saved(tmp_path):
    X, _ = binary(40)
    model = Bootclus(mixture=TwoLevels(), n_bootstrap=4, random_state=0).fit(X)
    with pytest.raises(TypeError, match="TwoLevels cannot be saved without pickle"):
        model.save(tmp_path / "model")
