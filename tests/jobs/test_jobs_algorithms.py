"""Every algorithm of the registry runs as a job: data in; masses, metrics, report and model out."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings
from collections.abc import Sequence
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from sklearn.base import ClusterMixin
from sklearn.datasets import make_blobs
from sklearn.metrics import pairwise_distances

import evdist
from evdist import run
from evdist.combine import combine
from evdist.registry import ALGORITHMS, PUBLIC
from evdist.service.config.model import CombineParameters

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
        },
        through="summarise",
    )
    assert placed.partition.mass.shape == result.partition.mass.shape


@pytest.mark.parametrize("category", [UserWarning, RuntimeWarning])
def test_a_job_tells_what_its_fit_warned_of(category, tmp_path, monkeypatch):
    """Also what befell it, such as workers that cannot reach each other."""
    fit, sentence = evdist.ECM.fit, "one worker does the work"

    def warning(self, *rows, **given):
        warnings.warn(sentence, category, stacklevel=2)
        return fit(self, *rows, **given)

    monkeypatch.setattr(evdist.ECM, "fit", warning)
    np.save(tmp_path / "x.npy", X)
    job = {"folder": str(tmp_path / "job"), "data": {"url": str(tmp_path / "x.npy")}}
    result = run({**job, "algorithm": "ecm", "parameters": {"n_clusters": 3}}, through="summarise")
    assert result.metrics["warnings"] == [sentence]
    assert sentence in (tmp_path / "job" / "job.log").read_text()


def test_every_clusterer_is_there():
    classes = [getattr(evdist, name) for name in PUBLIC]
    clusterers = {c for c in classes if isinstance(c, type) and issubclass(c, ClusterMixin)}
    assert clusterers == {entry.cls for entry in ALGORITHMS.values()}


def plain(kind: Any) -> set[Any]:
    """The types within an annotation whose values JSON can write."""
    if get_origin(kind) in (Union, UnionType):
        return set().union(*(plain(member) for member in get_args(kind)))
    series = get_origin(kind) is Sequence and get_args(kind)[0] in (int, str)
    return {kind} if series or kind in (bool, int, float, str, type(None)) else set()


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_the_declared_parameters_are_those_of_the_constructor(name):
    """Names, defaults, and of the types those that a configuration can hold."""
    cls, declared = ALGORITHMS[name].cls, ALGORITHMS[name].parameters
    hints = get_type_hints(cls.__init__)
    found = {
        key: (parameter.default, plain(hints[key]))
        for key, parameter in inspect.signature(cls).parameters.items()
        if key not in ("checkpoint", "checkpoint_every", "callbacks", "verbose", "n_jobs")
    }
    if "random_state" in found:
        found["random_state"] = (0, {int})  # a job draws the same numbers in every run
    written = {key: value for key, value in found.items() if value[1]}
    fields = declared.model_fields.items()
    assert {key: (field.default, plain(field.annotation)) for key, field in fields} == written


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_what_fit_takes_is_declared(name):
    takes = inspect.signature(ALGORITHMS[name].cls.fit).parameters
    asked = {"must_link", "sample_weight", "client"}
    assert ALGORITHMS[name].parameters.fit_takes == asked & set(takes)


def test_the_parameters_of_combine_are_those_of_the_function():
    takes = inspect.signature(combine).parameters
    defaults = {key: p.default for key, p in takes.items() if p.default is not p.empty}
    fields = CombineParameters.model_fields
    assert {key: fields[key].default for key in fields if key != "n_clusters"} == defaults


@pytest.mark.parametrize("rule", ["dubois_prade", "dubois-prade"])
def test_a_rule_of_combine_may_have_its_older_name(rule):
    given = {"n_clusters": 2, "rule": rule}
    job = evdist.JobConfig.of(task="combine", folder="f", inputs=["a", "b"], parameters=given)
    assert job.parameters["rule"] == rule


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
