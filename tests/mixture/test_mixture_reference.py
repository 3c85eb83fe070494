"""Mixtures against mclust's results on iris, and the choices that the papers print."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from evdist.mixture import MODELS, fit_em, from_posterior, select_mixture


@pytest.fixture(scope="module")
def iris(shared) -> np.ndarray:
    return pd.read_csv(shared / "data/iris.csv").iloc[:, :4].to_numpy(float)


@pytest.fixture(scope="module")
def mclust(shared) -> dict:
    return json.loads((shared / "reference/gmm_iris.json").read_text())["models"]


@pytest.fixture(scope="module")
def bics(iris) -> pd.DataFrame:
    return select_mixture(iris, range(1, 5)).bics


@pytest.mark.parametrize("model", MODELS)
def test_iris_three_components_no_lower_than_mclust(model, bics, mclust):
    """Ten reach the same maximum, to 1e-5 or better; EVE, VVE, EEV and EVV a higher one."""
    assert bics.loc[3, model] >= mclust[model]["bic"] * (1 + 1e-5)


#: Models for which mclust's classification leads to mclust's maximum: all but those whose EM ends
#: higher from there.
@pytest.mark.parametrize("model", [m for m in MODELS if m not in ("EEV", "VVE")])
def test_from_mclusts_classification_em_ends_at_mclusts_parameters(model, iris, mclust):
    theirs = mclust[model]
    labels = np.array(theirs["classification"]) - 1
    fit = fit_em(iris, from_posterior(iris, np.eye(3)[labels], model), tol=1e-9)
    p = fit.parameters
    assert fit.loglik >= theirs["loglik"]
    np.testing.assert_allclose(fit.loglik, theirs["loglik"], rtol=1e-4)
    np.testing.assert_allclose(p.weights, theirs["pro"], atol=0.01)
    np.testing.assert_allclose(p.means.T, theirs["mean_dxG"], atol=0.02)
    np.testing.assert_allclose(p.covariances, theirs["sigma_Gxdxd"], atol=0.02)


def test_bic_chooses_vev_for_iris(bics):
    assert bics.loc[3].idxmax() == "VEV"
    # mclust's choice over all numbers of components is VEV with two: -561.7285.
    assert bics.stack().idxmax() == (2, "VEV")
    assert bics.loc[2, "VEV"] == pytest.approx(-561.7285, abs=1e-3)


def test_bic_chooses_three_components_of_any_shape_for_diabetes(shared):
    table = pd.read_csv(shared / "data/diabetes.csv")
    X = table[["glucose", "insulin", "sspg"]].to_numpy(float)
    chosen = select_mixture(X, range(2, 6))
    best = chosen.best.parameters
    assert (best.model, best.n_components) == ("VVV", 3)
    assert chosen.bic == pytest.approx(-4751.316, abs=0.01)  # mclust's
