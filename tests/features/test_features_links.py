"""PCCA and kernel PCCA: R's values, the laws of the map, example 5 of NN-EVCLUS, refusals."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from features.circles import circles
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from tolerances import REFERENCE

from evdist import EVCLUS
from evdist.constraints import random_links
from evdist.features import PCCA, KernelPCCA
from evdist.features.links import pcca_loss


# ------------------------------------------------------------------ R's evclust
@pytest.fixture(scope="module")
def reference(shared) -> dict:
    return json.loads((shared / "reference" / "pcca.json").read_text())


@pytest.fixture(scope="module")
def iris(shared) -> np.ndarray:
    return pd.read_csv(shared / "data" / "iris.csv").iloc[:, :4].to_numpy(float)


def links(run: dict) -> dict[str, np.ndarray]:
    return {"must_link": np.array(run["ML"]) - 1, "cannot_link": np.array(run["CL"]) - 1}


def differences(X: np.ndarray, run: dict) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.concatenate(list(links(run).values()))
    s = np.repeat([1.0, -1.0], [len(run["ML"]), len(run["CL"])])
    return X[pairs[:, 0]] - X[pairs[:, 1]], s


def test_loss_and_gradient_are_rs(reference, iris):
    run = reference["pcca"]
    Delta, s = differences(iris, run)
    check = run["grad_check"]
    loss, gradient = pcca_loss(np.array(check["L"]), Delta, s, 1.0)
    np.testing.assert_allclose(loss, check["fun"], **REFERENCE)
    np.testing.assert_allclose(gradient.ravel(order="F"), check["grad"], **REFERENCE)
    loss, _ = pcca_loss(np.array(run["L"]), Delta, s, 1.0)
    np.testing.assert_allclose(loss, run["loss_final"], **REFERENCE)


def test_pcca_reaches_rs_minimum_and_its_distances(reference, iris):
    run = reference["pcca"]
    model = PCCA(2, tol=1e-10).fit(iris, **links(run))
    assert model.objective_ <= run["loss_final"] * (1 + 1e-7)
    # The minimum is one point of L'L, which R has reached to four digits.
    got, expected = pdist(model.transform(iris)), pdist(np.array(run["z"]))
    np.testing.assert_allclose(got, expected, atol=2e-3 * expected.max())


def test_kernel_pcca_goes_below_the_loss_at_which_r_stopped(reference):
    run = reference["kpcca"]
    X = np.array(run["x"])
    K = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=-1))
    stopped, _ = pcca_loss(np.array(run["A"]), *differences(K, run), 1.0)
    np.testing.assert_allclose(stopped, float(run["log"][-1].split()[2]), rtol=1e-6)
    model = KernelPCCA(1, kernel="rbf", gamma=0.2).fit(X, **links(run))
    # No map is below that of must-links of length zero and cannot-links of infinite length.
    least = len(run["ML"]) * np.log1p(np.exp(-1))
    assert least < model.objective_ < least + 1e-3 < stopped
    # R's feature and ours order the objects alike.
    order = np.corrcoef(np.array(run["z"])[:, 0], model.transform(X)[:, 0])[0, 1]
    assert abs(order) > 0.9


# ------------------------------------------------------------------ example 5
@pytest.mark.parametrize("seed", range(8))
def test_example_5_fifty_links_separate_the_circles(seed):
    X, y = circles(seed)
    must, cannot = random_links(y, 50, seed)
    model = KernelPCCA(1, gamma=0.3).fit(X, must_link=must, cannot_link=cannot)
    found = KMeans(2, n_init=3, random_state=0).fit_predict(model.transform(X))
    assert adjusted_rand_score(y, found) >= 0.95


@pytest.mark.parametrize("seed", range(2))
def test_example_5_evclus_finds_the_circles_in_the_feature(seed):
    """Where k-means, without the links, does not; EVCLUS may, by a d0 that follows the data."""
    X, y = circles(seed)
    must, cannot = random_links(y, 50, seed)
    features = KernelPCCA(1, gamma=0.3).fit(X, must_link=must, cannot_link=cannot).transform(X)
    options = {"n_clusters": 2, "n_jobs": 1, "random_state": 0}
    assert (
        adjusted_rand_score(y, EVCLUS(metric="euclidean", **options).fit(features).labels_) >= 0.95
    )
    assert adjusted_rand_score(y, KMeans(2, n_init=3, random_state=0).fit_predict(X)) < 0.5


# ------------------------------------------------------------------ laws
@pytest.fixture(scope="module")
def problem() -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=60)
    X = rng.normal(size=(60, 4)) + 2 * np.eye(4)[y]
    must, cannot = random_links(y, 40, 5)
    return X, {"must_link": must, "cannot_link": cannot}


MODELS = [PCCA(2), KernelPCCA(2, gamma=0.1), KernelPCCA(1, kernel="laplacian", gamma=0.1)]


@pytest.mark.parametrize("model", MODELS[:2], ids=repr)
def test_turning_and_moving_the_data_changes_no_feature(model, problem):
    X, given_links = problem
    turn = ortho_group.rvs(4, random_state=1)
    before = model.fit(X, **given_links).transform(X)
    after = model.fit(X @ turn + [3, -40, 0, 7], **given_links).transform(X @ turn + [3, -40, 0, 7])
    np.testing.assert_allclose(after, before, atol=1e-4 * np.abs(before).max())


@given(unit=st.sampled_from([1e-6, 0.01, 3.0, 1e5]))
def test_the_unit_of_the_data_does_not_matter(unit, problem):
    X, given_links = problem
    before = PCCA(2).fit(X, **given_links).transform(X)
    after = PCCA(2).fit(unit * X, **given_links).transform(unit * X)
    np.testing.assert_allclose(after, before, atol=1e-6 * np.abs(before).max())


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_the_same_links_give_the_same_bits(model, problem):
    X, given_links = problem
    np.testing.assert_array_equal(
        model.fit(X, **given_links).transform(X), model.fit(X, **given_links).transform(X)
    )


def test_a_linear_kernel_is_pcca(problem):
    X, given_links = problem
    plain = PCCA(2, tol=1e-12).fit(X, **given_links)
    kernel = KernelPCCA(2, kernel="linear", tol=1e-12).fit(X, **given_links)
    np.testing.assert_allclose(kernel.objective_, plain.objective_, rtol=1e-9)
    np.testing.assert_allclose(kernel.transform(X), plain.transform(X), atol=1e-4)


def test_a_kernel_may_be_a_function(problem):
    X, given_links = problem
    own = KernelPCCA(2, kernel=lambda a, b: np.exp(-0.1 * ((a - b) ** 2).sum()))
    named = KernelPCCA(2, gamma=0.1).fit(X, **given_links)
    np.testing.assert_allclose(
        own.fit(X, **given_links).transform(X[:9]), named.transform(X[:9]), atol=1e-6
    )


def test_objects_without_links_make_no_difference(problem):
    X, given_links = problem
    linked = np.unique(np.concatenate(list(given_links.values())))
    moved = X.copy()
    moved[np.setdiff1d(np.arange(60), linked)] = 99.0
    for model in MODELS:
        before = model.fit(X, **given_links).transform(X[:5])
        np.testing.assert_array_equal(model.fit(moved, **given_links).transform(X[:5]), before)


def test_directions_that_no_link_shows_get_no_feature(problem):
    """Fewer links than attributes, and more features than links."""
    wide = np.column_stack([problem[0], np.zeros((60, 20))])
    wide[9, 10] = 1e6  # an object without links
    model = PCCA(8).fit(wide, cannot_link=[(0, 1), (2, 3), (4, 5)])
    np.testing.assert_allclose(model.components_[:, 4:], 0, atol=1e-9)
    np.testing.assert_array_equal(model.components_[3:], 0)


def test_links_are_shorter_and_longer_than_one_where_a_map_can_do_it(problem):
    X, given_links = problem
    features = KernelPCCA(1, gamma=0.5).fit(X, **given_links).transform(X)
    for name, sign in (("must_link", 1), ("cannot_link", -1)):
        i, j = given_links[name].T
        assert (sign * (np.linalg.norm(features[i] - features[j], axis=1) - 1) < 0).all()


def test_rows_of_the_map_are_orthogonal_and_the_longest_is_first(problem):
    X, given_links = problem
    L = PCCA(3).fit(X, **given_links).components_
    products = L @ L.T
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9 * products.max())
    assert (np.diff(np.diag(products)) <= 0).all()


def test_the_loss_falls_with_the_number_of_features(problem):
    X, given_links = problem
    losses = [PCCA(r, tol=1e-9).fit(X, **given_links).objective_ for r in (1, 2, 3, 4)]
    assert (np.diff(losses) <= 1e-6).all()


def test_sharpness_is_that_of_the_loss(problem):
    X, given_links = problem
    model = PCCA(4, sharpness=3.0, tol=1e-10).fit(X, **given_links)
    pairs = np.concatenate(list(given_links.values()))
    s = np.repeat([1.0, -1.0], [len(pairs) for pairs in given_links.values()])
    Delta = X[pairs[:, 0]] - X[pairs[:, 1]]
    loss, gradient = pcca_loss(model.components_, Delta, s, 3.0)
    np.testing.assert_allclose(loss, model.objective_, rtol=1e-9)
    assert np.abs(gradient).max() < 0.01
    assert loss != PCCA(4).fit(X, **given_links).objective_


def test_cannot_links_alone_are_enough(problem):
    X, given_links = problem
    features = PCCA(2).fit(X, cannot_link=given_links["cannot_link"]).transform(X)
    assert np.isfinite(features).all()


# ------------------------------------------------------------------ refusals
def test_what_is_refused(problem):
    X, given_links = problem
    with pytest.raises(ValueError, match=r"PCCA needs at least one cannot_link, got 1 must-links"):
        PCCA().fit(X, must_link=[(0, 1)])
    with pytest.raises(ValueError, match=r"cannot_link must name objects 0\.\.59, but row 0"):
        PCCA().fit(X, cannot_link=[(0, 60)])
    with pytest.raises(ValueError, match=r"n_components must be at most 4 \(X has n_features=4\)"):
        PCCA(5).fit(X, **given_links)
    with pytest.raises(ValueError, match=r"n_components must be at most 2 \(the kernel matrix"):
        KernelPCCA(3).fit(X, cannot_link=[(0, 1)])
    with pytest.raises(ValueError, match="Linked objects are all equal"):
        PCCA().fit(np.ones((5, 2)), cannot_link=[(0, 1)])
    with pytest.raises(ValueError, match="sharpness must be a number above 0, got 0"):
        PCCA(sharpness=0).fit(X, **given_links)
    with pytest.raises(ValueError, match="max_iter must be an integer of at least 1, got 0"):
        PCCA(max_iter=0).fit(X, **given_links)
    with pytest.raises(ValueError, match=r"kernel must be one of rbf, .* got 'sigmoid'"):
        KernelPCCA(kernel="sigmoid").fit(X, **given_links)
    with pytest.raises(ValueError, match="gamma must be a number above 0, got -1"):
        KernelPCCA(gamma=-1).fit(X, **given_links)
    with pytest.raises(ValueError, match="kernel must be positive semidefinite"):
        KernelPCCA(kernel=lambda a, b: -a @ b).fit(X, **given_links)


def test_too_few_steps_are_said(problem):
    X, given_links = problem
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=2 steps"):
        assert not PCCA(max_iter=2).fit(X, **given_links).converged_


def test_more_links_than_memory_holds_are_refused_before_work():
    n = 2_000_000
    pairs = np.arange(n).reshape(-1, 2)
    with pytest.raises(MemoryError, match=r"1,000,000 links between 2,000,000 objects .* fewer"):
        KernelPCCA().fit(np.arange(n)[:, None], cannot_link=pairs)
    wide = np.broadcast_to(np.arange(2000.0)[:, None], (2000, 5000))
    many = np.column_stack(np.triu_indices(2000, 1))
    with pytest.raises(MemoryError, match=r"1,999,000 links between 2,000 objects .* fewer links"):
        PCCA().fit(wide, cannot_link=many)
