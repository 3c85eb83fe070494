"""Compiled dissimilarities against scipy, for every metric."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from evdist.kernels.distances import METRICS, Metric, distances, pairwise, transform

#: Metrics that do not change when all objects move together.
MOVABLE = ["euclidean", "sqeuclidean", "cityblock", "chebyshev", "hamming", "mahalanobis"]
#: float32 coordinates, sums of a few dozen terms.
SINGLE_SUMS = {"rtol": 1e-5, "atol": 1e-6}


def all_pairs(X: NDArray, name: str) -> NDArray[np.float32]:
    metric = Metric.of(X, name)
    table = metric.table(X)
    everyone = np.arange(len(X), dtype=np.uint32)
    return distances(metric, table, np.tile(everyone, (len(X), 1)), table, everyone)


def reference(X: NDArray, name: str) -> NDArray[np.float64]:
    if name == "mahalanobis":
        return cdist(X, X, name, VI=np.linalg.inv(np.atleast_2d(np.cov(X.T))))
    return cdist(X, X, name)


def sample(name: str, n: int, d: int, seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng([seed, n, d])
    if name == "hamming":
        return rng.integers(0, 3, (n, d)).astype(float)
    return rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + rng.uniform(1, 3, d)


# ---------------------------------------------------------------------- values
@pytest.mark.parametrize("name", sorted(METRICS))
def test_agrees_with_scipy_at_every_width(name):
    # In one dimension a direction is a sign, and every row is constant: see below.
    for d in range(2 if name in ("cosine", "correlation") else 1, 41):
        X = sample(name, 50, d)
        np.testing.assert_allclose(all_pairs(X, name), reference(X, name), **SINGLE_SUMS)


@given(
    st.integers(1, 3000), st.integers(1, 40), st.sampled_from(["f4", "f8"]), st.sampled_from("CF")
)
def test_the_centre_is_numpys_mean_in_every_bit(n, d, dtype, layout):
    X = np.array(sample("euclidean", n, d), dtype, order=layout)
    np.testing.assert_array_equal(Metric.of(X, "euclidean").centre, X.mean(0, dtype=float))


def test_cosine_in_one_dimension_tells_signs_apart():
    X = np.array([[2.0], [-1.0], [0.5]])
    assert all_pairs(X, "cosine").tolist() == [[0, 2, 0], [2, 0, 2], [0, 2, 0]]


@pytest.mark.parametrize("name", sorted(METRICS))
def test_symmetric_in_every_bit_and_zero_to_itself(name):
    D = all_pairs(sample(name, 80, 21), name)
    np.testing.assert_array_equal(D, D.T)
    assert not D.diagonal().any()
    assert D.dtype == np.float32


@pytest.mark.parametrize("name", MOVABLE)
def test_moving_all_objects_changes_nothing(name):
    X = sample(name, 50, 7)
    moved = all_pairs(X + 1000.0, name)
    np.testing.assert_allclose(moved, all_pairs(X, name), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["cosine", "correlation", "mahalanobis"])
def test_changing_the_unit_changes_nothing(name):
    X = sample(name, 50, 7)
    np.testing.assert_allclose(all_pairs(1e-3 * X, name), all_pairs(X, name), **SINGLE_SUMS)


def test_mahalanobis_does_not_depend_on_the_units_of_the_columns():
    X = sample("mahalanobis", 50, 3)
    np.testing.assert_allclose(
        all_pairs(X * [1.0, 1e-8, 1e6], "mahalanobis"), all_pairs(X, "mahalanobis"), **SINGLE_SUMS
    )


@pytest.mark.parametrize("name", sorted(METRICS))
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_number_types_are_read_alike(name, dtype):
    X = np.round(10 * sample(name, 40, 5)).astype(dtype)
    X[:, 0] += np.arange(40, dtype=dtype)  # no constant row
    np.testing.assert_array_equal(all_pairs(X, name), all_pairs(X.astype(float), name))


@pytest.mark.parametrize("name", sorted(METRICS))
def test_new_rows_are_measured_as_the_fitted_ones(name):
    X = sample(name, 60, 18)
    metric = Metric.of(X, name)
    table, new = metric.table(X), metric.table(X[10:25])
    others = np.random.default_rng(0).integers(0, 60, (15, 9)).astype(np.uint32)
    found = distances(metric, table, others, new, np.arange(15, dtype=np.uint32))
    expected = all_pairs(X, name)[np.arange(10, 25)[:, None], others]
    np.testing.assert_array_equal(found, expected)


def test_only_the_pairs_asked_for_are_computed_in_any_order():
    X = sample("euclidean", 60, 5)
    metric = Metric.of(X, "euclidean")
    table = metric.table(X)
    rng = np.random.default_rng(1)
    mine = rng.permutation(60)[:20].astype(np.uint32)
    others = rng.integers(0, 60, (20, 7)).astype(np.uint32)
    found = distances(metric, table, others, table, mine)
    np.testing.assert_array_equal(found, all_pairs(X, "euclidean")[mine[:, None], others])


def test_rows_are_padded_with_zeros():
    X = sample("euclidean", 5, 19)
    table = Metric.of(X, "euclidean").table(X)
    assert table.shape == (5, 32)
    assert not table[:, 19:].any()


def test_a_callable_is_asked_pair_by_pair():
    A, B = sample("euclidean", 6, 4), sample("euclidean", 6, 4, seed=1)
    found = pairwise(lambda a, b: float(np.abs(a - b).sum()), A, B)
    np.testing.assert_allclose(found, np.abs(A - B).sum(axis=1))


# ---------------------------------------------------------------------- what is refused
def test_a_zero_row_has_no_direction():
    X = sample("cosine", 30, 4)
    X[[17, 21]] = 0
    with pytest.raises(ValueError, match=r"Row 17 of X is zero.*choose another metric"):
        all_pairs(X, "cosine")


@pytest.mark.parametrize("value", [0.0, 2.0, 0.1, 1 / 3, 1e9 + 0.1])
@pytest.mark.parametrize("d", [1, 3, 7, 10])
def test_a_constant_row_has_no_correlation(value, d):
    X = sample("correlation", 30, d)
    X[17] = value
    if d == 1:  # every row is constant
        X[:17] += 1
    row = 0 if d == 1 else 17
    with pytest.raises(ValueError, match=rf"Row {row} of X is constant.*choose another metric"):
        all_pairs(X, "correlation")


@pytest.mark.parametrize(
    "kind", ["constant column", "sum of two columns", "fewer rows than columns"]
)
def test_a_singular_covariance_has_no_mahalanobis_distance(kind):
    X = sample("mahalanobis", 30, 4)
    if kind == "constant column":
        X[:, 2] = 1.0
    elif kind == "sum of two columns":
        X[:, 2] = X[:, 0] + X[:, 1]
    else:
        X = X[:4]
    with pytest.raises(ValueError, match="covariance matrix of X is singular"):
        all_pairs(X, "mahalanobis")


# ---------------------------------------------------------------------- phi
def phi(d: NDArray, d0: float) -> NDArray[np.float32]:
    out = np.empty(len(d), np.float32)
    transform(np.asarray(d, np.float32), d0, out)
    return out


def test_phi_is_zero_at_zero_and_095_at_d0():
    assert phi(np.zeros(1), 3.0)[0] == 0
    np.testing.assert_allclose(phi(np.array([3.0]), 3.0), 0.95, rtol=1e-6)


@given(st.lists(st.floats(0, 1e4, width=32), min_size=2, max_size=30), st.floats(1e-3, 1e3))
def test_phi_is_eq_5_increases_and_stays_below_one(d, d0):
    d = np.sort(np.array(d, np.float32))
    found = phi(d, d0)
    expected = 1 - np.exp(np.log(0.05) * (d.astype(float) / d0) ** 2)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert (np.diff(found) >= 0).all()
    assert (found >= 0).all()
    assert (found <= 1).all()


@pytest.mark.parametrize("n", [0, 1, 1023, 1024, 1025, 5000])
def test_phi_may_be_written_over_its_argument(n):
    d = np.random.default_rng(n).gamma(1.0, size=n).astype(np.float32)
    expected = phi(d, 2.0)
    transform(d, 2.0, d)
    np.testing.assert_array_equal(d, expected)


def test_phi_keeps_small_dissimilarities_apart():
    # 1 - exp(x) would round these to zero.
    np.testing.assert_allclose(phi(np.array([1e-6]), 1.0), -np.log(0.05) * 1e-12, rtol=1e-6)


@given(st.lists(st.floats(2.0**-60, 100, width=32), min_size=1, max_size=40), st.floats(1e-3, 1e3))
def test_phi_has_the_digits_of_the_librarys_exponential(ratios, d0):
    d = (np.array(ratios) * d0).astype(np.float32)
    expected = -np.expm1(np.log(0.05) / (d0 * d0) * d.astype(float) ** 2)
    np.testing.assert_allclose(phi(d, d0), expected, rtol=2.0**-23, atol=0)


def test_phi_of_a_number_does_not_depend_on_its_neighbours():
    d = np.linspace(0, 4, 37)
    one_by_one = np.concatenate([phi(d[i : i + 1], 1.7) for i in range(len(d))])
    np.testing.assert_array_equal(phi(d, 1.7), one_by_one)
