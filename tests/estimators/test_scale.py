"""scale=: columns on one scale in the estimator; a warning where one column decides alone."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

from evdist import ECM, EVCLUS, NNEVCLUS, JobConfig, run
from evdist.data.scale import ScaleWarning, dwarfing, scale_of, spreads
from evdist.service.config import ConfigError

QUICK = {"d0": "q0.9", "n_dissimilarities": 30, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


@pytest.mark.parametrize(
    "model",
    [
        EVCLUS(3, metric="euclidean", scale="standard", **QUICK),
        ECM(3, scale="robust", random_state=0),
        NNEVCLUS(3, scale="standard", d0="q0.9", n_init=1, max_iter=50, random_state=0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_a_scale_is_that_of_the_columns_for_new_objects_too(wine, model, tmp_path):
    X, _ = wine
    model.fit(X)
    scale = scale_of(model.scale, X)
    alone = type(model)(**{**model.get_params(), "scale": None}).fit(scale(X))
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)
    np.testing.assert_array_equal(model.predict_mass(X[:9]), alone.predict_mass(scale(X[:9])))
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_mass(X[:9]), model.predict_mass(X[:9]))


def test_units_decide_without_it(wine):
    X, y = wine
    with pytest.warns(ScaleWarning, match=r"Column 12 varies .* times .* scale=\"standard\""):
        raw = EVCLUS(3, metric="euclidean", **QUICK).fit(X)
    scaled = EVCLUS(3, metric="euclidean", scale="standard", **QUICK).fit(X)
    assert adjusted_rand_score(y, raw.labels_) < 0.6
    assert adjusted_rand_score(y, scaled.labels_) > 0.8


def test_the_warning_names_the_column_of_a_frame():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=["a", "b", "income"])
    X["income"] *= 1e6
    with pytest.warns(ScaleWarning, match="Column 'income' varies"):
        ECM(2, random_state=0).fit(X)


def test_a_few_wide_columns_dominate_the_widest_first():
    # Spreads of the 32 cars of mtcars: mpg, cyl, disp, hp, drat, wt, qsec, vs, am, gear, carb.
    cars = np.array([6.0, 1.8, 123.9, 68.6, 0.53, 0.98, 1.79, 0.5, 0.5, 0.74, 1.6])
    large, times = dwarfing(cars)
    assert large.tolist() == [2, 3] and times == pytest.approx(123.9 / 1.6)
    assert dwarfing(np.array([1.0, 500.0]))[0].tolist() == [1], "of two the smaller is usual"
    assert not len(dwarfing(np.array([1.0, 50.0]))[0]), "two columns are coordinates"
    pixels = np.array([0.01] * 40 + [0.3] * 60)
    assert not len(dwarfing(pixels)[0]), "many wide columns are no exception"


@pytest.mark.parametrize("metric", ["mahalanobis", "hamming"])
def test_metrics_with_a_scale_of_their_own_do_not_warn(metric):
    X = np.random.default_rng(0).integers(0, 4, size=(40, 3)) * [1, 1, 10_000]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EVCLUS(2, metric=metric, d0="q0.9", random_state=0).fit(X.astype(float))


def test_robust_is_median_and_quartiles():
    X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0], [1000.0, 5.0]])
    scale = scale_of("robust", X)
    np.testing.assert_allclose(scale.centre, [2.0, 5.0])
    np.testing.assert_allclose(scale.spread, [2.0, 1.0])


def test_what_is_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="scale must be 'standard', 'robust' or None, got 'max'"):
        EVCLUS(2, metric="euclidean", scale="max").fit(X)
    D = np.abs(X[:, :1] - X[:, 0])
    with pytest.raises(ValueError, match="scale is for attributes; with metric='precomputed'"):
        EVCLUS(2, metric="precomputed", scale="standard").fit(D)
    both = {"data": {"url": "x.csv", "scale": "robust"}, "folder": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"data.scale or parameters.scale, not both"):
        JobConfig.of(**both, parameters={"n_clusters": 2, "scale": "robust"})


def test_a_job_warns_once_and_takes_the_scale_of_the_estimator(wine, tmp_path):
    X, _ = wine
    np.save(tmp_path / "x.npy", X)
    data = {"url": str(tmp_path / "x.npy")}
    given = {"n_clusters": 3, **QUICK}
    done = run({"data": data, "folder": str(tmp_path / "raw"), "parameters": given})
    assert (
        len([text for text in done.metrics["warnings"] if "dominates the distances" in text]) == 1
    )
    given["scale"] = "standard"
    done = run({"data": data, "folder": str(tmp_path / "scaled"), "parameters": given})
    assert not done.metrics["warnings"]
    alone = EVCLUS(3, metric="euclidean", scale="standard", **QUICK).fit(X)
    np.testing.assert_array_equal(np.asarray(done.partition.mass), alone.credal_partition_.mass)


@pytest.mark.parametrize("columns", [1, 64, 130])
def test_spreads_of_many_columns_are_standard_deviations(columns):
    X = np.random.default_rng(0).normal(size=(50, columns)).astype(np.float32)
    np.testing.assert_allclose(spreads(X), X.std(axis=0, dtype=float), rtol=1e-12)
