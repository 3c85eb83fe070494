"""Ways along the neighbour graph, and the choice of d0 that they help to make."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist
from sklearn.datasets import load_wine, make_moons
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.evclus.resolution import (
    SETTLED,
    UNUSED_COST,
    along,
    closest,
    misfit,
    modularity,
    neighbours,
    rand_agreement,
    reference,
    settled,
)

SETS = FocalSets.simple(3)


def objects(seed, n=40):
    return np.random.default_rng(seed).normal(size=(n, 2))


@given(st.integers(0, 10_000), st.integers(3, 40))
def test_the_graph_is_symmetric_and_joins_each_with_its_nearest(seed, n):
    D = cdist(X := objects(seed, n), X)
    graph = neighbours(D, 3).toarray()
    np.testing.assert_array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    nearest = (D + np.diag(np.full(n, np.inf))).argmin(axis=1)
    assert graph[np.arange(n), nearest].all()


@given(st.integers(0, 10_000), st.sampled_from([1.0, 2.0, 4.0]))
def test_ways_along_are_symmetric_and_obey_the_triangle_of_their_powers(seed, p):
    D = cdist(X := objects(seed), X)
    (W,) = along(D, neighbours(D), [p])
    W = W**p
    np.testing.assert_allclose(W, W.T, rtol=1e-9)
    assert (W <= (W[:, :, None] + W[None]).min(axis=1) * (1 + 1e-9)).all()


@given(st.integers(0, 10_000))
def test_a_way_of_length_is_not_shorter_than_the_straight_one(seed):
    D = cdist(X := objects(seed), X)
    (paths,) = along(D, neighbours(D), [1.0])
    assert (paths >= D * (1 - 1e-6)).all()


@given(st.integers(0, 10_000))
def test_a_high_power_is_the_longest_step_that_cannot_be_avoided(seed):
    """As in single linkage: the longest edge on the way through the least spanning tree."""
    D = cdist(X := objects(seed, 25), X)
    tree = minimum_spanning_tree(D).toarray()
    longest = np.where(tree + tree.T > 0, tree + tree.T, np.inf)
    np.fill_diagonal(longest, 0)
    for k in range(len(D)):
        longest = np.minimum(longest, np.maximum(longest[:, [k]], longest[[k]]))
    (paths,) = along(D, neighbours(D), [60.0])
    np.testing.assert_allclose(paths, longest, rtol=0.08, atol=1e-8)


def test_copies_are_no_distance_apart():
    X = np.repeat(objects(0, 5), 4, axis=0)
    (W,) = along(D := cdist(X, X), neighbours(D, 3), [2.0])
    assert np.isfinite(W).all()
    assert W[D == 0].max() < 1e-6


def test_modularity_of_two_separate_parts_is_a_half():
    D = cdist(X := np.concatenate([objects(0, 20), objects(1, 20) + 100]), X)
    two = np.repeat([0, 1], 20)
    graph = neighbours(D, 4)
    edges = np.asarray(graph.sum(axis=1)).ravel()
    ends = np.bincount(two, weights=edges) / edges.sum()
    assert modularity(two, graph) == pytest.approx(1 - (ends**2).sum())
    assert modularity(np.zeros(40, int), graph) == pytest.approx(0)


def test_misfit_adds_what_is_open_and_unexplained_and_takes_off_the_modularity():
    graph = neighbours(cdist(X := objects(0, 6), X), 2)
    labels = np.array([0, 0, 1, 1, 2, 2])
    sure = np.eye(5, dtype=np.float32)[1 + labels]
    Q = modularity(labels, graph)
    assert misfit(sure, 0.0, 0.25, SETS, graph) == pytest.approx(-Q)
    assert misfit(sure, 0.05, 0.25, SETS, graph) == pytest.approx(0.2 - Q)
    assert misfit(0.5 * sure + 0.5 * np.eye(5)[0], 0.05, 0.25, SETS, graph) == pytest.approx(
        0.7 - Q
    )
    assert misfit(sure, 0.0, 0.0, SETS, graph) == pytest.approx(-Q)


def test_a_cluster_that_is_not_used_costs_one():
    graph = neighbours(cdist(X := objects(0, 6), X), 2)
    labels = np.array([0, 0, 0, 1, 1, 1])
    sure = np.eye(5, dtype=np.float32)[1 + labels]
    assert misfit(sure, 0.0, 0.25, SETS, graph) == pytest.approx(1 - modularity(labels, graph))


KNOWN = np.repeat([0, 1], 10)
OTHER = np.tile([0, 1], 10)


def test_of_partitions_that_agree_alike_the_last_is_preferred():
    chosen, agreement = closest([OTHER, KNOWN, 1 - KNOWN, KNOWN, OTHER], KNOWN, 2, [0.0] * 5)
    assert chosen == [2]
    assert agreement[2] == 1
    assert closest([KNOWN, KNOWN, KNOWN], KNOWN, 2, [0.0] * 3)[0] == [2, 1, 0]


def test_a_d0_that_calls_nearly_all_objects_outliers_is_not_taken_while_others_do_not():
    partitions = [KNOWN, KNOWN, OTHER]
    assert closest(partitions, KNOWN, 2, [0.97, 0.95, 0.1])[0] == [2]
    assert closest(partitions, KNOWN, 2, [0.97, 0.9, 0.1])[0] == [1]
    assert closest(partitions, KNOWN, 2, [0.97, 0.95, 0.96])[0] == [1]  # the fewest of all


def test_defaults_do_not_call_all_wines_outliers():
    """With this seed the labels of the smallest d0 agree most: three of 178 were in a cluster."""
    X = StandardScaler().fit_transform(load_wine().data)
    model = EVCLUS(3, metric="euclidean", random_state=3).fit(X)
    assert model.credal_partition_.outliers().mean() < 0.5


def test_agreement_counts_the_reference_twice_and_both_neighbours_once():
    far = adjusted_rand_score(KNOWN, OTHER)
    agreement = closest([OTHER, KNOWN, KNOWN, OTHER], KNOWN, 2, [0.0] * 4)[1]
    assert agreement == pytest.approx([far, (5 + far) / 6, (5 + far) / 6, far])


def test_a_partition_that_no_other_d0_confirms_is_not_taken_though_it_is_the_reference():
    """An object of the border moved with one d0 only; a reference always agrees with itself."""
    odd = KNOWN.copy()
    odd[9] = 1
    assert closest([KNOWN, KNOWN, KNOWN, odd, OTHER], odd, 2, [0.0] * 5)[0][0] == 1


def test_the_reference_is_the_least_misfit_with_a_handicap_for_ways_along_the_graph():
    apart = [OTHER, KNOWN, OTHER, KNOWN]
    along_graph = [OTHER, KNOWN]
    assert reference([0.5, 0.3, 0.2, 0.4], [], apart) == 2
    assert reference([0.5, 0.3, 0.2, 0.4], [0.9, 0.195], apart + along_graph) == 2
    assert reference([0.5, 0.3, 0.2, 0.4], [0.9, 0.17], apart + along_graph) == 5


def test_ways_along_the_graph_that_find_the_same_partition_leave_the_word_to_the_given_distances():
    assert reference([0.5, 0.21, 0.2], [0.1], [OTHER, KNOWN, 1 - KNOWN, KNOWN]) == 1
    assert reference([0.5, 0.21, 0.2], [0.1], [OTHER, KNOWN, 1 - KNOWN, OTHER]) == 3


def test_a_partition_that_leaves_a_cluster_unused_must_agree_more_than_one_that_does_not():
    """Three clusters were asked for. The third may be one object of twenty, or four."""
    one, four = KNOWN.copy(), KNOWN.copy()
    one[9], four[8:12] = 2, 2
    chosen, agreement = closest([one, one, one, KNOWN], KNOWN, 3, [0.0] * 4)
    assert chosen == [1, 0]
    assert agreement[3] == pytest.approx(2 / 3 + adjusted_rand_score(one, KNOWN) / 3 - UNUSED_COST)
    assert closest([four, KNOWN, KNOWN], KNOWN, 3, [0.0] * 3)[0] == [2]


def test_most_d0_with_one_partition_that_uses_every_cluster_settle_it():
    moved = KNOWN.copy()
    moved[9] = 1
    most = [KNOWN] * SETTLED + [OTHER] * (12 - SETTLED)
    misfits = [0.1] * SETTLED + [0.5] * (12 - SETTLED)
    assert settled(most, misfits, 2)
    assert not settled(most, misfits, 3)  # the third cluster is unused
    assert not settled([moved, *most[1:]], [*misfits[:1], 0.2, *misfits[2:]], 2)
    assert not settled(most, [-value for value in misfits], 2)  # the best is another one


def test_the_smallest_d0_of_equal_misfit_is_the_reference_if_it_gives_the_same_partition():
    misfits = [0.5, 0.21, 0.2, 0.4]
    assert reference(misfits, [], [OTHER, 1 - KNOWN, KNOWN, KNOWN]) == 1
    assert reference(misfits, [], [OTHER, OTHER, KNOWN, KNOWN]) == 2


def test_defaults_find_bent_clusters():
    """Stress and nonspecificity alone would choose a d0 that cuts both moons in half."""
    X, y = make_moons(300, noise=0.04, random_state=0)
    assert (
        adjusted_rand_score(y, EVCLUS(2, metric="euclidean", random_state=0).fit(X).labels_) > 0.95
    )


def test_objects_between_overlapping_clusters_stay_between():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = rng.normal(size=(400, 2)) + 2.5 * y[:, None] * [1, 0]
    model = EVCLUS(2, metric="euclidean", random_state=0).fit(X)
    counts = model.credal_partition_.summary()
    assert counts.n_between > 40
    assert counts.n_outliers < 60


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=2, max_size=200))
def test_agreement_is_the_adjusted_rand_index_to_the_last_bit(pairs):
    a, b = np.array(pairs).T
    assert rand_agreement(a, b) == adjusted_rand_score(a, b)
