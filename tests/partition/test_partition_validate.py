"""Masses that are none are refused, with the row and the value."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest

from evdist import CredalPartition, FocalSets

FOCAL = FocalSets.simple(2)


def table(row: list[float], at: int = 3, dtype: type = np.float64) -> np.ndarray:
    m = np.tile(np.array([0.1, 0.2, 0.3, 0.4], dtype=dtype), (6, 1))
    m[at] = row
    return m


BAD = [
    ([-0.1, 0.5, 0.3, 0.3], r"Row 3 of mass has -0\.1 on ∅ \(column 0\); masses are at least 0"),
    ([0.1, 0.2, np.nan, 0.4], r"Row 3 of mass has nan on \{1\} \(column 2\)"),
    ([0.1, 0.2, 0.3, 0.3], r"Row 3 of mass sums to 0\.9; each row must sum to 1 within 1e-06"),
    ([0.1, 0.2, np.inf, 0.4], r"Row 3 of mass sums to inf"),
    ([0.0, 0.0, 0.0, 0.0], r"Row 3 of mass sums to 0;"),
]


@pytest.mark.parametrize(("row", "sentence"), BAD)
def test_numpy_masses_are_checked_at_once(row, sentence):
    with pytest.raises(ValueError, match=sentence):
        CredalPartition(table(row), FOCAL)


@pytest.mark.parametrize(("row", "sentence"), BAD)
def test_lazy_masses_are_checked_as_they_are_read(row, sentence):
    lazy = CredalPartition(da.from_array(table(row), chunks=(2, 4)), FOCAL)
    labels = lazy.labels()
    for read in (labels.compute, lazy.summary, lazy.validate, lazy.to_frame):
        with pytest.raises(ValueError, match=sentence):
            read()
    assert lazy[:2].labels().compute().tolist() == [1, 1]


def test_validate_hands_the_partition_on():
    lazy = CredalPartition(da.from_array(table([0, 1, 0, 0]), chunks=(2, 4)), FOCAL)
    assert lazy.validate() is lazy


@pytest.mark.parametrize(
    ("dtype", "error", "fine"),
    [(np.float64, 1e-7, True), (np.float64, 1e-5, False), (np.float32, 1e-4, False)],
)
def test_sums_are_taken_with_a_stated_tolerance(dtype, error, fine):
    m = table([0.1, 0.2, 0.3, 0.4 + error], dtype=dtype)
    if fine:
        assert len(CredalPartition(m, FOCAL)) == 6
    else:
        with pytest.raises(ValueError, match="Row 3 of mass sums to 1"):
            CredalPartition(m, FOCAL)


def test_thousands_of_float32_masses_pass():
    m = np.random.default_rng(0).dirichlet(np.ones(4096), 20).astype(np.float32)
    assert CredalPartition(m, FocalSets.full(12)).n_clusters == 12


@pytest.mark.parametrize(
    ("mass", "sentence"),
    [
        (np.ones((3, 5)), r"one column per focal set: got 5 columns for 4 focal sets \(∅, \{0\}"),
        (np.array([1.0, 0, 0, 0]), r"two axes \(objects, focal sets\), got shape \(4,\)"),
        (np.ones((2, 2, 4)), r"two axes"),
        ([["a", "b", "c", "d"]], "mass must hold real numbers, got dtype <U1"),
        (np.ones((1, 4), dtype=complex), "mass must hold real numbers, got dtype complex128"),
    ],
)
def test_shape_and_kind_are_checked(mass, sentence):
    with pytest.raises(ValueError, match=sentence):
        CredalPartition(mass, FOCAL)


def test_a_dask_array_must_know_its_length():
    m = da.from_array(table([0, 1, 0, 0]), chunks=2)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        CredalPartition(m[m[:, 1] > 0.5], FOCAL)


def test_focal_sets_must_be_focal_sets():
    with pytest.raises(TypeError, match=r"must be a FocalSets, got list.*FocalSets\.simple"):
        CredalPartition(np.ones((1, 4)), [[], [0], [1], [0, 1]])


def test_lists_and_integers_become_float64():
    p = CredalPartition([[0, 1, 0, 0], [1, 0, 0, 0]], FOCAL)
    assert p.mass.dtype == np.float64
