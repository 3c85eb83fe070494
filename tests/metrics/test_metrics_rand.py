"""Credal Rand indices, consistency and nonspecificity."""

from __future__ import annotations

import json

import dask.array as da
import numpy as np
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, rand_score
from tolerances import REFERENCE, ROUNDING

from evdist.belief import FocalSets, conflict, jousselme
from evdist.metrics import (
    adjusted_rand_index,
    consistency,
    credal_rand_index,
    estimate_credal_rand_index,
    nonspecificity,
    pairwise_mass,
)
from evdist.metrics.rand import ALL_PAIRS_OBJECTS
from evdist.partition import CredalPartition

KINDS = ("jousselme", "squared-jousselme", "belief", "conflict")
#: Equal partitions are at distance zero; a partition may be in conflict with itself.
DISTANCES = KINDS[:3]
R_TYPES = {"j": "jousselme", "b": "belief", "c": "conflict"}

labellings = st.integers(2, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 4), min_size=n, max_size=n)] * 2)
)


def random_partition(n, focal, seed=0, sharpness=0.3):
    rng = np.random.default_rng(seed)
    return CredalPartition(rng.dirichlet(np.full(len(focal), sharpness), size=n), focal)


@pytest.fixture(scope="module")
def reference(shared):
    return json.loads((shared / "reference" / "pairwise_mass.json").read_text())


@pytest.fixture(scope="module")
def partitions(reference):
    return {
        name: CredalPartition(
            np.array(reference[name]["mass"], dtype=float),
            FocalSets.from_matrix(np.array(reference[name]["F"])),
        )
        for name in ("full", "pairs", "hard", "fuzzy")
    }


# ---------------------------------------------------------------------- values of R
def test_the_indices_are_those_of_r(reference, partitions):
    assert len(reference["credal_RI"]) == 30
    for entry in reference["credal_RI"]:
        a, b = partitions[entry["a"]], partitions[entry["b"]]
        got = credal_rand_index(a, b, R_TYPES[entry["type"]])
        np.testing.assert_allclose(got, entry["value"], **REFERENCE, err_msg=str(entry))


def test_the_nonspecificity_is_that_of_r(reference, partitions):
    for name, partition in partitions.items():
        expected = reference["nonspecificity"][name]
        np.testing.assert_allclose(nonspecificity(partition), expected, **REFERENCE)


# ---------------------------------------------------------------------- laws
@pytest.mark.parametrize("kind", KINDS)
@given(labels=labellings)
def test_of_hard_partitions_it_is_the_rand_index(kind, labels):
    got = credal_rand_index(*labels, kind)
    np.testing.assert_allclose(got, rand_score(*labels), **ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@given(ca=st.integers(1, 4), cb=st.integers(1, 4), seed=st.integers(0, 99))
def test_it_is_symmetric_and_between_zero_and_one(kind, ca, cb, seed):
    a = random_partition(15, FocalSets.full(ca), seed)
    b = random_partition(15, FocalSets.pairs(cb), seed + 1)
    index = credal_rand_index(a, b, kind)
    assert 0 <= index <= 1
    np.testing.assert_allclose(credal_rand_index(b, a, kind), index, **ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@given(order=st.permutations(range(4)), seed=st.integers(0, 99))
def test_it_does_not_depend_on_how_clusters_are_numbered(kind, order, seed):
    a = random_partition(15, FocalSets.full(4), seed)
    b = random_partition(15, FocalSets.full(4), seed + 1)
    np.testing.assert_allclose(
        credal_rand_index(a.relabel(order), b, kind), credal_rand_index(a, b, kind), **ROUNDING
    )
    np.testing.assert_allclose(nonspecificity(a.relabel(order)), nonspecificity(a), **ROUNDING)


@pytest.mark.parametrize("kind", DISTANCES)
@given(seed=st.integers(0, 99))
def test_a_partition_agrees_with_itself(kind, seed):
    a = random_partition(15, FocalSets.full(3), seed)
    np.testing.assert_allclose(credal_rand_index(a, a, kind), 1.0, **ROUNDING)


@given(seeds=st.tuples(*[st.integers(0, 99)] * 3))
def test_jousselme_obeys_the_triangle_inequality(seeds):
    a, b, c = (random_partition(8, FocalSets.full(3), seed) for seed in seeds)
    ab, bc, ac = (1 - credal_rand_index(*pair) for pair in ((a, b), (b, c), (a, c)))
    assert ac <= ab + bc + 1e-12


def test_indices_are_means_of_what_belief_functions_define():
    a = random_partition(30, FocalSets.full(3), 0)
    b = random_partition(30, FocalSets.pairs(4), 1)
    pa, pb, theta = pairwise_mass(a), pairwise_mass(b), FocalSets.full(2)
    d, kappa = jousselme(pa, pb, theta), conflict(pa, pb, theta)
    for kind, distance in zip(
        ("jousselme", "squared-jousselme", "conflict"), (d, d**2, kappa), strict=True
    ):
        np.testing.assert_allclose(credal_rand_index(a, b, kind), 1 - distance.mean(), **ROUNDING)


# ---------------------------------------------------------------------- sampled pairs
@pytest.fixture(scope="module")
def two_large():
    return random_partition(3_000, FocalSets.pairs(4), 0), random_partition(
        3_000, FocalSets.full(3), 1
    )


@pytest.fixture(scope="module")
def exact(two_large):
    """Means over all 4,498,500 pairs, from the definitions."""
    gap = pairwise_mass(two_large[0]) - pairwise_mass(two_large[1])
    q = 0.5 * np.einsum("pa,ab,pb->p", gap, FocalSets.full(2).jaccard, gap, optimize=True)
    beliefs = np.abs(np.c_[gap[:, 1], gap[:, 2], gap[:, 1:].sum(axis=1)])
    return {
        "jousselme": 1 - np.sqrt(q).mean(),
        "squared-jousselme": 1 - q.mean(),
        "belief": 1 - 0.5 * beliefs.sum(axis=1).mean(),
    }


@pytest.mark.parametrize("kind", ["jousselme", "belief"])
@pytest.mark.parametrize("seed", range(5))
def test_a_sampled_index_lies_within_five_standard_errors(two_large, exact, kind, seed):
    found = estimate_credal_rand_index(*two_large, kind, n_pairs=20_000, random_state=seed)
    assert found.n_pairs == 20_000
    # The regression on the squares leaves less than the plain spread, which is about .15.
    assert 0 < found.standard_error < 0.15 / np.sqrt(20_000)
    assert abs(found.value - exact[kind]) < 5 * found.standard_error


def test_squares_are_exact_for_any_number_of_objects(two_large, exact):
    found = estimate_credal_rand_index(*two_large, "squared-jousselme")
    np.testing.assert_allclose(found.value, exact["squared-jousselme"], **ROUNDING)
    assert found.standard_error == 0
    assert found.n_pairs == 3_000 * 2_999 // 2


@pytest.mark.parametrize("kind", KINDS)
def test_many_hard_labels_leave_nothing_to_chance(kind):
    rng = np.random.default_rng(0)
    a = rng.integers(5, size=50_000)
    b = np.where(rng.random(50_000) < 0.2, rng.integers(5, size=50_000), a)
    found = estimate_credal_rand_index(a, b, kind)
    np.testing.assert_allclose(found.value, rand_score(a, b), **ROUNDING)
    assert found.standard_error < 1e-12


def test_the_same_seed_draws_the_same_pairs(two_large):
    draw = [credal_rand_index(*two_large, n_pairs=1_000, random_state=s) for s in (1, 1, 2)]
    assert draw[0] == draw[1] != draw[2]


@pytest.mark.parametrize("kind", KINDS)
def test_lazy_masses_give_the_same_bits(two_large, tmp_path, kind):
    a, b = two_large
    lazy = CredalPartition(da.from_array(a.mass, chunks=(700, -1)), a.focal_sets)
    stored = zarr.create_array(
        tmp_path / "b.zarr", shape=b.mass.shape, chunks=(512, b.mass.shape[1]), dtype="f8"
    )
    stored[:] = b.mass
    stored = CredalPartition(stored, b.focal_sets)
    assert a.n_objects > ALL_PAIRS_OBJECTS
    assert credal_rand_index(lazy, stored, kind, n_pairs=500) == credal_rand_index(
        a, b, kind, n_pairs=500
    )
    assert nonspecificity(lazy) == nonspecificity(a)


# ---------------------------------------------------------------------- consistency
@given(seed=st.integers(0, 99))
def test_consistency_is_the_mean_plausibility_of_the_truth(seed):
    partition = random_partition(20, FocalSets.full(3), seed)
    truth = np.random.default_rng(seed).integers(3, size=20)
    i, j = np.triu_indices(20, 1)
    mass, same = pairwise_mass(partition), truth[i] == truth[j]
    plausibility = np.where(same, mass[:, 1] + mass[:, 3], mass[:, 2] + mass[:, 3])
    np.testing.assert_allclose(consistency(partition, truth), plausibility.mean(), **ROUNDING)


def test_the_truth_is_consistent_and_specific():
    truth = np.array(["rosa", "kama", "rosa", "canadian"])
    partition = CredalPartition.from_labels([2, 1, 2, 0])
    assert consistency(partition, truth) == pytest.approx(1)
    assert nonspecificity(partition) == pytest.approx(0)


def test_knowing_nothing_is_consistent_with_everything_and_nonspecific():
    focal = FocalSets.simple(3)
    mass = np.zeros((10, len(focal)))
    mass[:, focal.omega] = 1
    vacuous = CredalPartition(mass, focal)
    assert consistency(vacuous, np.arange(10) % 3) == pytest.approx(1)
    assert nonspecificity(vacuous) == pytest.approx(1)


def test_outliers_say_nothing_about_pairs():
    outliers = CredalPartition.from_labels(np.full(4, -1), n_clusters=2)
    assert nonspecificity(outliers) == pytest.approx(1)
    assert consistency(outliers, np.array([0, 0, 1, 1])) == pytest.approx(0)


# ---------------------------------------------------------------------- labels
def test_adjusted_rand_index_takes_partitions_and_labels():
    a, b = np.array([0, 0, 1, 1, 2, 2]), np.array([1, 1, 0, 0, 0, 2])
    expected = adjusted_rand_score(a, b)
    assert adjusted_rand_index(a, b) == expected
    assert adjusted_rand_index(CredalPartition.from_labels(a), b) == expected
    assert adjusted_rand_index(a, CredalPartition.from_labels(b)) == expected


def test_partitions_of_different_objects_are_refused():
    with pytest.raises(ValueError, match=r"same objects, got \[3, 2\] objects"):
        credal_rand_index([0, 1, 1], [0, 1])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of jousselme, .* got 'rand'"):
        credal_rand_index([0, 1], [0, 1], "rand")


def test_masses_without_focal_sets_are_refused():
    with pytest.raises(ValueError, match=r"got an array of shape \(2, 2\)"):
        credal_rand_index(np.eye(2), [0, 1])


def test_too_few_pairs_for_a_standard_error_are_refused():
    with pytest.raises(ValueError, match="n_pairs must be at least 100"):
        credal_rand_index([0, 1], [0, 1], n_pairs=5)
