"""Kernel and local Fisher discriminants: definitions, laws, example 5 of NN-EVCLUS, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from features.circles import circles
from scipy.linalg import eigh
from scipy.stats import ortho_group
from sklearn.cluster import KMeans
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score
from tolerances import ROUNDING

from evdist import EVCLUS
from evdist.features import LFDA, KernelFDA
from evdist.features.scatter import local_affinity, local_scatter


def some_labels(y: np.ndarray, n_labels: int, seed: int) -> np.ndarray:
    known = np.random.default_rng(seed).choice(len(y), n_labels, replace=False)
    labels = np.full(len(y), -1)
    labels[known] = y[known]
    return labels


# ------------------------------------------------------------------ example 5
@pytest.mark.parametrize("seed", range(8))
def test_example_5_fifty_labels_separate_the_circles(seed):
    X, y = circles(seed)
    features = KernelFDA(gamma=0.3).fit(X, some_labels(y, 50, seed)).transform(X)
    assert features.shape == (500, 1)
    found = KMeans(2, n_init=3, random_state=0).fit_predict(features)
    assert adjusted_rand_score(y, found) >= 0.95


@pytest.mark.parametrize("seed", range(2))
def test_example_5_evclus_finds_the_circles_in_the_feature(seed):
    X, y = circles(seed)
    features = KernelFDA(gamma=0.3).fit(X, some_labels(y, 50, seed)).transform(X)
    model = EVCLUS(2, metric="euclidean", n_jobs=1, random_state=0).fit(features)
    assert adjusted_rand_score(y, model.labels_) >= 0.95


# ------------------------------------------------------------------ kernel discriminants
@pytest.fixture(scope="module")
def three() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    y = np.arange(75) % 3
    return rng.normal(size=(75, 4)) @ np.diag([1, 2, 1, 0.5]) + 3 * np.eye(4)[y], y


def test_a_linear_kernel_is_linear_discriminant_analysis(three):
    X, y = three
    kernel = KernelFDA(kernel="linear", shrinkage=1e-9).fit(X, y).transform(X)
    plain = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    plain = plain - plain.mean(axis=0)
    signs = np.sign((kernel * plain).sum(axis=0))
    np.testing.assert_allclose(kernel, plain * signs, rtol=1e-5, atol=1e-5)


def test_classes_are_apart_and_narrow_in_the_features(three):
    X, y = three
    features = KernelFDA(gamma=0.1).fit(X, y).transform(X)
    spread = max(features[y == k].std(axis=0).max() for k in range(3))
    centres = np.array([features[y == k].mean(axis=0) for k in range(3)])
    apart = min(np.linalg.norm(centres[a] - centres[b]) for a, b in [(0, 1), (0, 2), (1, 2)])
    assert apart > 10 * spread


# ------------------------------------------------------------------ local discriminants
def slow_scatter(X, y, affinity):
    """The double sums as they are written."""
    n, d = X.shape
    within, between = np.zeros((d, d)), np.zeros((d, d))
    for i in range(n):
        for j in range(n):
            square = np.outer(X[i] - X[j], X[i] - X[j]) / 2
            if y[i] == y[j]:
                size = (y == y[i]).sum()
                within += affinity[i, j] / size * square
                between += affinity[i, j] * (1 / n - 1 / size) * square
            else:
                between += square / n
    return within, between


def whole_affinity(X, y, k):
    A = np.zeros((len(X), len(X)))
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        A[np.ix_(rows, rows)] = local_affinity(X[rows], k)
    return A


def test_local_scatter_is_its_definition(three):
    X, y = three
    classes = [X[y == k] for k in range(3)]
    got = local_scatter(classes, [local_affinity(Z, 7) for Z in classes])
    expected = slow_scatter(X, y, whole_affinity(X, y, 7))
    np.testing.assert_allclose(got[0], expected[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(got[1], expected[1], rtol=1e-10, atol=1e-10)


def test_affinities_of_one_are_fishers_scatter(three):
    X, y = three
    classes = [X[y == k] for k in range(3)]
    within, between = local_scatter(classes, [np.ones((len(Z), len(Z))) for Z in classes])
    centres = np.array([Z.mean(axis=0) for Z in classes])
    np.testing.assert_allclose(
        within, sum((Z - m).T @ (Z - m) for Z, m in zip(classes, centres, strict=True)), **ROUNDING
    )
    moved = centres - X.mean(axis=0)
    np.testing.assert_allclose(between, 25 * moved.T @ moved, rtol=1e-10, atol=1e-10)


def test_affinity_is_scaled_by_the_seventh_neighbour():
    X = np.arange(20.0)[:, None]  # the seventh neighbour of 10 is 4 away, that of 0 is 7 away
    A = local_affinity(X, 7)
    np.testing.assert_allclose(A[10, 12], np.exp(-4 / (4 * 4)), **ROUNDING)
    np.testing.assert_allclose(A[0, 10], np.exp(-100 / (7 * 4)), **ROUNDING)
    np.testing.assert_array_equal(A, A.T)


def test_copies_of_one_object_are_near_and_small_classes_are_allowed():
    A = local_affinity(np.array([[0.0]] * 9 + [[1.0]]), 7)
    np.testing.assert_array_equal(A[0], [1.0] * 9 + [0.0])
    np.testing.assert_array_equal(local_affinity(np.zeros((1, 2)), 7), [[1.0]])


def test_lfda_solves_the_eigenproblem_and_weights_by_its_roots(three):
    X, y = three
    model = LFDA(2, shrinkage=1e-12).fit(X, y)
    within, between = slow_scatter(X, y, whole_affinity(X, y, 7))
    values = eigh(between, within, eigvals_only=True)[::-1]
    np.testing.assert_allclose(model.eigenvalues_, values[:2], rtol=1e-6)
    lengths = np.diag(model.components_ @ within @ model.components_.T)
    np.testing.assert_allclose(lengths, values[:2], rtol=1e-6)


def test_a_class_of_two_parts_is_kept_apart_by_lfda_and_not_by_lda():
    """Sugiyama's case: one class on both sides of the other."""
    rng = np.random.default_rng(1)
    left, right, middle = (rng.normal(size=(60, 2)) * [0.4, 2] + [m, 0] for m in (-4, 4, 0))
    X, y = np.concatenate([left, right, middle]), np.repeat([0, 0, 1], 60)
    local = LFDA(1).fit(X, y).components_[0]
    fisher = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).scalings_[:, 0]
    assert abs(local[1]) < 0.05 * abs(local[0])
    assert abs(fisher[1] / fisher[0]) > 0.5


# ------------------------------------------------------------------ laws of both
BOTH = [KernelFDA(gamma=0.1), LFDA(2)]


@pytest.mark.parametrize("model", BOTH, ids=repr)
def test_turning_and_moving_the_data_changes_no_feature(model, three):
    X, y = three
    moved = X @ ortho_group.rvs(4, random_state=1) + [3, -40, 0, 7]
    before = model.fit(X, y).transform(X)
    np.testing.assert_allclose(model.fit(moved, y).transform(moved), before, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("model", BOTH, ids=repr)
def test_objects_without_a_label_make_no_difference(model, three):
    X, y = three
    labels = some_labels(y, 40, 0)
    known = labels >= 0
    before = model.fit(X[known], y[known]).transform(X)
    np.testing.assert_array_equal(model.fit(X, labels).transform(X), before)
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("model", BOTH, ids=repr)
def test_names_of_classes_do_not_matter(model, three):
    X, y = three
    before = model.fit(X, y).transform(X)
    words = np.array(["oak", "pine", "yew"])[y]
    np.testing.assert_array_equal(model.fit(X, words).transform(X), before)
    np.testing.assert_array_equal(model.fit(X, y.astype(float)).transform(X), before)


@pytest.mark.parametrize("model", BOTH, ids=repr)
def test_the_order_of_the_objects_does_not_matter(model, three):
    X, y = three
    order = np.random.default_rng(0).permutation(75)
    before = model.fit(X, y).transform(X)
    after = model.fit(X[order], y[order]).transform(X)
    np.testing.assert_allclose(after, before, rtol=1e-7, atol=1e-7)


def test_a_constant_column_is_harmless(three):
    X, y = three
    wide = np.column_stack([X, np.full(75, 3.0)])
    np.testing.assert_allclose(
        LFDA(2).fit(wide, y).transform(wide), LFDA(2).fit(X, y).transform(X), rtol=1e-4, atol=1e-4
    )


# ------------------------------------------------------------------ refusals
@pytest.mark.parametrize("kind", [KernelFDA, LFDA])
def test_what_is_refused(kind, three):
    X, y = three
    with pytest.raises(
        ValueError, match="labelled objects of at least two classes, got 1 labelled"
    ):
        kind().fit(X, some_labels(y, 1, 0))
    with pytest.raises(ValueError, match="requires y to be passed"):
        kind().fit(X, None)
    with pytest.raises(ValueError, match="shrinkage must be above 0 and at most 1, got 0"):
        kind(shrinkage=0).fit(X, y)
    with pytest.raises(ValueError, match="n_components must be at most"):
        kind(9).fit(X, y)


def test_refusals_of_one_kind(three):
    X, y = three
    with pytest.raises(ValueError, match="n_neighbors must be an integer of at least 1"):
        LFDA(n_neighbors=0).fit(X, y)
    with pytest.raises(ValueError, match="labelled objects are all equal"):
        LFDA().fit(np.ones((6, 2)), [0, 1] * 3)
    with pytest.raises(ValueError, match="kernel must be one of"):
        KernelFDA(kernel="sigmoid").fit(X, y)


@pytest.mark.parametrize(
    ("model", "cure"), [(KernelFDA(), "to -1, or use LFDA"), (LFDA(), "to -1, or use LDA")]
)
def test_more_labelled_objects_than_memory_holds_are_refused_before_work(model, cure):
    n = 2_000_000
    with pytest.raises(MemoryError, match=rf"2,000,000 labelled objects.* needs? about .*{cure}"):
        model.fit(np.arange(n)[:, None], np.arange(n) % 2)
