"""Every algorithm of the registry runs as a job: data in; masses, metrics, report and model out."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import ClusterMixin
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

import evdist
from evdist import run
from evdist.service.config import ALGORITHMS, signatures
from evdist.service.config.signatures import of_function

X = make_blobs(90, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)[0]
#: What each needs beside the number of clusters, to be quick.
GIVEN = {
    "nnevclus": {"n_clusters": 3, "max_iter": 30, "n_init": 1, "device": "cpu"},
    "bootclus": {"n_clusters": 3, "n_bootstrap": 20, "covariance_models": "EII"},
    "recm": {"n_clusters": 3, "metric": "precomputed"},
    "eknnclus": {"n_neighbors": 15},
}


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_it_runs_as_a_job(name, tmp_path):
    given = GIVEN.get(name, {"n_clusters": 3})
    rows = pairwise_distances(X) if given.get("metric") == "precomputed" else X
    np.save(tmp_path / "x.npy", rows)
    result = run(
        {
            "folder": str(tmp_path / "job"),
            "data": {"url": str(tmp_path / "x.npy")},
            "algorithm": name,
            "parameters": given,
        }
    )
    assert result.metrics["n_objects"] == len(X)
    assert result.folder.has("report.html")
    model = result.model()
    np.testing.assert_array_equal(model.labels_, result.partition.labels())
    placed = run(
        {
            "task": "predict",
            "folder": str(tmp_path / "new"),
            "model": str(tmp_path / "job"),
            "data": {"url": str(tmp_path / "x.npy")},
        }
    )
    assert placed.partition.mass.shape == result.partition.mass.shape


def test_every_clusterer_is_there():
    names = [name for name, home in evdist._PUBLIC.items() if home.startswith("evdist.estimators")]
    classes = [getattr(importlib.import_module(evdist._PUBLIC[name]), name) for name in names]
    clusterers = {cls.__name__ for cls in classes if issubclass(cls, ClusterMixin)}
    assert clusterers == {entry.estimator for entry in ALGORITHMS.values()}


@pytest.mark.parametrize("method", ["__init__", "fit"])
@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_the_source_tells_what_the_class_takes(name, method):
    """Nobody waits for a class to be loaded whose parameters are checked."""
    entry = ALGORITHMS[name]
    loaded = of_function(getattr(entry.cls, method))
    assert signatures.of_method(entry.module, entry.estimator, method) == loaded


def test_no_estimator_is_loaded_to_check_a_configuration():
    said = subprocess.run(
        [sys.executable, "-c", CHECK], capture_output=True, text=True, check=True
    ).stdout
    assert said.split() == ["evclus", "False"]


CHECK = """
import sys
from evdist import JobConfig

config = JobConfig.of(folder="f", data={"url": "x.npy"}, parameters={"n_clusters": 3, "tol": 1e-3})
print(config.algorithm, "sklearn" in sys.modules or "numba" in sys.modules)
"""
