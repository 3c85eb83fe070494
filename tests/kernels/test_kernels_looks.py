"""Compiled looks at masses say what their twins in NumPy say, to the last tie."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evdist import CredalPartition, FocalSets
from evdist.kernels import looks, sparse_rows
from evdist.partition import compiled, views
from evdist.partition.sparse import SparseMasses
from evdist.partition.validate import SUM_TOLERANCE, check_lists


def masses(seed: int, n: int, f: int, steps: int) -> np.ndarray:
    """Rows that sum to one, in steps of 1 / `steps`: ties are many where these are few."""
    rng = np.random.default_rng(seed)
    return (rng.multinomial(steps, rng.dirichlet(np.full(f, 0.3), n)) / steps).astype(np.float32)


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(2, 30), st.sampled_from([1, 4, 1000]), st.sampled_from(["f4", "f8"]))
def test_the_most_plausible_cluster(seed, c, steps, kind):
    family, mass = FocalSets.simple(c), masses(seed, 50, c + 2, steps).astype(kind)
    expected = views.contour(mass, family).argmax(axis=1)
    assert np.array_equal(looks.most_plausible(mass), expected)
    assert np.array_equal(views.labels(mass, family, "plausibility"), expected)
    assert np.array_equal(views.labels(np.asfortranarray(mass), family, "plausibility"), expected)


@given(seeds, st.integers(20, 60), st.sampled_from([1, 4, 1000]))
def test_the_largest_mass_of_lists(seed, c, steps):
    T = sparse_rows.encode(masses(seed, 50, c + 2, steps))
    for found, expected in zip(looks.most_mass(T), sparse_rows.most_mass(T), strict=True):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("c", [5, 40])
def test_labels_are_the_same_with_and_without_the_compiler(c, monkeypatch):
    mass = masses(1, 100_000, c + 2, 50)
    partition = CredalPartition(SparseMasses.of(mass) if c == 40 else mass, FocalSets.simple(c))
    with_it = partition.labels()
    monkeypatch.delitem(sys.modules, "numba")
    assert np.array_equal(partition.labels(), with_it)


def test_other_families_are_looked_at_by_numpy():
    block = np.zeros((1, 8), np.float32)
    assert compiled.most_plausible(block, FocalSets.full(3)) is None
    assert compiled.most_plausible(block, FocalSets.simple(7, omega=False)) is None
    assert compiled.most_plausible(block, FocalSets.simple(6)) is not None


#: Name of a fault -> what makes it in row 3 of some lists.
FAULTS = {
    "negative": lambda T, ids: T[:, :1].__setitem__(3, -0.5),
    "not a number": lambda T, ids: T.__setitem__((3, sparse_rows.mass_at(0)), np.nan),
    "sum": lambda T, ids: T.__setitem__((3, 1), T[3, 1] + 0.1),
    "unknown cluster": lambda T, ids: ids.__setitem__((3, sparse_rows.id_at(0)), 40),
    "descending": lambda T, ids: ids.__setitem__((3, sparse_rows.id_at(1)), 0),
}


@pytest.mark.parametrize("fault", [None, *FAULTS])
def test_lists_are_right_for_the_compiled_check_where_they_are_for_the_other(fault, monkeypatch):
    mass = masses(2, 50, 42, 1000)
    mass[3] = 0.0
    mass[3, [0, 2, 5, 41]] = 0.25
    T = sparse_rows.encode(mass)
    if fault:
        FAULTS[fault](T, sparse_rows.ids_of(T))
    assert looks.are_lists(T, 40, SUM_TOLERANCE["float32"]) == (fault is None)
    said = []
    for _ in range(2):
        try:
            check_lists(T, 0, FocalSets.simple(40).names)
        except ValueError as error:
            said.append(str(error))
        monkeypatch.delitem(sys.modules, "numba", raising=False)
    assert said == ([] if fault is None else [said[0]] * 2)
    assert all("Row 3 of mass" in text for text in said)
