"""Active learning: pairs of an uncertain and a sure object."""

from __future__ import annotations

import time
from pathlib import Path

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st

from evdist.belief import FocalSets
from evdist.constraints import propose_links
from evdist.partition import CredalPartition

FOCAL = FocalSets.pairs(2)  # empty, {0}, {1}, Omega


def partition(*rows: tuple[float, ...]) -> CredalPartition:
    return CredalPartition(np.array(rows), FOCAL)


SMALL = partition(
    (0, 0.9, 0.1, 0),  # 0
    (0, 1, 0, 0),  # 1  the surest of {0}
    (0, 0, 0.8, 0.2),  # 2  the surest of {1}
    (0, 0.1, 0.4, 0.5),  # 3  uncertain, rather {1}: margin .3
    (0, 0.25, 0, 0.75),  # 4  more uncertain, rather {0}: margin .25
    (0.9, 0.1, 0, 0),  # 5  an outlier: most uncertain, margin .2
)


def random_partition(n: int, c: int, seed: int) -> CredalPartition:
    rng = np.random.default_rng(seed)
    focal = FocalSets.pairs(c)
    return CredalPartition(rng.dirichlet(np.full(len(focal), 0.2), n), focal)


class TestWhatIsAsked:
    def test_the_most_uncertain_object_and_the_surest_of_its_likeliest_cluster(self) -> None:
        assert propose_links(SMALL, 1).tolist() == [[5, 1]]

    def test_the_empty_set_counts_as_ignorance(self) -> None:
        assert propose_links(SMALL, 3)[:, 0].tolist() == [5, 4, 3]

    def test_each_with_its_own_cluster(self) -> None:
        assert propose_links(SMALL, 3).tolist() == [[5, 1], [4, 1], [3, 2]]

    def test_a_known_link_is_not_asked_again(self) -> None:
        asked = propose_links(SMALL, 6, known=[(1, 5), (4, 1), (4, 2)]).tolist()
        assert [5, 2] in asked
        assert not any(set(pair) in ({1, 5}, {4, 1}, {4, 2}) for pair in asked)

    def test_an_object_halfway_between_two_clusters_is_not_sure(self) -> None:
        p = partition((0, 0.5, 0.5, 0), (0, 0.9, 0, 0.1), (0, 0, 0.7, 0.3), (0, 0.3, 0, 0.7))
        assert propose_links(p, 1).tolist() == [[0, 1]]  # though it has no nonspecificity

    def test_objects_of_margin_one_are_not_asked_about(self) -> None:
        hard = CredalPartition.from_labels([0, 0, 1, 1])
        assert propose_links(hard).shape == (0, 2)
        assert propose_links(SMALL, 100)[:, 0].tolist() == [5, 4, 3, 0, 2]

    def test_ties_go_to_the_lower_object_or_to_chance(self) -> None:
        p = partition((0, 1, 0, 0), (0, 0, 1, 0), *[(0, 0, 0, 1)] * 20)
        assert propose_links(p, 3)[:, 0].tolist() == [2, 3, 4]
        one, again, two = (propose_links(p, 3, random_state=s)[:, 0].tolist() for s in (1, 1, 2))
        assert one == again
        assert one != two

    @given(
        n=st.integers(3, 40),
        c=st.integers(2, 4),
        seed=st.integers(0, 50),
        with_X=st.booleans(),
        data=st.data(),
    )
    def test_pairs_are_new_and_never_ask_about_one_object_twice(
        self, n: int, c: int, seed: int, with_X: bool, data: st.DataObject
    ) -> None:
        p = random_partition(n, c, seed)
        X = np.random.default_rng(seed).normal(size=(n, 2)) if with_X else None
        pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(
            lambda q: q[0] != q[1]
        )
        known = data.draw(st.lists(pair, max_size=10))
        asked = propose_links(p, 8, X=X, known=known)
        np.testing.assert_array_equal(asked, propose_links(p, 8, X=X, known=known))
        assert len(set(asked[:, 0])) == len(asked)
        sets = [frozenset(q) for q in asked.tolist()]
        assert len(set(sets)) == len(sets)
        assert not set(sets) & {frozenset(q) for q in known}
        assert all(len(q) == 2 for q in sets)


class TestDiversity:
    # Two crowds of uncertain objects far apart, the first a little more uncertain.
    X = np.concatenate([[[0.0, 0], [9, 0]], np.full((5, 2), 3.0), np.full((5, 2), 30.0)])
    P = partition(
        (0, 1, 0, 0), (0, 0, 1, 0), *[(0, 0.1, 0, 0.9)] * 5, *[(0, 0.2, 0, 0.8)] * 5
    )  # fmt: skip

    def test_the_second_question_is_about_another_neighbourhood(self) -> None:
        assert propose_links(self.P, 2, X=self.X)[:, 0].tolist() == [2, 7]

    def test_neighbourhoods_of_known_links_come_last(self) -> None:
        assert propose_links(self.P, 1, X=self.X, known=[(2, 0)])[0, 0] == 7

    def test_without_attributes_equal_contours_are_one_neighbourhood(self) -> None:
        assert propose_links(self.P, 2)[:, 0].tolist() == [2, 7]

    def test_when_all_neighbourhoods_are_used_up_it_goes_on_by_uncertainty(self) -> None:
        assert propose_links(self.P, 4, X=self.X)[:, 0].tolist() == [2, 7, 3, 4]


class TestAttributes:
    def test_the_sure_object_is_the_one_nearest_to_the_centre(self) -> None:
        rows = [(0, 1, 0, 0)] + [(0, 0.9, 0, 0.1)] * 4 + [(0, 0, 1, 0), (0, 0.3, 0.1, 0.6)]
        X = np.array([[8.0, 0], [0, 0], [1, 1], [2, 0], [-1, 0], [20, 20], [4, 4]])
        p = partition(*rows)
        assert propose_links(p, 1).tolist() == [[6, 0]]
        assert propose_links(p, 1, X=X).tolist() == [[6, 3]]  # the mean is (2, 0.2)

    def test_a_cluster_without_sure_objects_has_its_surest(self) -> None:
        p = partition((0, 1, 0, 0), (0, 0, 0.1, 0.9), (0, 0, 0.3, 0.7), (0.2, 0, 0, 0.8))
        asked = propose_links(p, 3, X=np.arange(8.0).reshape(4, 2))
        assert [1, 2] in asked.tolist()

    def test_an_outlier_is_compared_with_the_nearest_cluster(self) -> None:
        p = partition((0, 1, 0, 0), (0, 0, 1, 0), (1, 0, 0, 0))
        assert propose_links(p, 1, X=[[0.0], [5.0], [9.0]]).tolist() == [[2, 1]]
        assert propose_links(p, 1, X=[[0.0], [5.0], [-9.0]]).tolist() == [[2, 0]]


class TestTables:
    @pytest.mark.parametrize("with_X", [False, True])
    def test_any_kind_of_table_gives_the_same_pairs(self, tmp_path: Path, with_X: bool) -> None:
        n = 3000
        p = random_partition(n, 3, 0)
        X = np.random.default_rng(1).normal(size=(n, 4))
        expected = propose_links(p, 5, X=X if with_X else None, known=[(0, 1)])

        def stored(name: str, array: np.ndarray) -> zarr.Array:
            z = zarr.create_array(
                str(tmp_path / name), shape=array.shape, chunks=(700, array.shape[1]), dtype=float
            )
            z[:] = array
            return z

        forms = [
            (da.from_array(p.mass, chunks=(901, -1)), da.from_array(X, chunks=(1200, 2))),
            (stored("m", p.mass), stored("x", X)),
            (p.mass, pd.DataFrame(X)),
        ]
        for mass, table in forms:
            lazy = CredalPartition(mass, p.focal_sets)
            got = propose_links(lazy, 5, X=table if with_X else None, known=[(0, 1)])
            np.testing.assert_array_equal(got, expected)

    def test_half_a_million_objects_take_seconds(self) -> None:
        n, c = 500_000, 5
        rng = np.random.default_rng(0)
        focal = FocalSets.simple(c)
        mass = np.zeros((n, len(focal)), np.float32)
        sure = rng.random(n).astype(np.float32)
        mass[np.arange(n), 1 + rng.integers(0, c, n)] = sure
        mass[:, -1] = 1 - sure
        began = time.perf_counter()
        asked = propose_links(CredalPartition(mass, focal), 10, X=rng.normal(size=(n, 4)))
        assert time.perf_counter() - began < 15
        assert asked.shape == (10, 2)
        assert mass[asked[:, 0], -1].min() > 0.9


class TestRefused:
    def test_no_pairs(self) -> None:
        with pytest.raises(ValueError, match="n_pairs must be at least 1, got 0"):
            propose_links(SMALL, 0)

    def test_attributes_of_other_objects(self) -> None:
        with pytest.raises(ValueError, match=r"one row for each of the 6 objects, got \(5, 2\)"):
            propose_links(SMALL, X=np.zeros((5, 2)))

    def test_attributes_that_are_not_finite(self) -> None:
        X = np.zeros((6, 2))
        X[4, 1] = np.nan
        with pytest.raises(ValueError, match=r"X must be finite, but X\[4, 1\] is nan"):
            propose_links(SMALL, X=X)

    def test_known_links_that_are_none(self) -> None:
        with pytest.raises(
            ValueError, match=r"known must name objects 0..5, but row 0 is \(0, 6\)"
        ):
            propose_links(SMALL, known=[(0, 6)])
