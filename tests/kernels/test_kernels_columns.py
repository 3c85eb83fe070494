"""The vector instructions for columns, one by one, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from evdist.kernels import columns
from evdist.kernels.lanes import LANES

every_count = pytest.mark.parametrize("count", [0, LANES, 7 * LANES])


@njit
def call_combine(C, columns_, count, m, out):
    columns.combine_columns(C, C.shape[1], columns_, count, m, out)


@njit
def call_sums(C, first, last, count, left, at, out, to):
    columns.column_sums(C, C.shape[1], first, last, count, left, at, out, to)


@njit
def call_change(old, new, target, w):
    return columns.change_between(old, new, target, w, len(old))


@every_count
def test_combined_columns(count):
    rng = np.random.default_rng(count)
    C, m = rng.random((9, count + LANES), np.float32), rng.random(9)
    out = np.full(count + 1, -1.0)
    call_combine(C, 5, count, m, out)
    np.testing.assert_allclose(out[:-1], m[:5] @ C[:5, :count].astype(float), rtol=1e-14)
    assert out[-1] == -1.0, "wrote beyond the last partner"


@every_count
def test_column_sums_of_some_columns(count):
    rng = np.random.default_rng(count)
    C, left = rng.random((9, count + LANES), np.float32), rng.random(count + 3, np.float32)
    out = np.full(12, -1.0)
    call_sums(C, 2, 6, count, left, 3, out, 4)
    expected = C[2:6, :count].astype(float) @ left[3:].astype(float)
    np.testing.assert_allclose(out[6:10], expected, rtol=1e-6)
    assert (np.delete(out, range(6, 10)) == -1.0).all(), "wrote sums of other columns"


def test_a_row_of_the_gram_matrix_is_the_sums_with_a_column_itself():
    C = np.random.default_rng(0).random((4, 5 * LANES), np.float32)
    S = np.zeros((4, 4))
    for p in range(4):
        call_sums(C, 0, 4, C.shape[1], C, p * C.shape[1], S, p * 4)
    np.testing.assert_allclose(S, C.astype(float) @ C.T.astype(float), rtol=1e-6)
    assert np.array_equal(S, S.T)


@every_count
def test_the_change_of_squares_keeps_its_digits(count):
    rng = np.random.default_rng(count)
    old, target, w = rng.random(count), rng.random(count), rng.random(count, np.float32)
    step = 1e-12 * rng.random(count)
    exact = (w * step * (2 * (old - target) + step)).sum()
    assert call_change(old, old + step, target, w) == pytest.approx(exact, rel=1e-3, abs=1e-300)
    other = rng.random(count)
    expected = (w * ((other - target) ** 2 - (old - target) ** 2)).sum()
    assert call_change(old, other, target, w) == pytest.approx(expected, rel=1e-12, abs=1e-300)
