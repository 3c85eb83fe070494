"""Partners in few lists are the partners of the graph."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evdist.kernels.graph import PairGraph, draw_graph
from evdist.kernels.partner_lists import PartnerLists, are_few, has_few_lists


@given(
    n=st.integers(2, 3000), k=st.integers(1, 40), seed=st.integers(0, 99),
    ends=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)  # fmt: skip
def test_lists_say_what_the_formula_says(n, k, seed, ends):
    graph = draw_graph(n, min(k, n - 1), np.random.default_rng(seed))
    lists = PartnerLists.of(graph)
    a, b = sorted(int(end * n) for end in ends)
    for lo, hi in ((0, n), (a, b), (a, a)):
        partner, degree = graph.partners(lo, hi)
        found, count = lists.written(lo, hi, graph.k)
        np.testing.assert_array_equal(found, partner)
        np.testing.assert_array_equal(count, degree)
        at, _ = lists.of_rows(lo, hi)
        rows = np.arange(lo, hi, dtype=np.uint32)[:, None]
        looked_up = lists.partner.reshape(-1)[at[:, None] + np.arange(graph.k)] + rows
        np.testing.assert_array_equal(looked_up, partner)


@given(n=st.integers(2, 500), k=st.integers(1, 30), seed=st.integers(0, 99))
def test_room_for_four_at_a_time_holds_the_row_itself(n, k, seed):
    """Vectors read it: it must lie in the table."""
    graph = draw_graph(n, min(k, n - 1), np.random.default_rng(seed))
    lists = PartnerLists.of(graph)
    width = lists.partner.shape[1]
    assert width % 4 == 0
    assert not lists.partner[np.arange(width) >= lists.degree[:, None]].any()


def test_there_are_few_lists_where_rows_are_many():
    graph = draw_graph(100_000, 100, np.random.default_rng(0))
    assert has_few_lists(graph)
    assert len(PartnerLists.of(graph).first) <= 4 * 201
    assert not are_few(10_000, 100)
    assert not has_few_lists(draw_graph(50, 49, np.random.default_rng(0)))
    near = PairGraph.draw_near(100_000, 100, 50, 500, 0, np.random.default_rng(0))
    assert not has_few_lists(near)
