"""The order of the objects is a formula; partitions and their pairs follow from n, k and a seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evdist.evclus.partitions.graph import View, colour_of, draw_partition_graph, odd_offsets
from evdist.kernels.shuffle import Shuffle, partition_count, row_sum


@given(st.integers(4, 5000))
def test_every_object_has_one_position_and_every_position_one_object(n):
    shuffle = Shuffle.of(n)
    positions = shuffle.positions(0, n)
    assert np.array_equal(np.sort(positions), np.arange(n))
    assert np.array_equal(shuffle.objects_of(positions), np.arange(n))
    assert np.array_equal(shuffle.objects(1, n), shuffle.objects(0, n)[1:])


def test_sorted_objects_are_spread_over_all_partitions():
    shuffle = Shuffle(100_000, 10)
    partition = np.searchsorted(shuffle.bounds, shuffle.positions(0, 10_000), side="right") - 1
    # Of ten thousand consecutive objects a thousand fall into each, give or take four deviations.
    assert np.abs(np.bincount(partition, minlength=10) - 1000).max() < 4 * 30


def test_the_number_of_partitions_is_even_and_follows_from_n():
    counts = [partition_count(n) for n in (10, 10_000, 10**6, 10**7, 10**9)]
    assert counts == [2, 2, 64, 64, 3814]
    sizes = np.diff(Shuffle.of(1_000_003).bounds)
    assert sizes.sum() == 1_000_003 and sizes.max() - sizes.min() <= 1


def test_a_checksum_does_not_tell_how_rows_were_cut():
    X = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
    whole = row_sum(X, 0)
    assert (row_sum(X[:37], 0) + row_sum(X[37:], 37)) % 2**64 == whole
    assert row_sum(X[::-1].copy(), 0) != whole


@pytest.mark.parametrize("partitions", [2, 4, 6, 8, 24, 64, 76, 3814])
def test_partners_have_the_other_colour(partitions):
    offsets = odd_offsets(partitions)
    assert all(o % 2 for o in offsets)
    assert all(colour_of(b) != colour_of((b + o) % partitions) for b in (0, 1) for o in offsets)


def test_an_odd_number_of_partitions_is_refused():
    with pytest.raises(ValueError, match="even in number"):
        odd_offsets(5)


@pytest.mark.parametrize(("n", "partitions", "k"), [(1000, 2, 20), (1003, 4, 9), (2005, 8, 30)])
def test_pairs_are_symmetric_and_every_row_has_k_of_them(n, partitions, k):
    shuffle = Shuffle(n, partitions)
    graph = draw_partition_graph(shuffle, k, seed=3)
    partner, degree = graph.partners(0, n)
    assert graph.k == k + k % 2
    kept = {(i, int(j)) for i in range(n) for j in partner[i, : degree[i]]}
    assert len(kept) == degree.sum() == graph.entries  # none twice
    assert all((j, i) in kept for i, j in kept)
    assert degree.mean() > 0.98 * graph.k


@pytest.mark.parametrize("partitions", [2, 4, 6, 12])
def test_a_view_has_the_pairs_of_its_partition(partitions):
    shuffle = Shuffle(1999, partitions)
    graph = draw_partition_graph(shuffle, 16, seed=0)
    for b in range(partitions):
        view = View(graph, b)
        parts = (b, *view.partners)
        position = np.concatenate([np.arange(*shuffle.bounds[q : q + 2]) for q in parts])
        partner, degree = view.pairs(5, view.own)
        lo = int(shuffle.bounds[b])
        known, counts = graph.partners(lo + 5, lo + view.own)
        there = np.arange(graph.k) < degree[:, None]
        assert np.array_equal(degree, counts)
        assert np.array_equal(position[partner][there], known[there])
        assert view.plan.pieces[0][0] == 0 and view.plan.pieces[-1][1] == view.own


def test_too_many_partitions_are_refused():
    with pytest.raises(ValueError, match="too few for 8 partitions"):
        draw_partition_graph(Shuffle(10, 8), 3, 0)
