"""What a credal partition says about pairs of objects."""

from __future__ import annotations

import json

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import REFERENCE, ROUNDING

from evdist.belief import FocalSets, conflict
from evdist.metrics import (
    pairwise_belief,
    pairwise_mass,
    pairwise_plausibility,
    relational_representation,
)
from evdist.metrics.moments import first_moments, second_moments
from evdist.metrics.pairs import sample_pairs
from evdist.partition import CredalPartition

NAMES = ("full", "pairs", "hard", "fuzzy")


def random_partition(n, focal, seed=0, sharpness=0.3):
    rng = np.random.default_rng(seed)
    return CredalPartition(rng.dirichlet(np.full(len(focal), sharpness), size=n), focal)


@pytest.fixture(scope="module")
def example():
    """Three objects of the slides, "Relational representation", example."""
    mass = [[0.3, 0.6, 0.1, 0.0], [0.0, 0.7, 0.1, 0.2], [0.0, 0.1, 0.6, 0.3]]
    return CredalPartition(np.array(mass), FocalSets.full(2))


def test_the_printed_example(example):
    expected = [[0.30, 0.43, 0.13, 0.14], [0.30, 0.12, 0.37, 0.21], [0.00, 0.13, 0.43, 0.44]]
    np.testing.assert_allclose(pairwise_mass(example), expected, **ROUNDING)


@pytest.mark.parametrize("name", NAMES)
def test_pairwise_masses_are_those_of_r(shared, name):
    reference = json.loads((shared / "reference" / "pairwise_mass.json").read_text())
    focal = FocalSets.from_matrix(np.array(reference[name]["F"]))
    partition = CredalPartition(np.array(reference[name]["mass"], dtype=float), focal)
    columns = [reference["pairwise"][name][key] for key in ("Me", "M1", "M0")]
    np.testing.assert_allclose(pairwise_mass(partition)[:, :3], np.transpose(columns), **REFERENCE)


@given(c=st.integers(1, 5), n=st.integers(2, 9), seed=st.integers(0, 99))
def test_pairwise_masses_are_mass_functions(c, n, seed):
    mass = pairwise_mass(random_partition(n, FocalSets.full(c), seed))
    assert mass.shape == (n * (n - 1) // 2, 4)
    assert mass.min() >= 0
    np.testing.assert_allclose(mass.sum(axis=1), 1.0, **ROUNDING)


def test_all_pairs_come_in_the_order_of_dist():
    partition = random_partition(600, FocalSets.pairs(4))
    i, j = np.triu_indices(600, 1)
    np.testing.assert_allclose(pairwise_mass(partition), pairwise_mass(partition, i, j), **ROUNDING)


def test_the_order_within_a_pair_does_not_matter():
    partition = random_partition(20, FocalSets.full(3))
    i, j = np.array([0, 4, 7]), np.array([19, 5, 2])
    np.testing.assert_allclose(
        pairwise_mass(partition, i, j), pairwise_mass(partition, j, i), **ROUNDING
    )


def test_belief_and_plausibility_of_the_same_cluster(example):
    relation = relational_representation(example)
    np.testing.assert_array_equal(relation.i, [0, 0, 1])
    np.testing.assert_array_equal(relation.j, [1, 2, 2])
    np.testing.assert_allclose(relation.belief, [0.43, 0.12, 0.13], **ROUNDING)
    np.testing.assert_array_equal(relation.belief, pairwise_belief(example))
    np.testing.assert_array_equal(relation.plausibility, pairwise_plausibility(example))
    kappa = conflict(example.mass[[0, 0, 1]], example.mass[[1, 2, 2]], example.focal_sets)
    np.testing.assert_allclose(relation.plausibility, 1 - kappa, **ROUNDING)


def test_a_hard_partition_gives_its_equivalence_relation():
    labels = np.array([0, 1, 0, 2, 1, 0])
    partition = CredalPartition.from_labels(labels)
    i, j = np.triu_indices(6, 1)
    same = (labels[i] == labels[j]).astype(float)
    np.testing.assert_array_equal(
        pairwise_mass(partition), np.c_[0 * same, same, 1 - same, 0 * same]
    )


@pytest.mark.parametrize("chunk", [1, 7, 40])
def test_a_lazy_partition_gives_the_same_bits(chunk):
    partition = random_partition(40, FocalSets.pairs(3))
    lazy = CredalPartition(da.from_array(partition.mass, chunks=(chunk, -1)), partition.focal_sets)
    i, j = sample_pairs(40, 60, np.random.default_rng(0))
    np.testing.assert_array_equal(pairwise_mass(lazy, i, j), pairwise_mass(partition, i, j))
    np.testing.assert_array_equal(pairwise_mass(lazy), pairwise_mass(partition))


@pytest.mark.parametrize(
    ("i", "j", "message"),
    [
        ([0], None, "both i and j"),
        ([0, 1], [2], "vectors of one length"),
        ([0, 1], [2, 3], "numbered 0..2; pair 1 has 3"),
        ([-1], [2], "numbered 0..2; pair 0 has -1"),
        ([0, 2], [1, 2], "pair 1 has 2 twice"),
    ],
)
def test_pairs_that_are_none_are_refused(example, i, j, message):
    with pytest.raises(ValueError, match=message):
        pairwise_mass(example, i, j)


def test_all_pairs_of_very_many_objects_are_refused():
    many = CredalPartition.from_labels(np.zeros(10_001, dtype=int))
    with pytest.raises(ValueError, match="Name the pairs with i and j"):
        pairwise_mass(many)


@given(c=st.integers(1, 5), n=st.integers(2, 12), seed=st.integers(0, 99))
def test_sets_without_mass_need_not_be_compared(c, n, seed):
    rng = np.random.default_rng(seed)
    focal = FocalSets.full(c)
    mass = rng.dirichlet(np.full(len(focal), 0.05), n) * (rng.random(len(focal)) < 0.6)
    mass[:, -1] += 1 - mass.sum(axis=1)
    partition = CredalPartition(mass, focal)
    usual = pairwise_mass(partition)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evdist.metrics.relation.MANY_SETS", 0)
        np.testing.assert_allclose(pairwise_mass(partition), usual, **ROUNDING)


def test_one_object_has_no_pairs():
    with pytest.raises(ValueError, match="at least two objects, got 1"):
        pairwise_mass(CredalPartition.from_labels([0]))


def test_sampled_pairs_are_uniform_over_different_objects():
    i, j = sample_pairs(5, 40_000, np.random.default_rng(0))
    counts = np.zeros((5, 5))
    np.add.at(counts, (i, j), 1)
    assert np.diagonal(counts).sum() == 0
    # 20 cells with mean 2,000 and standard deviation 44.
    assert np.abs(counts[~np.eye(5, dtype=bool)] - 2_000).max() < 5 * 44


# ---------------------------------------------------------------------- means over all pairs
@given(ca=st.integers(1, 4), cb=st.integers(1, 4), n=st.integers(2, 30), seed=st.integers(0, 99))
def test_moments_are_means_over_all_pairs(ca, cb, n, seed):
    a = random_partition(n, FocalSets.full(ca), seed)
    b = random_partition(n, FocalSets.pairs(cb), seed + 1)
    pa, pb = pairwise_mass(a), pairwise_mass(b)
    np.testing.assert_allclose(first_moments(a), pa.mean(axis=0), **ROUNDING)
    np.testing.assert_allclose(second_moments(a, b), pa.T @ pb / len(pa), **ROUNDING)


def test_moments_of_a_chunked_partition_have_the_same_bits():
    focal = FocalSets.simple(200)  # blocks of 1,024 rows
    a = random_partition(3_000, focal)
    b = CredalPartition.from_labels(np.arange(3_000) % 7)
    whole = second_moments(a, b)
    for chunk in (100, 1_024, 1_777):
        lazy = CredalPartition(da.from_array(a.mass, chunks=(chunk, -1)), focal)
        np.testing.assert_array_equal(second_moments(lazy, b), whole)
        np.testing.assert_array_equal(second_moments(b, lazy), second_moments(b, a))
        np.testing.assert_array_equal(first_moments(lazy), first_moments(a))
