"""Links are read from many forms, and refused with the pair named where they cannot hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evdist.constraints import check_links, random_links

PAIRS = [(0, 1), (4, 2)]


class TestForms:
    @pytest.mark.parametrize(
        "links",
        [
            PAIRS,
            np.array(PAIRS),
            np.array(PAIRS, np.uint32),
            np.array(PAIRS, float),
            np.array(PAIRS, object),
            pd.DataFrame(PAIRS, columns=["a", "b"]),
            pd.DataFrame(PAIRS, columns=["a", "b"], dtype="Int64"),
        ],
        ids=["list", "int", "uint32", "float", "object", "frame", "nullable frame"],
    )
    def test_any_table_of_two_columns_will_do(self, links: object) -> None:
        ml, cl = check_links(links, None, 5)
        assert ml.tolist() == [[0, 1], [4, 2]]
        assert ml.dtype == cl.dtype == np.int64
        assert cl.shape == (0, 2)

    @pytest.mark.parametrize(
        "nothing", [None, [], np.empty((0, 2)), pd.DataFrame({"a": [], "b": []})]
    )
    def test_no_links_are_two_empty_arrays(self, nothing: object) -> None:
        ml, cl = check_links(nothing, nothing, 3)
        assert ml.shape == cl.shape == (0, 2)

    def test_a_link_given_twice_is_kept_once_where_it_stood_first(self) -> None:
        ml, cl = check_links([(3, 1), (0, 2), (1, 3), (3, 1)], [(0, 4), (4, 0)], 5)
        assert ml.tolist() == [[3, 1], [0, 2]]
        assert cl.tolist() == [[0, 4]]

    def test_many_objects_cost_nothing(self) -> None:
        n = 10**9
        ml, _ = check_links([(0, n - 1)], [(5, n - 1)], n)
        assert ml.tolist() == [[0, n - 1]]


class TestRefused:
    @pytest.mark.parametrize(
        ("links", "message"),
        [
            ([0, 1], r"shape \(p, 2\), got shape \(2,\). For one pair write \[\(i, j\)\]"),
            ([(0, 1, 2)], r"got shape \(1, 3\)"),
            ([(0, 1), (2,)], r"must_link must be pairs of objects"),
            ([(0, 1), (2, 1.5)], r"whole numbers, objects 0..4, but row 1 is \(2.0, 1.5\)"),
            ([(0, 1), (np.nan, 1)], r"whole numbers, objects 0..4, but row 1 is \(nan, 1.0\)"),
            ([("a", "b")], r"whole numbers, objects 0..4, but row 0 is \('a', 'b'\)"),
            ([(True, False)], r"whole numbers"),
            (pd.DataFrame({"a": [0, None], "b": [1, 2]}, dtype="Int64"), r"row 1 is \(<NA>, 2\)"),
            ([(0, 1), (5, 1)], r"must name objects 0..4, but row 1 is \(5, 1\)\."),
            ([(0, -1), (1, 7)], r"must name objects 0..4, but row 0 is \(0, -1\) \(2 such rows\)"),
            ([(0.0, np.inf)], r"must name objects 0..4, but row 0 is \(0.0, inf\)"),
            ([(0, 1), (3, 3)], r"two different objects, but row 1 is \(3, 3\)"),
        ],
    )
    def test_what_is_not_a_pair_of_two_objects(self, links: object, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            check_links(links, None, 5)

    def test_the_kind_of_link_is_named(self) -> None:
        with pytest.raises(ValueError, match=r"^cannot_link must name objects"):
            check_links([(0, 1)], [(0, 9)], 5)

    def test_a_pair_that_is_linked_both_ways(self) -> None:
        with pytest.raises(
            ValueError, match=r"cannot_link row 1, \(4, 2\), contradicts must_link.*: 4 - 2\."
        ):
            check_links([(2, 4)], [(0, 1), (4, 2)], 5)

    def test_a_chain_of_must_links_with_its_objects(self) -> None:
        with pytest.raises(
            ValueError, match=r"row 0, \(10, 13\).*joins the two: 10 - 11 - 12 - 13"
        ):
            check_links([(12, 13), (11, 12), (10, 11)], [(10, 13)], 20)

    def test_the_shortest_of_several_chains(self) -> None:
        with pytest.raises(ValueError, match=r"the two: 0 - 5 - 3\. Remove one"):
            check_links([(0, 1), (1, 2), (2, 3), (0, 5), (5, 3)], [(0, 3)], 6)

    def test_a_long_chain_is_shortened(self) -> None:
        chain = np.column_stack([np.arange(99), np.arange(1, 100)])
        with pytest.raises(ValueError, match=r"0 - 1 - 2 - ... \(94 more\) ... - 97 - 98 - 99\."):
            check_links(chain, [(0, 99)], 100)

    def test_how_many_more_contradict(self) -> None:
        with pytest.raises(ValueError, match="2 more cannot-links contradict"):
            check_links([(0, 1), (1, 2)], [(0, 2), (0, 1), (1, 2)], 3)


class TestRandomLinks:
    @given(
        y=st.lists(st.integers(-1, 3), min_size=2, max_size=12),
        seed=st.integers(0, 9),
        data=st.data(),
    )
    def test_pairs_are_different_and_agree_with_the_labels(
        self, y: list[int], seed: int, data: st.DataObject
    ) -> None:
        labelled = sum(label >= 0 for label in y)
        n_links = data.draw(st.integers(0, labelled * (labelled - 1) // 2))
        ml, cl = random_links(y, n_links, seed)
        assert len(ml) + len(cl) == n_links
        pairs = {tuple(sorted(p)) for p in [*ml.tolist(), *cl.tolist()]}
        assert len(pairs) == n_links
        assert all(y[i] == y[j] >= 0 for i, j in ml)
        assert all(y[i] != y[j] and min(y[i], y[j]) >= 0 for i, j in cl)
        check_links(ml, cl, len(y))

    def test_the_seed_decides(self) -> None:
        y = np.arange(1000) % 3
        for one, two in zip(random_links(y, 50, 1), random_links(y, 50, 1), strict=True):
            np.testing.assert_array_equal(one, two)
        assert random_links(y, 50, 1)[0].tolist() != random_links(y, 50, 2)[0].tolist()

    def test_every_pair_is_equally_likely(self) -> None:
        counts = np.zeros((6, 6))
        for seed in range(600):
            for i, j in np.concatenate(random_links(np.zeros(6, int), 5, seed)):
                counts[i, j] += 1
        drawn = counts[np.triu_indices(6, 1)]
        assert counts.sum() == drawn.sum() == 3000
        np.testing.assert_allclose(drawn, 200, atol=50)  # 3.7 standard deviations

    def test_names_are_labels_too(self) -> None:
        ml, cl = random_links(["cat", "dog", "cat"], 3, 0)
        assert [sorted(p) for p in ml.tolist()] == [[0, 2]]
        assert len(cl) == 2

    def test_a_million_objects(self) -> None:
        ml, cl = random_links(np.arange(10**6) % 10, 10_000, 0)
        pairs = np.concatenate([ml, cl])
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert 0 <= pairs.min() < 10**3 * 20
        assert pairs.max() < 10**6
        assert abs(len(ml) - 1000) < 120

    def test_more_links_than_pairs_are_refused(self) -> None:
        with pytest.raises(ValueError, match=r"2 labelled objects have 1 pairs.*got 2"):
            random_links([0, -1, 1], 2, 0)

    def test_labels_are_one_per_object(self) -> None:
        with pytest.raises(ValueError, match=r"shape \(n,\), got shape \(2, 2\)"):
            random_links(np.eye(2), 1, 0)
