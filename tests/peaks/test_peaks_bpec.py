"""BPEC: R's masses from the same centres, centres by number, threshold and box, refusals."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from evdist import BPEC, FocalSets

R_TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def reference(shared) -> dict:
    return json.loads((shared / "reference" / "bpec_fourclass.json").read_text())


@pytest.fixture(scope="module")
def fourclass(shared) -> pd.DataFrame:
    return pd.read_csv(shared / "data" / "fourclass.csv")


@pytest.fixture(scope="module")
def blobs() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(300, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)


@pytest.mark.filterwarnings("ignore:BPEC did not converge")
@pytest.mark.parametrize("case", range(4))
def test_from_the_same_centres_and_steps_the_masses_are_those_of_r(fourclass, reference, case):
    r = reference["bpec"][case]
    model = BPEC(
        4,
        n_neighbors=50,
        delta=float(re.search(r"delta=([\d.]+)", r["call"]).group(1)),
        focal_sets=FocalSets.from_matrix(np.array(r["F"])),
        metric="adaptive" if "distance=1" in r["call"] else "euclidean",
        tol=0.0,
        max_iter=r["iterations"],
    ).fit(fourclass[["x1", "x2"]])
    np.testing.assert_array_equal(model.prototypes_, reference["g0"])
    assert model.objective_ == pytest.approx(r["crit"], rel=R_TOLERANCE)
    np.testing.assert_allclose(model.credal_partition_.mass, r["mass"], atol=R_TOLERANCE)
    assert adjusted_rand_score(fourclass.y, model.labels_) == pytest.approx(r["ari_pl"], abs=0.01)


def test_threshold_box_and_number_find_the_same_centres(blobs):
    X, y = blobs
    by_number = BPEC(3).fit(X)
    by_threshold = BPEC(delta_min=4, bel_min=0.2).fit(X)
    by_box = BPEC(delta_min=4, delta_max=30, bel_min=0.2, bel_max=1).fit(X)
    for model in (by_number, by_threshold, by_box):
        assert adjusted_rand_score(y, model.labels_) == 1
        np.testing.assert_array_equal(model.centres_, by_number.centres_)
        np.testing.assert_array_equal(model.prototypes_, X[model.centres_])


@pytest.mark.parametrize("focal_sets", ["simple", "pairs", "full", "select"])
@pytest.mark.parametrize("metric", ["adaptive", "euclidean"])
def test_the_objective_never_rises_and_the_centres_stay(focal_sets, metric):
    X = np.random.default_rng(2).normal(size=(120, 3))
    model = BPEC(4, focal_sets=focal_sets, metric=metric, delta=3).fit(X)
    assert (np.diff(model.history_) <= 0).all()
    np.testing.assert_array_equal(model.prototypes_, X[model.centres_])
    if metric == "adaptive":
        np.testing.assert_allclose(np.linalg.det(model.metric_), 1.0)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({}, "BPEC needs n_clusters, or a threshold delta_min"),
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 301}, "n_clusters must be at most the number of objects"),
        ({"n_clusters": 2, "n_neighbors": 0}, "n_neighbors must be an integer of at least 1"),
        ({"n_clusters": 2, "q": 1.5}, "q must be a number above 0 and below 1, got 1.5"),
        ({"n_clusters": 2, "delta_min": -1}, "delta_min must be a number of at least 0"),
        ({"delta_min": 5, "delta_max": 2}, "delta_min must be at most delta_max"),
        ({"n_clusters": 2, "beta": 1.0}, "beta must be a number above 1"),
        ({"n_clusters": 2, "metric": "cosine"}, "metric must be one of euclidean, adaptive"),
        ({"delta_min": 1, "focal_sets": "triples"}, "focal_sets must be one of simple"),
        ({"n_clusters": 3, "focal_sets": FocalSets.simple(2)}, "focal_sets are over 2 clusters"),
        ({"n_clusters": 9, "delta_min": 4}, "The box holds 3 objects, fewer than n_clusters=9"),
        ({"delta_min": 1e6}, "No object has delta in"),
    ],
)
def test_what_cannot_be_is_refused(blobs, parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        BPEC(**parameters).fit(blobs[0])
