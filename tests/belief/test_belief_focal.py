"""Focal sets: construction, order, matrices, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import families
from hypothesis import given

from evdist.belief import FocalSets, mutual_neighbour_pairs


def test_simple_is_the_empty_set_the_singletons_and_omega():
    assert FocalSets.simple(3).sets == ((), (0,), (1,), (2,), (0, 1, 2))
    assert FocalSets.simple(3, omega=False).sets == ((), (0,), (1,), (2,))


def test_pairs_lists_all_pairs_or_those_given():
    assert FocalSets.pairs(3).sets[4:] == ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    assert FocalSets.pairs(4, [(2, 1), (0, 3)]).sets[5:] == ((1, 2), (0, 3), (0, 1, 2, 3))


def test_full_counts_in_binary():
    assert FocalSets.full(2).sets == ((), (0,), (1,), (0, 1))
    assert len(FocalSets.full(10)) == 1024


@pytest.mark.parametrize("make", [FocalSets.simple, FocalSets.pairs])
def test_omega_is_not_listed_twice_when_clusters_are_few(make):
    assert make(1).sets == ((), (0,))
    assert make(2).sets == ((), (0,), (1,), (0, 1))


def test_of_puts_the_empty_set_first():
    assert FocalSets.of([[1], [], [0, 2]], 3).sets == ((), (1,), (0, 2))


def test_equal_families_are_equal_and_hash_alike():
    a, b = FocalSets.full(2), FocalSets.pairs(2)
    assert a == b
    assert hash(a) == hash(b)
    assert FocalSets.of([[1], [0]], 2) != FocalSets.of([[0], [1]], 2)


@given(families())
def test_a_family_is_what_its_matrix_says(focal):
    assert FocalSets.from_matrix(focal.matrix) == focal
    assert FocalSets.of(focal.sets, focal.n_clusters) == focal
    assert [focal.index(s) for s in focal] == list(range(len(focal)))
    assert all(s in focal for s in focal)


@given(families())
def test_matrices_agree_with_their_definitions_on_sets(focal):
    sets = [frozenset(s) for s in focal.sets]
    for i, A in enumerate(sets):
        for j, B in enumerate(sets):
            assert focal.overlap[i, j] == len(A & B)
            assert focal.C[i, j] == (not A & B)
            assert focal.B[i, j] == (not A or not B)
            assert focal.S[i, j] == (A == B and len(A) == 1)
            assert focal.E[i, j] == 1 - focal.B[i, j] - focal.S[i, j]
            assert focal.jaccard[i, j] == (len(A & B) / len(A | B) if A | B else 1.0)


def test_columns_of_singletons_and_omega_are_found_wherever_they_stand():
    focal = FocalSets.of([[0, 1, 2], [2], [0]], 3)
    assert focal.singletons.tolist() == [3, -1, 2]
    assert focal.omega == 1
    assert FocalSets.simple(3, omega=False).omega is None


def test_names_are_those_of_the_papers():
    assert FocalSets.pairs(3).names == ("∅", "{0}", "{1}", "{2}", "{0,1}", "{0,2}", "{1,2}", "Ω")
    assert "f=6: ∅, {0}, {1}, {2}, {3}, Ω" in repr(FocalSets.simple(4))


def test_matrices_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        FocalSets.simple(2).C[0, 0] = 2.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FocalSets.simple(0), "n_clusters must be at least 1, got 0"),
        (lambda: FocalSets(2, (1, 2)), r"first focal set must be the empty set.*got \(0,\)"),
        (lambda: FocalSets(2, ()), "got no set at all"),
        (lambda: FocalSets.of([[0], [3]], 3), r"\(3,\) names a cluster outside 0\.\.2"),
        (lambda: FocalSets.of([[0, 1], [1, 0]], 3), r"\(0, 1\) is listed twice"),
        (lambda: FocalSets.of([[-1]], 3), "numbered from 0, got -1"),
        (lambda: FocalSets.pairs(3, [(1, 1)]), "two different clusters"),
        (lambda: FocalSets.full(17), "at most 16 clusters"),
        (lambda: FocalSets.from_matrix(np.zeros(3)), r"two axes \(f, c\), got shape \(3,\)"),
        (lambda: FocalSets.simple(3).index([0, 1]), r"\(0, 1\) is not a focal set"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_mutual_neighbours_are_clusters_that_share_objects():
    # Two couples of clusters, each with objects between them.
    pl = np.array([[1, 0.8, 0, 0], [0.7, 1, 0, 0], [0, 0, 1, 0.6], [0, 0.1, 0.9, 1]])
    assert mutual_neighbour_pairs(pl) == [(0, 1), (2, 3)]
    assert mutual_neighbour_pairs(pl, q=3) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    with pytest.raises(ValueError, match="q must be at least 1, got 0"):
        mutual_neighbour_pairs(pl, q=0)


def test_ten_thousand_clusters_are_named_at_once():
    focal = FocalSets.simple(10_000)
    assert focal.sets[:3] == ((), (0,), (1,)) and focal.sets[-2] == (9_999,)
    assert focal.sets[-1] == tuple(range(10_000)) and focal.names[-2:] == ("{9999}", "Ω")
