"""Defaults that follow the data: delta of the family, BPEC's metric, ECM's beta."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import BPEC, CCM, ECM, MECM, ECMdd


@pytest.fixture(scope="module")
def far_apart():
    """Clusters whose coordinates are hundreds of thousands, as those of S1."""
    return make_blobs(200, centers=1e5 * np.array([[0, 0], [9, 0], [0, 9]]), cluster_std=1e5,
                      random_state=0)  # fmt: skip


@pytest.mark.parametrize(
    "model",
    [
        BPEC(3),
        CCM(3, random_state=0),
        ECMdd(3, n_init=2, random_state=0),
        ECMdd(3, weighted=True, n_init=2, random_state=0),
        MECM(3, n_init=2, random_state=0),
    ],
    ids=["bpec", "ccm", "ecmdd", "wecmdd", "mecm"],
)
def test_delta_follows_the_units(far_apart, model, tmp_path):
    """With delta = 10, the default of R's evclust, all these objects would be outliers."""
    X, y = far_apart
    model.fit(X)
    assert np.asarray(model.credal_partition_.outliers()).mean() < 0.05
    assert adjusted_rand_score(y, model.labels_) > 0.9
    labels, mass = model.labels_, np.asarray(model.credal_partition_.mass)
    small = model.fit(X / 1e5)
    np.testing.assert_array_equal(small.labels_, labels)
    np.testing.assert_allclose(small.credal_partition_.mass, mass, atol=1e-4)
    small.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    assert again.delta_ == small.delta_
    np.testing.assert_array_equal(again.predict_mass(X[:9]), small.predict_mass(X[:9]))


def test_the_root_mean_square_of_the_distances(far_apart):
    X, _ = far_apart
    square = ((X[:, None] - X) ** 2).sum(axis=2)
    off = square[~np.eye(len(X), dtype=bool)].mean()
    assert ECMdd(3, n_init=1, random_state=0).fit(X).delta_ == pytest.approx(np.sqrt(off))
    assert MECM(3, n_init=1, random_state=0).fit(X).delta_ == pytest.approx(np.sqrt(off))
    assert CCM(3, random_state=0).fit(X).delta_ == pytest.approx(np.sqrt(square.mean()))


@pytest.fixture(scope="module")
def wide():
    """Four clusters in sixty dimensions."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 60)) + np.repeat(np.eye(60)[:4] * 2, 50, axis=0)


def test_prototypes_that_have_met_bring_a_hint_about_beta(wide):
    with pytest.warns(UserWarning, match=r"prototypes of clusters .* have met.*beta=1.2"):
        ECM(4, beta=2, random_state=0).fit(wide)


def test_beta_is_harder_in_many_dimensions(wide):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ECM(4, random_state=0).fit(wide).beta_ == 1.1
    assert ECM(2, random_state=0).fit(wide[:, :2]).beta_ == 2.0
    # Their formula for n = 200 and d = 10: 1 + 29.14 / 100 + .30465 x 10^-.3285.
    assert ECM(2, random_state=0).fit(wide[:, :10]).beta_ == pytest.approx(1.4344, abs=1e-4)


def test_a_hundred_clusters_do_not_meet():
    """With beta = 2 the index is .05."""
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 100
    X = 3 * rng.normal(size=(100, 10))[y] + rng.normal(size=(4000, 10))
    assert adjusted_rand_score(y, ECM(100, n_init=2, random_state=0).fit(X).labels_) > 0.9
