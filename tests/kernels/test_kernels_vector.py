"""The vector instructions, one by one, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from evdist.kernels import vector
from evdist.kernels.vector import LANES, aligned_zeros, padded_width

WIDTHS = [16, 32, 48]
#: What `dots` fetches into the cache changes no result: row 0, again and again.
NO_ROWS = np.zeros(1, np.uint32)
every_width = pytest.mark.parametrize("width", WIDTHS)


@njit
def call_gather(table, index, start, count, A):
    vector.gather_rows(table, table.shape[1], index, start, 0, count, A)


@njit
def call_dots(A, count, m, out):
    vector.dots(A, A.shape[1], A.shape[1], count, m, out, A, NO_ROWS, 0, 0)


@njit
def call_residuals(kappa, delta, start, count, w, target, r):
    vector.residuals(kappa, delta, start, count, w, target, r)


@njit
def call_change(A, m, old, target, w):
    return vector.change_of_squares(
        A, A.shape[1], A.shape[1], A.shape[0], m, old, target, w, A, NO_ROWS, 0, 0
    )


@njit
def call_sum(A, count, r, g):
    vector.weighted_sum(A, A.shape[1], count, r, g)


@njit
def call_squares(A, count, d):
    vector.column_squares(A, A.shape[1], count, d)


def gram_caller(gram_rows) -> Callable:
    @njit
    def call(A, count, w, chosen, at, S):
        gram_rows(A, A.shape[1], count, w, chosen, at, S)

    return call


#: Rows made at a time -> the instruction.
GRAM = {
    int(name.removeprefix("gram_rows_")): gram_caller(getattr(vector, name))
    for name in vars(vector)
    if name.startswith("gram_rows_")
}


def random_table(n: int, width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    table = aligned_zeros(n, width)
    table[:] = rng.random((n, width))
    return table


def off_the_cache_lines(table: NDArray[np.float32]) -> NDArray[np.float32]:
    raw = np.zeros(table.size + LANES + 1, np.float32)
    skip = (-raw.ctypes.data // 4) % LANES + 1
    off = raw[skip : skip + table.size].reshape(table.shape)
    off[:] = table
    assert off.ctypes.data % (4 * LANES) == 4
    return off


@pytest.mark.parametrize(("f", "width"), [(1, 16), (15, 16), (16, 16), (17, 32), (33, 48)])
def test_tables_are_padded_to_whole_cache_lines(f, width):
    assert padded_width(f) == width
    table = aligned_zeros(3, width)
    assert table.shape == (3, width)
    assert table.dtype == np.float32
    assert table.ctypes.data % (4 * LANES) == 0
    assert not table.any()


@every_width
@pytest.mark.parametrize(("start", "count"), [(0, 30), (7, 0), (5, 9), (29, 1)])
def test_gathered_rows_are_copies(width, start, count):
    rng = np.random.default_rng(width)
    table = random_table(50, width, rng)
    index = rng.integers(0, 50, 30).astype(np.uint32)
    A = np.full((count + 1, width), -1, np.float32)
    call_gather(table, index, start, count, A)
    np.testing.assert_array_equal(A[:count], table[index[start : start + count]])
    assert (A[count] == -1).all(), "wrote beyond the last row"


@every_width
@pytest.mark.parametrize("count", [0, 4, 28])
def test_dots(width, count):
    rng = np.random.default_rng(width)
    A, m = random_table(count, width, rng), rng.random(width)
    out = np.full(count + 1, -1.0)
    call_dots(A, count, m, out)
    np.testing.assert_allclose(out[:-1], A.astype(float) @ m, rtol=1e-14)
    assert out[-1] == -1.0, "wrote beyond the last row"


def test_dots_are_exact_on_the_grid_of_masses():
    rng = np.random.default_rng(0)
    units = rng.multinomial(1 << 24, np.full(48, 1 / 48), 40)
    m_units = rng.multinomial(1 << 24, rng.dirichlet(np.full(48, 0.1)))
    A, out = aligned_zeros(40, 48), np.empty(40)
    A[:] = units / (1 << 24)
    call_dots(A, 40, m_units / (1 << 24), out)
    assert [int(x) for x in np.ldexp(out, 48)] == [int(row @ m_units) for row in units]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 21])
def test_residuals(count):
    rng = np.random.default_rng(count)
    kappa = rng.random(count)
    delta, w = rng.random((2, 30)).astype(np.float32)
    target, r = np.full(count + 1, -1.0), np.full(count + 1, -1.0, np.float32)
    call_residuals(kappa, delta, 5, count, w, target, r)
    np.testing.assert_array_equal(target[:count], delta[5 : 5 + count])
    expected = (kappa - delta[5 : 5 + count]).astype(np.float32) * w[:count]
    np.testing.assert_array_equal(r[:count], expected)
    assert target[-1] == r[-1] == -1.0, "wrote beyond the last pair"


@every_width
def test_change_of_squares(width):
    rng = np.random.default_rng(width)
    A, m = random_table(24, width, rng), rng.random(width)
    old, target = rng.random((2, 24))
    w = rng.random(24).astype(np.float32)
    new = A.astype(float) @ m
    expected = w.astype(float) @ ((new - target) ** 2 - (old - target) ** 2)
    assert call_change(A, m, old, target, w) == pytest.approx(expected, rel=1e-13)


def test_a_small_change_of_squares_keeps_its_digits():
    A, m = aligned_zeros(4, 16), np.zeros(16)
    A[0, 0], m[0] = 1, 0.5 + 2**-24
    old, target, w = np.array([0.5, 0, 0, 0]), np.array([0.25, 0.9, 0.9, 0.9]), np.ones(4)
    change = call_change(A, m, old, target, w.astype(np.float32))
    assert change == 2**-24 * (0.5 + 2**-24)


@every_width
@pytest.mark.parametrize("count", [0, 5, 32, 70])
@pytest.mark.parametrize("rows", sorted(GRAM))
def test_gram_rows_fill_the_chosen_rows_alone(rows, count, width):
    rng = np.random.default_rng(width)
    A, w = random_table(70, width, rng), rng.random(70).astype(np.float32)
    chosen = rng.permutation(16)
    before = rng.random((16, width))
    S = before.copy()
    GRAM[rows](A, count, w, chosen, 3, S)
    part, v = A[:count].astype(float), w[:count, None].astype(float)
    made = chosen[3 : 3 + rows]
    # Sums of a few dozen products in float32, added up in float64.
    np.testing.assert_allclose(S[made], (part.T @ (v * part))[made], rtol=1e-6)
    others = np.setdiff1d(np.arange(16), made)
    np.testing.assert_array_equal(S[others], before[others])


@pytest.mark.parametrize("rows", sorted(set(GRAM) - {1}))
def test_gram_rows_made_together_have_the_bits_of_one_at_a_time(rows):
    rng = np.random.default_rng(rows)
    A, w = random_table(50, 32, rng), rng.random(50).astype(np.float32)
    chosen = rng.permutation(16)
    together, apart = np.zeros((16, 32)), np.zeros((16, 32))
    GRAM[rows](A, 50, w, chosen, 0, together)
    for a in range(rows):
        GRAM[1](A, 50, w, chosen, a, apart)
    np.testing.assert_array_equal(together, apart)


@every_width
@pytest.mark.parametrize("count", [0, 1, 33, 100])
def test_weighted_sum(width, count):
    rng = np.random.default_rng(width)
    A, r = random_table(100, width, rng), rng.normal(size=100).astype(np.float32)
    g = rng.random(width)
    call_sum(A, count, r, g)
    expected = r[:count].astype(float) @ A[:count].astype(float)
    np.testing.assert_allclose(g, expected, rtol=0, atol=5e-6)


@every_width
@pytest.mark.parametrize("count", [0, 1, 33, 100])
def test_column_squares_are_those_of_float32_summed_in_order(width, count):
    A, d = random_table(100, width, np.random.default_rng(width)), np.ones(width)
    call_squares(A, count, d)
    expected = np.zeros(width)
    for row in A[:count]:
        expected += row * row
    np.testing.assert_array_equal(d, expected)


@every_width
def test_tables_off_the_cache_lines_give_the_same_bits(width):
    rng = np.random.default_rng(width)
    table = random_table(40, width, rng)
    index = rng.integers(0, 40, 40).astype(np.uint32)
    m, w = rng.random(width), rng.random(40).astype(np.float32)
    old, target = rng.random((2, 40))
    results = []
    for t in (table, off_the_cache_lines(table)):
        A = np.empty_like(t)
        call_gather(t, index, 0, 40, A)
        out, S, g = np.empty(40), np.zeros((16, width)), np.zeros(width)
        call_dots(t, 40, m, out)
        GRAM[1](t, 40, w, np.array([3]), 0, S)
        call_sum(t, 40, w, g)
        results.append((A, out, S, g, call_change(t, m, old, target, w)))
    for aligned, unaligned in zip(*results, strict=True):
        np.testing.assert_array_equal(unaligned, aligned)
