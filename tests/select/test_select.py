"""evdist.select: the number of clusters by a criterion, in parallel, as a table and a figure."""

from __future__ import annotations

import doctest
import json
import threading

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs
from typer.testing import CliRunner

import evdist
from evdist import ECM, EVCLUS, RECM, run, select
from evdist.plot import selection_curve, to_svg
from evdist.registry import ALGORITHMS
from evdist.selection import Selection, parameters_of
from evdist.service.cli import app


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(240, centers=[[0, 0], [8, 0], [0, 8], [9, 9]], random_state=0)[0]


@pytest.fixture(scope="module")
def chosen(X) -> Selection:
    return select(X, ECM(focal_sets="pairs", random_state=0), range(2, 7))


class Mixture(BaseEstimator):
    """An estimator with a BIC that is greatest at five clusters; it keeps its threads' names."""

    def __init__(self, n_clusters=1, random_state=None, n_jobs=None):
        self.n_clusters, self.random_state, self.n_jobs = n_clusters, random_state, n_jobs

    def fit(self, X, y=None, *, sample_weight=None):
        self.bic_ = -((self.n_clusters - 5) ** 2)
        self.thread_, self.weight_ = threading.current_thread().name, sample_weight
        return self


def test_nonspecificity_finds_the_number_of_plain_clusters(chosen):
    assert chosen.best == 4
    assert chosen.n_clusters == [2, 3, 4, 5, 6]
    assert min(chosen.values) == chosen.values[2]
    assert chosen.model.n_clusters == 4
    assert chosen.model.credal_partition_.nonspecificity() == chosen.values[2]


def test_the_table_has_one_row_for_each_number(chosen):
    frame = chosen.to_frame()
    assert frame.index.tolist() == chosen.n_clusters
    assert frame["nonspecificity"].tolist() == chosen.values
    assert frame["converged"].all()
    assert "best: 4 clusters" in repr(chosen)


def test_a_name_stands_for_the_estimator_with_what_the_criterion_needs(X):
    found = select(X, "ECM", [3, 4, 5])
    assert isinstance(found.model, ECM)
    assert (found.model.focal_sets, found.model.alpha) == ("full", 2.0)
    assert found.best == 4


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("ECM", {}),
        ("CECM", {"max_iter": 20}),
        ("EVCLUS", {"n_dissimilarities": 20, "max_iter": 20}),
        ("Bootclus", {"n_bootstrap": 5, "covariance_models": "EII"}),
    ],
)
def test_python_job_and_command_give_the_same_answer(X, name, given, tmp_path):
    """Of a name the three doors make the same fits, compare by the same criterion, choose alike."""
    X = X[::3]
    entry = ALGORITHMS[name.lower()]
    here = select(X, entry.cls(**parameters_of(entry), **given), [2, 3, 4])
    if not given:
        assert select(X, name, [2, 3, 4]).values == here.values
    np.save(tmp_path / "x.npy", X)
    data, folder = str(tmp_path / "x.npy"), tmp_path / "job"
    values = {"task": "select", "candidates": [2, 3, 4], "data": {"url": data}}
    run({**values, "folder": str(folder), "algorithm": entry.name, "parameters": given})
    options = [word for k, v in given.items() for word in ("--set", f"{k}={v}")]
    words = ["select", data, "-c", "2-4", "-a", entry.name, *options, "-o", str(tmp_path / "cli")]
    assert CliRunner().invoke(app, [*words, "--quiet"]).exit_code == 0
    for found in (folder, tmp_path / "cli"):
        table = json.loads((found / "selection.json").read_text())
        assert (table["criterion"], table["best"]) == (here.criterion, here.best)
        assert [row[here.criterion] for row in table["candidates"]] == here.values


def test_the_bic_decides_where_an_estimator_has_one(X):
    found = select(X, Mixture(), range(1, 9))
    assert (found.criterion, found.best) == ("bic", 5)


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_how_many_fits_at_a_time_does_not_matter(X, chosen, n_jobs):
    again = select(X, ECM(focal_sets="pairs", random_state=0), range(2, 7), n_jobs=n_jobs)
    assert again.values == chosen.values


def test_a_random_state_object_is_drawn_from_in_order(X):
    def run(n_jobs: int) -> list[float]:
        model = ECM(focal_sets="pairs", n_init=1, random_state=np.random.RandomState(3))
        return select(X, model, range(2, 7), n_jobs=n_jobs).values

    assert run(1) == run(4)


def test_other_estimators_can_be_asked(X):
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    assert select(D, RECM(focal_sets="full", random_state=0), [3, 4, 5]).best == 4
    model = EVCLUS(n_dissimilarities=30, d0="q0.3", focal_sets="pairs", random_state=0)
    found = select(X[::2], model, [3, 4])
    assert {type(found.model), *found.n_clusters} == {EVCLUS, 3, 4}


def test_the_greatest_bic_is_best_and_arguments_reach_the_fits():
    weight = np.ones(3)
    found = select(np.zeros((3, 1)), Mixture(), range(1, 9), criterion="bic", sample_weight=weight)
    assert found.best == found.model.n_clusters == 5
    assert found.model.weight_ is weight
    assert found.model.n_jobs == 1 or found.model.thread_.endswith("_0")


def test_numbers_are_sorted_and_taken_once(X):
    found = select(X, ECM(focal_sets="pairs", random_state=0), [4, 2, 4])
    assert found.n_clusters == [2, 4]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"criterion": "gap"}, r"criterion must be one of auto, nonspecificity, bic, got 'gap'"),
        ({"n_clusters": []}, r"n_clusters must hold at least one number"),
        ({"n_clusters": [1, 2]}, r"one cluster is always 0: n_clusters must begin at 2, got 1"),
        ({"n_clusters": [2, 2.5]}, r"n_clusters must be an integer of at least 1, got 2.5"),
        ({"estimator": "ECMS"}, r"one of evdist's or its name, such as 'ECM', got 'ECMS'"),
        ({"estimator": "metrics"}, r"one of evdist's or its name, such as 'ECM', got 'metrics'"),
        ({"estimator": BaseEstimator()}, r"parameter n_clusters; BaseEstimator has not"),
        ({"criterion": "bic"}, r"ECM has no BIC: that is for mixtures"),
    ],
)
def test_what_is_refused(X, arguments, message):
    with pytest.raises(ValueError, match=message):
        select(X, **({"estimator": ECM(random_state=0), "n_clusters": [2]} | arguments))


def test_the_figure_marks_the_best(chosen):
    ax = selection_curve(chosen)
    (best,) = (line for line in ax.lines if line.get_gid() == "best")
    assert best.get_xdata() == [4]
    assert ax.get_ylabel() == "nonspecificity N*"
    assert b"<svg" in to_svg(ax)


def test_the_figure_tells_fits_that_did_not_converge(X):
    model = ECM(focal_sets="pairs", max_iter=1, n_init=1, tol=0.0, random_state=0)
    with pytest.warns(match="did not converge"):
        found = select(X, model, [2, 3], n_jobs=1)
    ax = selection_curve(found)
    (hollow,) = (line for line in ax.lines if line.get_gid() == "not-converged")
    assert hollow.get_xdata().tolist() == [2, 3]


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(evdist.select, "select")
    assert doctest.DocTestRunner().run(example).failed == 0
