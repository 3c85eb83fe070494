"""ECM, RECM and CECM against R's evclust: same start, same answer."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from tolerances import REFERENCE

from evdist import RECM, FocalSets
from evdist.ecm.blocks import LocalRows
from evdist.ecm.linked import LinkedProblem, fit_cecm
from evdist.ecm.solver import ECMSolver, Model, prototypes_from
from evdist.engine.loop import minimise


def load(shared, name: str):
    return json.loads((shared / "reference" / f"{name}.json").read_text())


def after(X, model: Model, steps: int, **options):
    """The fit after so many steps, whatever they bring."""
    rows = LocalRows(np.asarray(X, float))
    return minimise(ECMSolver(rows, model, 0.0, **options), steps)


@pytest.fixture(scope="module")
def butterfly(shared):
    return load(shared, "butterfly")


@pytest.fixture(scope="module")
def fourclass(shared) -> np.ndarray:
    return pd.read_csv(shared / "data" / "fourclass.csv")[["x1", "x2"]].to_numpy(float)


def butterfly_model(r) -> Model:
    return Model(FocalSets.full(2), np.array(r["g0"]), 1.0, 2.0, np.sqrt(20))


def test_ecm_on_the_butterfly_step_by_step(butterfly):
    X, r = np.array(butterfly["x"], float), butterfly["ecm"]
    steps = r["iterations"]
    fit = after(X, butterfly_model(r), steps)
    # R's masses, and its criterion, are one step behind its prototypes.
    np.testing.assert_allclose(fit.history[:steps], r["J_trace_printed"], atol=5e-6)
    np.testing.assert_allclose(fit.history[steps - 1], r["crit"], **REFERENCE)
    np.testing.assert_allclose(fit.value.model.prototypes, r["g"], **REFERENCE)
    before = after(X, butterfly_model(r), steps - 1).value.model
    np.testing.assert_allclose(before.masses(X, np.float64), r["mass"], **REFERENCE)


def test_ecm_on_the_butterfly_at_the_end(butterfly):
    X, r = np.array(butterfly["x"], float), butterfly["ecm"]
    end = r["converged_epsi_1e12"]
    fit = after(X, butterfly_model(r), 100)
    assert fit.converged
    np.testing.assert_allclose(fit.objective, end["crit"], rtol=1e-10)
    np.testing.assert_allclose(fit.value.model.prototypes, end["g"], atol=1e-6)
    np.testing.assert_allclose(fit.value.model.masses(X, np.float64), end["mass"], atol=1e-6)


def test_ecm_on_fourclass_and_its_new_objects(shared, fourclass):
    r = load(shared, "ecm_fourclass")
    start = Model(FocalSets.full(4), np.array(r["g0"]), 1.0, 2.0, np.sqrt(20))
    before = after(fourclass, start, r["iterations"] - 1)
    np.testing.assert_allclose(before.objective, r["crit"], **REFERENCE)
    np.testing.assert_allclose(
        before.value.model.masses(fourclass, np.float64), r["mass"], **REFERENCE
    )
    fit = after(fourclass, start, r["iterations"])
    np.testing.assert_allclose(fit.value.model.prototypes, r["g"], **REFERENCE)
    new = np.array(r["predict"]["newx"], float)
    got = fit.value.model.masses(new, np.float64)
    np.testing.assert_allclose(got, r["predict"]["mass"], **REFERENCE)


@pytest.mark.parametrize("setting", range(4))
def test_adaptive_metric_with_prototypes_that_stay(shared, fourclass, setting):
    peaks = load(shared, "bpec_fourclass")
    r = peaks["bpec"][setting]
    delta = 10.0 if "delta=10" in r["call"] else 3.0
    sets = FocalSets.from_matrix(np.array(r["F"]))
    model = Model(sets, np.array(peaks["g0"]), 1.0, 2.0, delta)
    if "distance=1" in r["call"]:
        model = model.adaptive()
    fit = after(fourclass, model, r["iterations"], move=False)
    np.testing.assert_allclose(fit.objective, r["crit"], **REFERENCE)
    np.testing.assert_allclose(
        fit.value.model.masses(fourclass, np.float64), r["mass"], **REFERENCE
    )
    if fit.value.model.metric is not None:
        # R lists the metric of every focal set but the empty one.
        np.testing.assert_allclose(fit.value.model.set_metric[1:], r["S"], **REFERENCE)


@pytest.mark.filterwarnings("ignore:RECM did not converge")
def test_recm_on_the_butterfly(butterfly):
    r = butterfly["recm"]
    options = {"focal_sets": "full", "beta": 1.5, "delta": np.sqrt(50), "tol": 0.0}
    # R counts the first masses that follow from the start as an iteration.
    for end in (r, r["tight_epsi_1e12"]):
        model = RECM(2, init=np.array(r["m0"]), max_iter=end["iterations"] - 1, **options)
        model.fit(np.array(r["D"], float))
        assert model.shift_ == 0
        np.testing.assert_allclose(model.objective_, end["crit"], rtol=1e-8)
        np.testing.assert_allclose(model.credal_partition_.mass, end["mass"], atol=1e-6)


@pytest.fixture(scope="module")
def iris_links(shared):
    r = load(shared, "cecm_iris")
    X = pd.read_csv(shared / "data" / "iris.csv").iloc[:, :4].to_numpy(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    links = (np.array(r["ML"]) - 1, np.array(r["CL"]) - 1)
    model = Model(FocalSets.full(3), np.array(r["g0"]), 1.0, 2.0, 10.0)
    return r, LinkedProblem(X, *links, xi=0.5), model


def test_cecm_has_the_cost_and_the_prototypes_of_r(iris_links):
    r, problem, model = iris_links
    M = np.array(r["mass"])
    moved = model.step(problem.sums(model, M))
    np.testing.assert_allclose(moved.prototypes, r["g"], **REFERENCE)
    np.testing.assert_allclose(prototypes_from(moved, problem.sums(moved, M)), r["g"], **REFERENCE)
    # R reports the cost before its last prototypes, which lie a little lower.
    exact = problem.objective(moved, M, problem.costs(moved))
    assert exact <= r["crit"] <= exact + 2e-6


def test_cecm_ends_lower_than_r_from_the_start_of_r(iris_links):
    r, problem, model = iris_links
    fit = fit_cecm(problem, model, tol=1e-9, max_iter=200)
    assert fit.converged
    assert fit.history[-1] < 0.0496 < r["crit"]


def test_the_answer_of_r_is_on_the_way_to_a_lower_one(iris_links):
    r, problem, model = iris_links
    M = np.array(r["mass"])
    here = model.step(problem.sums(model, M))
    fit = fit_cecm(problem, here, tol=1e-9, max_iter=200, mass=M)
    assert fit.history[0] == pytest.approx(r["crit"], abs=2e-6)
    assert fit.history[-1] == pytest.approx(0.0504442, abs=1e-6)
    labels = (fit.value.mass @ model.focal_sets.matrix).argmax(axis=1)
    assert (labels + 1 == np.array(r["y.pl"])).mean() > 0.98
