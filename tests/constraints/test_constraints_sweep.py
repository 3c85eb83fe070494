"""Links as a sweep sees them: the table of penalties, and the rows that must wait."""

from __future__ import annotations

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist.belief import FocalSets, conflict
from evdist.constraints import random_links
from evdist.evclus.late import late_rows
from evdist.evclus.link_table import link_table
from evdist.evclus.problem import Plan
from evdist.evclus.rows.sweep import Block, Links, block_objective
from evdist.kernels.graph import PairGraph, draw_graph

NONE = np.empty((0, 2), np.int64)


@st.composite
def linked_graphs(draw: st.DrawFn) -> tuple[PairGraph, np.ndarray, np.ndarray, np.ndarray]:
    """A pair graph, the position of each object, must-links and cannot-links."""
    n = draw(st.integers(2, 60))
    k = draw(st.integers(1, n - 1))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    n_links = draw(st.integers(0, min(3 * n, n * (n - 1) // 2)))
    ml, cl = random_links(rng.integers(0, 3, n), n_links, rng)
    return draw_graph(n, k, rng), rng.permutation(n), ml, cl


class TestLinkTable:
    FOCAL = FocalSets.full(3)

    def penalty(self, M: np.ndarray, links: Links) -> float:
        """Of all links, by the compiled objective on a block without kept pairs."""
        n = len(M)
        none = np.zeros(n, np.int64)
        block = Block(0, none, none, np.zeros(0, np.uint32), np.zeros(0, np.float32))
        table = np.zeros((n, 8), np.float32)
        cuts, none = np.array([0, n]), np.zeros(0, np.float32)
        stress, twice = block_objective(M, table, block, none, links, cuts)[0]
        assert stress == 0
        return twice / 2

    @given(seed=st.integers(0, 100), n_links=st.integers(1, 20))
    def test_the_penalty_is_that_of_equation_10(self, seed: int, n_links: int) -> None:
        rng = np.random.default_rng(seed)
        n, rho = 8, 0.7
        ml, cl = random_links(rng.integers(0, 3, n), n_links, rng)
        M = rng.dirichlet(np.full(8, 0.3), n).astype(np.float32)
        position = rng.permutation(n)
        links = link_table(ml, cl, position, self.FOCAL, rho)

        m = M[position].astype(float)  # of objects

        def pl_same(i: np.ndarray, j: np.ndarray) -> np.ndarray:  # eq. (8a)
            return 1 - conflict(m[i], m[j], self.FOCAL)

        def pl_apart(i: np.ndarray, j: np.ndarray) -> np.ndarray:  # eq. (8b)
            a, b = m[i], m[j]
            single = self.FOCAL.singletons
            unknown = a[:, 0] + b[:, 0] - a[:, 0] * b[:, 0]
            # Written for masses that sum to one; these do so in float32 only.
            whole = a.sum(axis=1) * b.sum(axis=1)
            return whole - unknown - (a[:, single] * b[:, single]).sum(axis=1)

        J_ml = (pl_apart(*ml.T) + 1 - pl_same(*ml.T)).sum()
        J_cl = (pl_same(*cl.T) + 1 - pl_apart(*cl.T)).sum()
        np.testing.assert_allclose(self.penalty(M, links), rho * (J_ml + J_cl), atol=1e-5)

    @given(linked_graphs())
    def test_each_link_stands_in_both_rows(self, drawn: tuple) -> None:
        graph, position, ml, cl = drawn
        n = graph.n
        links = link_table(ml, cl, position, self.FOCAL, 1.0)
        dense = np.zeros((n, n))
        for pairs, sign in ((ml, 1), (cl, -1)):
            for i, j in position[pairs]:
                dense[i, j] = dense[j, i] = sign
        if not len(ml) + len(cl):
            assert links.first.size == 0  # what the kernels take for "no links"
            return
        assert links.first.shape == (n + 1,)
        got = np.zeros((n, n))
        for i in range(n):
            own = slice(links.first[i], links.first[i + 1])
            got[i, links.other[own]] = links.sign[own]
            assert (np.diff(links.other[own]) > 0).all()
        np.testing.assert_array_equal(got, dense)
        assert links.first[-1] == 2 * (len(ml) + len(cl))

    def test_the_order_of_the_links_does_not_matter(self) -> None:
        ml, cl = np.array([[0, 1], [2, 3], [0, 3]]), np.array([[1, 4], [0, 4]])
        position = np.array([3, 1, 4, 0, 2])
        one = link_table(ml, cl, position, self.FOCAL, 1.0)
        two = link_table(ml[::-1, ::-1], cl[::-1], position, self.FOCAL, 1.0)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)

    def test_types_are_those_of_the_kernel(self) -> None:
        links = link_table(np.array([[0, 1]]), NONE, np.arange(2, dtype=np.uint32), self.FOCAL, 2)
        assert (links.first.dtype, links.other.dtype) == (np.int64, np.int64)
        assert (links.sign.dtype, links.Q.dtype, type(links.penalty)) == (float, float, float)
        np.testing.assert_allclose(links.Q, self.FOCAL.C + self.FOCAL.E, **ROUNDING)


class TestLateRows:
    @given(linked_graphs())
    def test_steps_hold_every_row_once_and_no_two_that_share_a_term(self, drawn: tuple) -> None:
        graph, position, ml, cl = drawn
        late = late_rows(ml, cl, position, graph.bounds, graph.partners_of)
        plan = Plan.of(graph.bounds, late)
        steps = [np.concatenate([rows for _, rows in plan.rows(s)]) for s in range(len(plan.steps))]
        assert sorted(chain.from_iterable(steps)) == list(range(graph.n))

        shared = np.zeros((graph.n, graph.n), bool)
        partner, degree = graph.partners(0, graph.n)
        for i in range(graph.n):
            shared[i, partner[i, : degree[i]]] = True
        a, b = position[np.concatenate([ml, cl])].T
        shared[a, b] = shared[b, a] = True
        for rows in steps:
            assert not shared[np.ix_(rows, rows)].any()

    def test_without_links_no_row_is_late(self) -> None:
        graph = draw_graph(100, 10, np.random.default_rng(0))
        assert late_rows(NONE, NONE, np.arange(100), graph.bounds, graph.partners_of) == []

    def test_with_all_pairs_kept_no_row_is_late(self) -> None:
        graph = draw_graph(20, 19, np.random.default_rng(0))
        ml, cl = random_links(np.arange(20) % 2, 100, 0)
        assert late_rows(ml, cl, np.arange(20), graph.bounds, graph.partners_of) == []

    def test_links_between_colours_are_no_matter(self) -> None:
        graph = draw_graph(80, 4, np.random.default_rng(0))
        across = np.array([[0, 79], [10, 30]])
        assert late_rows(across, NONE, np.arange(80), graph.bounds, graph.partners_of) == []

    @staticmethod
    def no_pairs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.empty((len(rows), 0), np.uint32), np.zeros(len(rows), np.int64)

    def test_the_middle_of_a_star_waits_not_its_rays(self) -> None:
        star = np.array([[5, 0], [5, 1], [5, 2], [3, 5]])
        (rows,) = late_rows(star, NONE, np.arange(10), np.array([0, 10]), self.no_pairs)
        assert rows.tolist() == [5]

    def test_ties_go_to_the_lower_row(self) -> None:
        links = np.array([[7, 3], [8, 4]])
        (rows,) = late_rows(links, NONE, np.arange(10), np.array([0, 10]), self.no_pairs)
        assert rows.tolist() == [3, 4]

    def test_late_rows_that_are_linked_or_paired_wait_for_each_other(self) -> None:
        links = np.array([[0, 1], [5, 6], [0, 5]])  # colours 0..4 and 5..9
        bounds = np.array([0, 5, 10])
        groups = late_rows(links, NONE, np.arange(10), bounds, self.no_pairs)
        assert [g.tolist() for g in groups] == [[0], [5]]

        def paired(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return (rows + 5)[:, None] % 10, np.ones(len(rows), np.int64)

        groups = late_rows(links[:2], NONE, np.arange(10), bounds, paired)
        assert [g.tolist() for g in groups] == [[0], [5]]
        (group,) = late_rows(links[:2], NONE, np.arange(10), bounds, self.no_pairs)
        assert group.tolist() == [0, 5]

    def test_many_links_among_many_objects_leave_few_late_rows_in_few_steps(self) -> None:
        n = 100_000
        rng = np.random.default_rng(0)
        graph = draw_graph(n, 50, rng)
        ml, cl = random_links(rng.integers(0, 5, n), 10_000, rng)
        groups = late_rows(ml, cl, rng.permutation(n), graph.bounds, graph.partners_of)
        # One link in `colours` joins rows of one colour, and one end of it is put off.
        inside = 10_000 / graph.colours
        assert 0.8 * inside < sum(map(len, groups)) < 1.1 * inside
        assert len(groups) <= 5


class TestPartnersOfAnyRows:
    @given(n=st.integers(2, 90), data=st.data(), seed=st.integers(0, 20))
    def test_they_are_those_of_the_range(self, n: int, data: st.DataObject, seed: int) -> None:
        graph = draw_graph(n, data.draw(st.integers(1, n - 1)), np.random.default_rng(seed))
        rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=8)), np.int64)
        partner, degree = graph.partners(0, n)
        got, got_degree = graph.partners_of(rows)
        np.testing.assert_array_equal(got, partner[rows])
        np.testing.assert_array_equal(got_degree, degree[rows])
        assert (got.dtype, got_degree.dtype) == (np.uint32, np.int64)
