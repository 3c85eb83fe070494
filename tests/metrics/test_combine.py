"""Combination of partitions through what they say about pairs."""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from tolerances import ROUNDING

from evdist.belief import FocalSets, dempster, dubois_prade
from evdist.combine import (
    all_pairs_graph,
    coloured_graph,
    combine,
    combine_relations,
    nearest_partition,
)
from evdist.metrics import adjusted_rand_index, credal_rand_index, pairwise_mass
from evdist.partition import CredalPartition

RULES = ("dempster", "dubois_prade", "average")
THETA = FocalSets.full(2)


def pair_masses(seed, sources=2, pairs=20, empty=True):
    masses = np.random.default_rng(seed).dirichlet(np.full(4, 0.5), size=(sources, pairs))
    if not empty:
        masses[..., 0] = 0
        masses /= masses.sum(axis=-1, keepdims=True)
    return masses


def noisy(truth, share, rng):
    """The true labels, with a share of them drawn anew."""
    fresh = rng.integers(truth.max() + 1, size=len(truth))
    return np.where(rng.random(len(truth)) < share, fresh, truth)


# ---------------------------------------------------------------------- rules
@given(seed=st.integers(0, 99), sources=st.integers(1, 4))
def test_dempster_on_a_closed_frame_is_dempsters_rule(seed, sources):
    masses = pair_masses(seed, sources, empty=False)
    expected, _ = dempster(list(masses), THETA)
    np.testing.assert_allclose(combine_relations(masses, "dempster"), expected, **ROUNDING)


@given(seed=st.integers(0, 99))
def test_dubois_prade_of_two_sources_is_their_rule(seed):
    masses = pair_masses(seed)
    expected, _ = dubois_prade(list(masses), THETA)
    np.testing.assert_allclose(combine_relations(masses, "dubois_prade"), expected, **ROUNDING)


def test_the_older_spelling_of_a_rule_still_works():
    masses = pair_masses(0)
    np.testing.assert_array_equal(
        combine_relations(masses, "dubois-prade"), combine_relations(masses, "dubois_prade")
    )


@pytest.mark.parametrize("rule", RULES)
@given(order=st.permutations(range(3)), seed=st.integers(0, 99))
def test_rules_give_mass_functions_whatever_the_order_of_the_sources(rule, order, seed):
    masses = pair_masses(seed, sources=3)
    combined = combine_relations(masses, rule)
    assert combined.min() >= 0
    np.testing.assert_allclose(combined.sum(axis=-1), 1, **ROUNDING)
    np.testing.assert_allclose(combine_relations(masses[order], rule), combined, **ROUNDING)


def test_dubois_prade_of_three_sources_adds_up_all_triples():
    a, b, c = pair_masses(3, sources=3, pairs=1)[:, 0]
    expected = np.zeros(4)
    # The sets are numbered as bits: intersection and union are & and |.
    for x, y, z in np.ndindex(4, 4, 4):
        meet = x & y & z
        expected[meet if meet else x | y | z] += a[x] * b[y] * c[z]
    got = combine_relations(np.stack([a, b, c]), "dubois_prade")
    np.testing.assert_allclose(got, expected, **ROUNDING)


def test_total_conflict_leaves_ignorance():
    same, apart = np.array([[0.0, 1, 0, 0]]), np.array([[0.0, 0, 1, 0]])
    for rule in ("dempster", "dubois_prade"):
        np.testing.assert_array_equal(combine_relations([same, apart], rule), [[0, 0, 0, 1]])
    np.testing.assert_array_equal(combine_relations([same, apart], "average"), [[0, 0.5, 0.5, 0]])


def test_an_outlier_of_all_sources_stays_one():
    neither = np.array([[1.0, 0, 0, 0]])
    for rule in RULES:
        np.testing.assert_array_equal(combine_relations([neither] * 3, rule), neither)


def test_very_many_sources_do_not_underflow():
    source = np.tile([0.0, 0.2, 0.1, 0.7], (5_000, 1, 1))
    np.testing.assert_allclose(combine_relations(source, "dempster"), [[0, 1, 0, 0]], atol=1e-12)


def test_unknown_rules_and_shapes_are_refused():
    with pytest.raises(ValueError, match=r"rule must be one of .* got 'yager'"):
        combine_relations(np.ones((1, 1, 4)) / 4, "yager")
    with pytest.raises(ValueError, match=r"shape \(N, ..., 4\)"):
        combine_relations(np.ones((2, 3)), "average")


# ---------------------------------------------------------------------- kept pairs
@given(n=st.integers(2, 60), k=st.integers(1, 12), seed=st.integers(0, 99))
def test_kept_pairs_are_symmetric_and_link_no_two_rows_of_a_step(n, k, seed):
    graph = coloured_graph(n, k, np.random.default_rng(seed))
    counts = np.zeros((n, n), dtype=int)
    rows, slots = np.nonzero(graph.partner >= 0)
    np.add.at(counts, (rows, graph.partner[rows, slots]), 1)
    np.testing.assert_array_equal(counts, counts.T)
    for step in graph.steps:
        assert counts[np.ix_(step, step)].sum() == 0
    np.testing.assert_array_equal(np.sort(np.concatenate(graph.steps)), np.arange(n))


def test_every_object_keeps_about_k_pairs():
    graph = coloured_graph(1_001, 20, np.random.default_rng(0))
    degree = (graph.partner >= 0).sum(axis=1)
    assert degree.max() == 20
    assert degree.mean() > 19.5
    assert degree.min() >= 10


def test_too_few_objects_or_pairs_are_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least two objects, got 1"):
        coloured_graph(1, 3, rng)
    with pytest.raises(ValueError, match="At least one pair per object must be kept, got 0"):
        coloured_graph(5, 0, rng)


# ---------------------------------------------------------------------- nearest partition
def relation_of(partition, graph):
    """Pairwise masses of a partition in the layout of a graph, (n, k, 4)."""
    target = np.zeros((*graph.partner.shape, 4))
    i, slot = np.nonzero(graph.partner >= 0)
    target[i, slot] = pairwise_mass(partition, i, graph.partner[i, slot])
    return target


@pytest.mark.parametrize("family", [FocalSets.simple, FocalSets.pairs, FocalSets.full])
@given(seed=st.integers(0, 99), everything=st.booleans())
@settings(max_examples=8)
def test_the_criterion_never_rises_and_is_the_distance_it_says(family, seed, everything):
    rng = np.random.default_rng(seed)
    n, focal = 40, family(3)
    graph = all_pairs_graph(n) if everything else coloured_graph(n, 8, rng)
    other = CredalPartition(rng.dirichlet(np.full(16, 0.3), size=n), FocalSets.full(4))
    target = relation_of(other, graph)
    start = rng.dirichlet(np.full(len(focal), 0.3), size=n)
    found = nearest_partition(graph, target, start, focal, max_iter=10, tol=0)
    assert np.all(np.diff(found.history) <= 1e-14)
    assert found.mass.min() >= 0
    np.testing.assert_allclose(found.mass.sum(axis=1), 1, **ROUNDING)
    if everything:
        result = CredalPartition(found.mass, focal)
        index = credal_rand_index(result, other, "squared-jousselme")
        np.testing.assert_allclose(found.history[-1], 1 - index, **ROUNDING)


def test_a_partition_is_nearest_to_its_own_relation():
    rng = np.random.default_rng(0)
    focal = FocalSets.pairs(3)
    partition = CredalPartition(rng.dirichlet(np.full(len(focal), 0.3), size=30), focal)
    graph = all_pairs_graph(30)
    found = nearest_partition(graph, relation_of(partition, graph), partition.mass, focal)
    assert found.converged
    np.testing.assert_allclose(found.mass, partition.mass, atol=1e-6)


# ---------------------------------------------------------------------- combination
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [60, 600])
def test_combining_equal_hard_partitions_returns_them(rule, n):
    labels = np.random.default_rng(0).integers(4, size=n)
    copies = [CredalPartition.from_labels((labels + shift) % 4) for shift in range(3)]
    combined = combine(copies, 4, rule=rule)
    np.testing.assert_allclose(credal_rand_index(combined, labels), 1, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
def test_combining_noisy_partitions_is_no_worse_than_the_best_of_them(rule):
    rng = np.random.default_rng(1)
    truth = rng.integers(3, size=500)
    votes = [(noisy(truth, 0.25, rng) + shift) % 3 for shift in range(4)]
    combined = combine(votes, 3, rule=rule, n_pairs=60)
    assert adjusted_rand_index(combined, truth) > max(adjusted_rand_index(v, truth) for v in votes)


def test_two_partitions_that_disagree_leave_doubt_where_they_do():
    truth = np.repeat([0, 1], 40)
    a, b = truth.copy(), truth.copy()
    b[:4] = 1
    combined = combine([a, b], 2, rule="dubois_prade")
    doubt = combined.mass[:, combined.focal_sets.omega]
    assert doubt[:4].min() > 0.9
    assert doubt[4:].max() < 0.1
    assert adjusted_rand_index(combined[4:], truth[4:]) == 1


def test_partitions_with_different_numbers_of_clusters_can_be_combined():
    """Each takes two of four groups for one, another two each time: together they tell all."""
    truth = np.repeat(np.arange(4), 30)
    merged = [np.array(groups)[truth] for groups in ([0, 0, 1, 2], [0, 1, 1, 2], [0, 1, 2, 2])]
    combined = combine(merged, 4, rule="average")
    assert combined.n_clusters == 4
    assert adjusted_rand_index(combined, truth) == 1


def test_outliers_of_all_partitions_stay_outliers():
    labels = np.repeat([0, 1, 2], 20)
    labels[:2] = -1
    combined = combine([CredalPartition.from_labels(labels)] * 2, 3)
    np.testing.assert_array_equal(np.flatnonzero(combined.outliers()), [0, 1])


def test_the_same_seed_gives_the_same_masses():
    rng = np.random.default_rng(3)
    truth = rng.integers(3, size=300)
    votes = [noisy(truth, 0.3, rng) for _ in range(3)]
    a, b = (combine(votes, 3, n_pairs=20, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(a.mass, b.mass)


def test_lazy_partitions_give_the_same_masses():
    rng = np.random.default_rng(4)
    focal = FocalSets.simple(3)
    parts = [CredalPartition(rng.dirichlet(np.full(5, 0.2), size=50), focal) for _ in range(2)]
    lazy = [CredalPartition(da.from_array(p.mass, chunks=(13, -1)), focal) for p in parts]
    np.testing.assert_array_equal(combine(lazy, 3, tol=0.01).mass, combine(parts, 3, tol=0.01).mass)


def test_the_focal_sets_asked_for_are_used():
    labels = np.arange(20) % 3
    assert combine([labels], 3, focal_sets="pairs").focal_sets == FocalSets.pairs(3)
    without = FocalSets.simple(3, omega=False)
    assert combine([labels], 3, focal_sets=without).focal_sets == without


def test_sweeps_that_do_not_settle_are_reported():
    rng = np.random.default_rng(5)
    parts = [CredalPartition(rng.dirichlet(np.full(8, 1), 60), FocalSets.full(3)) for _ in range(2)]
    with pytest.warns(ConvergenceWarning, match="Raise max_iter or tol"):
        combine(parts, 3, max_iter=1, tol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partitions": []}, "At least one partition is needed"),
        ({"partitions": [[0, 1], [0, 1, 1]]}, "same objects"),
        ({"focal_sets": "all"}, "focal_sets must be a FocalSets or one of"),
        ({"focal_sets": FocalSets.simple(3)}, "over n_clusters=2 clusters"),
        ({"focal_sets": FocalSets.of([[0]], 2)}, "got none for cluster 1"),
        ({"n_pairs": 0}, "n_pairs must be at least 1"),
        ({"rule": "yager"}, "rule must be one of"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        combine(**{"partitions": [[0, 1, 1]], "n_clusters": 2, **arguments})
