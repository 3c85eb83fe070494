"""Placing rows against a fixed table: the minimiser, whatever the masses were before."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.kernel_reference import FAMILIES, GRID, kkt_residual
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.evclus.rows.sweep import Block, assign_rows
from evdist.kernels.grid import project_rows
from evdist.kernels.simplex import solve_simplex
from evdist.kernels.vector import aligned_zeros, padded_width

every_family = pytest.mark.parametrize("focal", FAMILIES.values(), ids=FAMILIES.keys())
LANDMARKS, ROWS, K = 60, 25, 40


def landmarks(focal: FocalSets, seed: int = 0) -> tuple[NDArray, Block]:
    """A table of landmarks, and rows that each know their dissimilarity to K of them."""
    rng = np.random.default_rng([seed, len(focal)])
    f = len(focal)
    M = rng.dirichlet(np.full(f, 0.3), LANDMARKS).astype(np.float32)
    P = np.zeros((1, f, padded_width(f)), np.float32)
    P[0, :, :f] = focal.C
    table = aligned_zeros(LANDMARKS, P.shape[2])
    project_rows(M, P, table, 0, LANDMARKS)
    index = np.stack([rng.permutation(LANDMARKS)[:K] for _ in range(ROWS)]).astype(np.uint32)
    block = Block(
        0,
        np.arange(ROWS, dtype=np.int64) * K,
        np.full(ROWS, K, np.int64),
        index.reshape(-1),
        rng.random(ROWS * K).astype(np.float32),
    )
    return table, block


def cost(table: NDArray, block: Block, i: int, m: NDArray) -> float:
    start, k = block.first[i - block.row0], block.degree[i - block.row0]
    A = table[block.partner[start : start + k], : len(m)].astype(float)
    return float(((A @ m - block.delta[start : start + k]) ** 2).sum())


def minimiser(table: NDArray, block: Block, i: int, f: int) -> NDArray:
    start = block.first[i]
    A = table[block.partner[start : start + K], :f].astype(float)
    S, u = A.T @ A, A.T @ block.delta[start : start + K]
    m = solve_simplex(S, u, np.full(f, 1 / f))
    assert kkt_residual(S, u, m) < 1e-10
    return m


@every_family
def test_rows_get_the_minimiser_of_their_program(focal):
    f = len(focal)
    table, block = landmarks(focal)
    M = np.zeros((ROWS, f), np.float32)
    assign_rows(M, table, block, 0, ROWS)
    np.testing.assert_array_equal(M.astype(float).sum(axis=1), 1.0)
    assert (M >= 0).all()
    np.testing.assert_array_equal(M * GRID, np.rint(M * GRID))
    for i in range(ROWS):
        best = minimiser(table, block, i, f)
        assert cost(table, block, i, M[i].astype(float)) <= cost(table, block, i, best) * (1 + 1e-9)


@every_family
def test_the_answer_does_not_depend_on_what_the_masses_were(focal):
    f = len(focal)
    table, block = landmarks(focal)
    rng = np.random.default_rng(1)
    one, two = np.zeros((ROWS, f), np.float32), rng.dirichlet(np.ones(f), ROWS).astype(np.float32)
    two[3] = np.nan
    assign_rows(one, table, block, 0, ROWS)
    assign_rows(two, table, block, 0, ROWS)
    np.testing.assert_array_equal(one, two)


def test_rows_are_independent_of_the_block_they_stand_in():
    table, block = landmarks(FocalSets.simple(4))
    whole, parts = np.zeros((ROWS, 6), np.float32), np.zeros((ROWS, 6), np.float32)
    assign_rows(whole, table, block, 0, ROWS)
    for lo, hi in [(0, 7), (7, 8), (8, ROWS)]:
        at = slice(lo * K, hi * K)
        part = Block(
            lo, block.first[lo:hi] - lo * K, block.degree[lo:hi], block.partner[at], block.delta[at]
        )
        assign_rows(parts, table, part, lo, hi)
    np.testing.assert_array_equal(parts, whole)


def test_only_the_rows_asked_for_are_written():
    table, block = landmarks(FocalSets.simple(4))
    M = np.full((ROWS, 6), -1, np.float32)
    assign_rows(M, table, block, 5, 9)
    assert (M[:5] == -1).all()
    assert (M[9:] == -1).all()
    assert (M[5:9] >= 0).all()


def test_an_object_like_one_cluster_and_unlike_the_other_joins_the_first():
    # Landmarks sure of cluster 1 or 2; the object is near the first, far from the second.
    focal = FocalSets.simple(2)
    M = np.eye(4, dtype=np.float32)[[1, 1, 1, 2, 2, 2]]
    P = np.zeros((1, 4, 16), np.float32)
    P[0, :, :4] = focal.C
    table = aligned_zeros(6, 16)
    project_rows(M, P, table, 0, 6)
    near, far = [0, 0, 0], [1, 1, 1]
    delta = np.array([*near, *far, *far, *far, *near, *near], np.float32)
    index = np.tile(np.arange(6, dtype=np.uint32), 3)
    block = Block(0, np.arange(3) * 6, np.full(3, 6), index, delta)
    found = np.zeros((3, 4), np.float32)
    assign_rows(found, table, block, 0, 3)
    # In the first cluster; far from both, an outlier; near both, anywhere.
    assert found.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1]]
