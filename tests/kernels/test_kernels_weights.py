"""Weights of objects: a pair weighs the product of its two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from kernels.kernel_reference import FAMILIES, NO_WEIGHT, make_case

from evdist.belief import FocalSets
from evdist.evclus.rows.sweep import Block
from evdist.kernels.grid import project_rows
from evdist.kernels.vector import aligned_zeros

every_family = pytest.mark.parametrize("focal", FAMILIES.values(), ids=FAMILIES.keys())


@every_family
def test_unit_weights_are_no_weights_in_every_bit(focal):
    case = make_case(focal)
    ones = replace(case.copy(), weight=np.ones(case.n, np.float32))
    for _ in range(3):
        assert case.sweep() == ones.sweep()
    np.testing.assert_array_equal(case.M, ones.M)
    assert case.objective() == ones.objective()


def test_whole_weights_are_repeated_objects():
    # Each object i stands w_i times: a pair of objects becomes w_i w_j pairs of copies.
    rng = np.random.default_rng(4)
    case = make_case(FocalSets.pairs(3), n=16, k=6)
    count = rng.integers(1, 4, case.n)
    weighted = replace(case, weight=count.astype(np.float32))
    object_of = np.repeat(np.arange(case.n), count)
    first_copy = np.cumsum(count) - count
    index = [
        np.concatenate(
            [np.arange(first_copy[j], first_copy[j] + count[j]) for j in case.partners(i)]
        )
        for i in object_of
    ]
    degree = np.array([len(row) for row in index])
    index = np.concatenate(index).astype(np.uint32)
    first = np.cumsum(degree) - degree
    delta = case.delta[np.repeat(object_of, degree), object_of[index]]
    M = case.M[object_of]
    table = aligned_zeros(len(M), case.table.shape[1])
    project_rows(M, case.P, table, 0, len(M))
    repeated = replace(
        case,
        M=M,
        table=table,
        block=Block(0, first, degree, index, delta),
        weight=NO_WEIGHT,
    )
    assert weighted.objective() == pytest.approx(repeated.objective(), rel=1e-13)


def test_an_object_of_weight_zero_pulls_at_no_other():
    case = make_case(FocalSets.simple(4), weighted=True)
    case.weight[5] = 0
    other = case.copy()
    other.M[5] = np.eye(6)[2]
    project_rows(other.M, other.P, other.table, 5, 6)
    rows = np.delete(np.arange(case.n), 5)
    case.update(rows), other.update(rows)
    np.testing.assert_allclose(np.delete(case.M, 5, 0), np.delete(other.M, 5, 0), atol=1e-6)
    assert case.objective() == pytest.approx(other.objective(), rel=1e-9)
