"""Columns of a row's program from lists of clusters, against the definition in NumPy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from evdist.kernels.columns import cluster_columns
from evdist.kernels.slots import split
from evdist.kernels.sparse_rows import MASSES_AHEAD, decode, encode


@njit
def columns_of(T, index, start, count, base, cluster, first, last, C):
    return cluster_columns(
        T, index, start, count, 0, base, cluster, first, last, C, np.int64(C.shape[1])
    )


def lists(rng: np.random.Generator, n: int, c: int, most: int) -> np.ndarray:
    """Masses (n, c + 2) of rows that name at most so many clusters each; the first one names so."""
    mass = np.zeros((n, c + 2), np.float32)
    mass[:, 0], mass[:, -1] = rng.random(n), rng.random(n)
    for i in range(n):
        named = rng.choice(c, most if i == 0 else rng.integers(most + 1), replace=False)
        mass[i, 1 + named] = rng.random(len(named)) + 0.01
    return mass / mass.sum(axis=1, keepdims=True)


@given(
    c=st.integers(12, 300), k=st.integers(1, 40), most=st.integers(1, 12), seed=st.integers(0, 99)
)
def test_a_column_is_what_partners_have_on_other_clusters(
    c: int, k: int, most: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = encode(lists(rng, 9, c, most))
    mass = decode(rows, c)
    index = rng.integers(9, size=k + 5).astype(np.uint32)
    cluster = rng.choice(c, 6, replace=False)
    base = rng.random(-(-k // 16) * 16).astype(np.float32)
    C = np.full((6, len(base)), -1.0, np.float32)
    longer = columns_of(split(rows), index, 5, k, base, cluster, 2, 6, C)

    partners = mass[index[5:]]
    counted = (partners[:, 1:-1] > 0).sum(axis=1) <= MASSES_AHEAD
    for p in range(2, 6):
        expected = base[:k] - partners[:, 1 + cluster[p]]
        assert np.array_equal(C[p, :k][counted], expected[counted])
    assert (C[:2] == -1.0).all(), "columns before the first keep what they have"
    # Rows with as many clusters as the first line has room for may have a second one.
    may = (partners[:, 1:-1] > 0).sum(axis=1) >= MASSES_AHEAD
    assert (longer != 0) == may.any()
