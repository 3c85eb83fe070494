"""evdist.select: the number of clusters by a criterion, in parallel, as a table and a figure."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.datasets import make_blobs, make_moons
from typer.testing import CliRunner

import evdist
from evdist import ECM, EVCLUS, NNEVCLUS, RECM, run, select
from evdist.plot import selection_curve, to_svg
from evdist.registry import ALGORITHMS
from evdist.selection import Selection, parameters_of
from evdist.service.cli import app


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(240, centers=[[0, 0], [8, 0], [0, 8], [9, 9]], random_state=0)[0]


@pytest.fixture(scope="module")
def chosen(X) -> Selection:
    return select(
        X, ECM(focal_sets="pairs", random_state=0), range(2, 7), criterion="nonspecificity"
    )


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
    found = select(X, "ECM", [3, 4, 5], criterion="nonspecificity")
    assert isinstance(found.model, ECM)
    assert (found.model.focal_sets, found.model.alpha) == ("full", 2.0)
    assert found.best == 4


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    ("name", "given", "criterion"),
    [
        ("ECM", {}, "nonspecificity"),
        ("ECM", {}, "modes"),
        ("CECM", {"max_iter": 20}, "nonspecificity"),
        ("EVCLUS", {"n_dissimilarities": 20, "max_iter": 20}, None),
        ("EVCLUS", {"n_dissimilarities": 20, "max_iter": 20}, "silhouette"),
        ("Bootclus", {"n_bootstrap": 5, "covariance_models": "EII"}, None),
    ],
)
def test_python_job_and_command_give_the_same_answer(X, name, given, criterion, tmp_path):
    """Of a name the three doors make the same fits, compare by the same criterion, choose alike."""
    X = X[::3]
    entry = ALGORITHMS[name.lower()]
    by = criterion or "auto"
    model = entry.cls(**parameters_of(entry, by), **given)
    here = select(X, model, [2, 3, 4], criterion=by)
    if not given:
        assert select(X, name, [2, 3, 4], criterion=by).values == here.values
    np.save(tmp_path / "x.npy", X)
    data, folder = str(tmp_path / "x.npy"), tmp_path / "job"
    values = {"task": "select", "candidates": [2, 3, 4], "data": {"url": data}}
    values |= {} if criterion is None else {"criterion": criterion}
    run({**values, "folder": str(folder), "algorithm": entry.name, "parameters": given})
    options = [word for k, v in given.items() for word in ("--set", f"{k}={v}")]
    options += [] if criterion is None else ["--criterion", criterion]
    words = ["select", data, "-c", "2-4", "-a", entry.name, *options, "-o", str(tmp_path / "cli")]
    assert CliRunner().invoke(app, [*words, "--quiet"]).exit_code == 0
    for found in (folder, tmp_path / "cli"):
        table = json.loads((found / "selection.json").read_text())
        assert (table["criterion"], table["best"]) == (here.criterion, here.best)
        assert [row[here.criterion] for row in table["candidates"]] == here.values


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_how_many_fits_at_a_time_does_not_matter(X, chosen, n_jobs):
    model = ECM(focal_sets="pairs", random_state=0)
    again = select(X, model, range(2, 7), criterion="nonspecificity", n_jobs=n_jobs)
    assert again.values == chosen.values


def test_a_random_state_object_is_drawn_from_in_order(X):
    def run(n_jobs: int) -> list[float]:
        model = ECM(focal_sets="pairs", n_init=1, random_state=np.random.RandomState(3))
        return select(X, model, range(2, 7), criterion="nonspecificity", n_jobs=n_jobs).values

    assert run(1) == run(4)


def test_other_estimators_can_be_asked(X):
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    by = {"criterion": "nonspecificity"}
    assert select(D, RECM(focal_sets="full", random_state=0), [3, 4, 5], **by).best == 4
    model = EVCLUS(
        metric="euclidean", n_dissimilarities=30, d0="q0.3", focal_sets="pairs", random_state=0
    )
    found = select(X[::2], model, [3, 4], **by)
    assert {type(found.model), *found.n_clusters} == {EVCLUS, 3, 4}


def test_arguments_reach_the_fits(X):
    weight = np.linspace(1, 3, len(X))
    found = select(X, ECM(random_state=0), sample_weight=weight)
    alone = ECM(4, random_state=0).fit(X, sample_weight=weight)
    assert found.model.objective_ == alone.objective_


def test_numbers_are_sorted_and_taken_once(X):
    found = select(X, ECM(focal_sets="pairs", random_state=0), [4, 2, 4])
    assert found.n_clusters == [2, 4]


@pytest.mark.parametrize("criterion", ["modes", "bic", "gap", "silhouette"])
def test_every_criterion_finds_plain_clusters(X, criterion):
    model = (
        ECM(random_state=0) if criterion == "silhouette" else EVCLUS(metric="euclidean", d0="q0.5")
    )
    found = select(X, model, range(2, 6), criterion=criterion)
    assert (found.best, found.verdict, found.criterion) == (4, "4 clusters", criterion)
    assert found.model.credal_partition_.n_clusters == 4


@pytest.mark.parametrize("criterion", ["modes", "bic", "gap"])
def test_data_without_structure_are_one_cluster(criterion):
    X = np.random.default_rng(0).normal(size=(300, 2))
    found = select(X, n_clusters=[1, 2, 3], criterion=criterion)
    assert (found.best, found.model.n_clusters) == (1, 1)
    assert "best: 1 cluster: the data show no structure" in repr(found)


def test_clusters_of_any_shape_are_counted():
    X, _ = make_moons(500, noise=0.05, random_state=0)
    assert select(X).best == 2
    assert EVCLUS("auto", metric="euclidean", random_state=0).fit(X).n_clusters_ == 2


def test_the_curve_of_the_data_has_no_fits_but_one(X):
    found = select(X)
    assert found.to_frame().columns.tolist() == ["modes"]
    assert found.n_clusters == list(range(1, 11))
    assert found.values == sorted(found.values, reverse=True)
    assert found.values[3] > 1 > found.values[4]


def test_numbers_that_are_not_possible_give_the_nearest(X):
    assert select(X, n_clusters=[6, 7]).best == 6
    assert select(X, n_clusters=[2, 3]).best == 3


@pytest.mark.parametrize("metric", ["cityblock", "chebyshev", "cosine", "mahalanobis"])
def test_modes_are_counted_in_any_metric(X, metric):
    model = EVCLUS("auto", metric=metric, d0="q0.5", n_dissimilarities=20, random_state=0)
    found = model.fit(X + 20 if metric == "cosine" else X).n_clusters_
    assert found == (4 if metric != "cosine" else 3)


def test_modes_are_counted_in_a_matrix_and_by_a_function(X):
    X = X[::2]
    D = cdist(X, X)
    for data, metric in ((D, "precomputed"), (X, lambda a, b: float(np.abs(a - b).sum()))):
        model = EVCLUS("auto", metric=metric, d0="q0.5", n_dissimilarities=20, random_state=0)
        assert model.fit(data).n_clusters_ == 4


@pytest.mark.parametrize(
    "model", [ECM("auto", random_state=0), NNEVCLUS("auto", n_init=1, random_state=0)]
)
def test_estimators_count_by_themselves(X, model, tmp_path):
    model.fit(X)
    assert (model.n_clusters, model.n_clusters_) == ("auto", 4)
    model.save(tmp_path / "model")
    again = type(model).load(tmp_path / "model")
    assert (again.n_clusters, again.n_clusters_) == ("auto", 4)


def test_jobs_count_by_themselves(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    words = ["cluster", str(tmp_path / "x.npy"), "-c", "auto", "-o", str(tmp_path / "job")]
    assert CliRunner().invoke(app, [*words, "--set", "n_dissimilarities=20", "-q"]).exit_code == 0
    assert json.loads((tmp_path / "job/metrics.json").read_text())["n_clusters"] == 4


def test_a_job_tells_that_there_is_no_structure(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(300, 2)))
    done = CliRunner().invoke(
        app, ["select", str(tmp_path / "x.npy"), "-o", str(tmp_path / "job"), "-q"]
    )
    assert "best: 1 cluster: the data show no structure" in done.output
    table = json.loads((tmp_path / "job/selection.json").read_text())
    assert (table["best"], table["structure"]) == (1, False)


def test_a_list_of_pairs_is_not_counted(X):
    pairs = [[i, j, float(np.linalg.norm(X[i] - X[j]))] for i in range(20) for j in range(i)]
    with pytest.raises(ValueError, match="needs the dissimilarity of any two objects"):
        EVCLUS("auto", metric="pairs").fit(pairs)
    with pytest.raises(ValueError, match='a number of clusters or "auto", got'):
        ECM("many").fit(X)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"criterion": "elbow"}, r"one of auto, modes, .*, silhouette, gap, got 'elbow'"),
        ({"n_clusters": []}, r"n_clusters must hold at least one number"),
        (
            {"n_clusters": [1, 2], "criterion": "nonspecificity"},
            r"one cluster is always 0: n_clusters must begin at 2, got 1",
        ),
        ({"n_clusters": [1, 2], "criterion": "silhouette"}, r"One cluster has no silhouette"),
        (
            {"estimator": RECM(random_state=0), "criterion": "gap"},
            r'criterion="gap" needs attributes and Euclidean distances',
        ),
        ({"n_clusters": [2, 2.5]}, r"n_clusters must be an integer of at least 1, got 2.5"),
        ({"estimator": "ECMS"}, r"one of evdist's or its name, such as 'ECM', got 'ECMS'"),
        ({"estimator": "metrics"}, r"one of evdist's or its name, such as 'ECM', got 'metrics'"),
        ({"estimator": BaseEstimator()}, r"parameter n_clusters; BaseEstimator has not"),
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
        found = select(X, model, [2, 3], criterion="nonspecificity", n_jobs=1)
    ax = selection_curve(found)
    (hollow,) = (line for line in ax.lines if line.get_gid() == "not-converged")
    assert hollow.get_xdata().tolist() == [2, 3]


def test_the_example_of_the_docstring_is_true():
    (example,) = doctest.DocTestFinder(recurse=False).find(evdist.select, "select")
    assert doctest.DocTestRunner().run(example).failed == 0


def test_modes_are_counted_on_the_scale_of_the_estimator(X):
    rng = np.random.default_rng(0)
    wide = np.column_stack([X, 1e4 * rng.normal(size=len(X))])
    model = ECM(scale="standard", beta=1.2, random_state=0)
    scaled = (wide - wide.mean(axis=0)) / wide.std(axis=0)
    assert select(wide, model).values == select(scaled, ECM(beta=1.2, random_state=0)).values
