"""What follows from the masses: by hand on a butterfly, and as laws on random partitions."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerances import PRINTED_2, ROUNDING

from evdist import CredalPartition, FocalSets, belief

#: Six objects in the manner of the Butterfly data: two clusters, one object between them, one far
#: away; columns are the empty set, {0}, {1}, Omega.
OBJECTS = np.array(
    [
        [0.1, 0.0, 0.9, 0.0],
        [0.0, 0.1, 0.5, 0.4],
        [0.0, 0.2, 0.2, 0.6],
        [0.0, 0.5, 0.1, 0.4],
        [0.1, 0.9, 0.0, 0.0],
        [0.9, 0.1, 0.0, 0.0],
    ]
)


#: NN-EVCLUS, table 1: all of the Butterfly data by EVCLUS, as printed; the same columns.
TABLE_1 = np.array(
    [
        [0.11, 0, 0.89, 0],
        [0.082, 0, 0.75, 0.17],
        [0, 0, 0.83, 0.17],
        [0.082, 0, 0.75, 0.17],
        [0, 0.077, 0.56, 0.36],
        [0, 0.29, 0.30, 0.42],
        [0, 0.55, 0.079, 0.37],
        [0.082, 0.73, 0, 0.18],
        [0, 0.81, 0, 0.19],
        [0.082, 0.73, 0, 0.18],
        [0.11, 0.87, 0, 0.02],
        [0.97, 0.030, 0, 0],
    ]
)


@pytest.fixture
def butterfly() -> CredalPartition:
    return CredalPartition(OBJECTS, FocalSets.full(2))


@st.composite
def partitions(draw: st.DrawFn) -> CredalPartition:
    """Small partitions with many ties, zeros and objects with all their mass on the empty set."""
    c = draw(st.integers(1, 4))
    focal = draw(st.sampled_from([FocalSets.simple, FocalSets.pairs, FocalSets.full]))(c)
    n = draw(st.integers(1, 8))
    row = st.lists(st.integers(0, 3), min_size=len(focal), max_size=len(focal))
    weights = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return CredalPartition((weights / weights.sum(axis=1, keepdims=True)).astype(dtype), focal)


def test_the_set_of_largest_mass_is_assigned(butterfly):
    # {1}, {1}, Omega, {0}, {0}, the empty set
    np.testing.assert_array_equal(butterfly.assigned(), [2, 2, 3, 1, 1, 0])
    np.testing.assert_array_equal(butterfly.assigned() == 0, butterfly.outliers())


class TestByHand:
    def test_each_object_has_the_label_of_its_most_plausible_cluster(self, butterfly):
        assert butterfly.labels().tolist() == [1, 1, 0, 0, 0, 0]

    def test_the_object_in_the_middle_is_in_both_upper_approximations_only(self, butterfly):
        assert butterfly.lower().tolist() == [
            [False, True], [False, True], [False, False], [True, False], [True, False],
            [False, False],
        ]  # fmt: skip
        assert butterfly.upper().tolist() == [
            [False, True], [False, True], [True, True], [True, False], [True, False],
            [False, False],
        ]  # fmt: skip

    def test_dominance_compares_belief_with_plausibility(self, butterfly):
        # Object 5: Bel({1}) = .5 = Pl({0}), so that cluster 0 is just not dominated.
        assert butterfly.upper("dominance").tolist() == [
            [False, True], [True, True], [True, True], [True, True], [True, False],
            [True, False],
        ]  # fmt: skip

    def test_the_far_object_is_the_outlier(self, butterfly):
        assert butterfly.outliers().tolist() == [False] * 5 + [True]

    def test_nonspecificity_is_the_mass_of_omega_and_of_the_empty_set(self, butterfly):
        per_object = [0.1, 0.4, 0.6, 0.4, 0.1, 0.9]
        np.testing.assert_allclose(butterfly.object_nonspecificity(), per_object, **ROUNDING)
        np.testing.assert_allclose(butterfly.nonspecificity(), np.mean(per_object), **ROUNDING)

    def test_sizes(self, butterfly):
        sizes = butterfly.sizes()
        np.testing.assert_allclose(sizes.expected, [2.5, 2.4], **ROUNDING)
        assert sizes.labels.tolist() == [4, 2]
        assert sizes.lower.tolist() == [2, 2]
        assert sizes.upper.tolist() == [3, 3]
        assert butterfly.sizes("dominance").upper.tolist() == [5, 4]

    def test_fuzzy_partition_divides_plausibilities(self, butterfly):
        np.testing.assert_allclose(butterfly.fuzzy()[1], [0.36, 0.64], **PRINTED_2)

    def test_the_summary_reads_like_a_report(self, butterfly):
        assert str(butterfly.summary()) == (
            "Credal partition of 6 objects into 2 clusters, 4 focal sets\n"
            "\n"
            "  sure members           2  33.3 %  at level 0.75\n"
            "  between clusters       3  50.0 %\n"
            "  outliers               1  16.7 %\n"
            "  nonspecificity N*  0.417  0 precise, 1 vacuous\n"
            "\n"
            "  cluster  expected  labels  lower  upper\n"
            "      {0}       2.5       4      2      3\n"
            "      {1}       2.4       2      2      3"
        )

    def test_long_summaries_are_cut(self):
        text = str(CredalPartition.from_labels(np.arange(40)).summary())
        assert text.endswith("... and 15 more clusters")

    def test_a_notebook_shows_the_summary(self, butterfly):
        html = butterfly._repr_html_()
        assert "6 objects into 2 clusters" in html
        assert html.count("<tr>") == 4 + 1 + 2

    def test_repr_is_one_line(self, butterfly):
        assert repr(butterfly) == (
            "CredalPartition(n_objects=6, n_clusters=2, f=4, mass=float64 numpy)"
        )

    def test_frame(self, butterfly):
        frame = butterfly.to_frame(masses=True)
        assert list(frame.columns) == [
            "label", "decision", "open", "set", "probability", "margin", "nonspecificity", "empty",
            "probability_0", "probability_1", "plausibility_0", "plausibility_1",
            "mass_∅", "mass_{0}", "mass_{1}", "mass_Ω",
        ]  # fmt: skip
        assert frame["set"].tolist() == ["{1}", "{1}", "Ω", "{0}", "{0}", "∅"]
        assert frame["decision"].tolist() == ["sure", *["between"] * 3, "sure", "outlier"]
        assert frame["open"].tolist() == ["{1}", "{0,1}", "{0,1}", "{0,1}", "{0}", "∅"]
        np.testing.assert_array_equal(frame.iloc[:, 12:], np.float32(OBJECTS))
        assert list(butterfly.to_frame().columns) == list(frame.columns[:12])

    def test_ties_go_to_the_first(self):
        tie = CredalPartition([[0.25, 0.25, 0.25, 0.25]], FocalSets.full(2))
        for rule in ("plausibility", "belief", "pignistic"):
            assert tie.labels(rule).tolist() == [0]
        assert tie.outliers().tolist() == [True]

    def test_approximations_of_the_butterfly_data_are_those_of_the_paper(self):
        # Printed masses are rounded, so that their rows do not quite sum to one.
        p = CredalPartition(TABLE_1 / TABLE_1.sum(axis=1, keepdims=True), FocalSets.full(2))
        objects = np.arange(1, 13)
        lower, upper = p.rough()
        assert objects[lower[:, 0]].tolist() == [7, 8, 9, 10, 11]
        assert objects[upper[:, 0]].tolist() == [6, 7, 8, 9, 10, 11]
        assert objects[lower[:, 1]].tolist() == [1, 2, 3, 4, 5]
        assert objects[upper[:, 1]].tolist() == [1, 2, 3, 4, 5, 6]
        assert objects[p.outliers()].tolist() == [12]

    @pytest.mark.parametrize("method", ["labels", "lower", "upper", "rough", "sizes", "summary"])
    def test_an_unknown_rule_is_refused(self, butterfly, method):
        with pytest.raises(ValueError, match=r"rule must be one of .*got 'best'"):
            getattr(butterfly, method)("best")


class TestLaws:
    @given(partitions())
    def test_belief_pignistic_and_plausibility_are_in_order(self, p):
        bel, bet, pl = p.belief, p.pignistic, p.plausibility
        assert (bel <= bet + 1e-12).all()
        assert (bet <= pl + 1e-12).all()
        np.testing.assert_allclose(
            bet.sum(axis=1), 1.0 - p.mass[:, 0].astype(float), rtol=0, atol=1e-6
        )

    @given(partitions())
    def test_views_agree_with_the_theory_of_evdist_belief(self, p):
        m = p.mass.astype(float)
        F = p.focal_sets
        np.testing.assert_allclose(p.plausibility, belief.contour(m, F), **ROUNDING)
        np.testing.assert_allclose(p.pignistic, belief.pignistic(m, F), **ROUNDING)
        bits = belief.nonspecificity(m, F) / max(np.log2(p.n_clusters), 1)
        np.testing.assert_allclose(p.object_nonspecificity(), bits, **ROUNDING)

    @given(partitions())
    def test_no_view_holds_a_nan(self, p):
        p = CredalPartition(
            np.vstack([p.mass, np.eye(1, p.mass.shape[1], dtype=p.mass.dtype)]), p.focal_sets
        )
        tables = [p.plausibility, p.normalised_plausibility, p.belief, p.pignistic, p.fuzzy()]
        tables += [p.object_nonspecificity(), p.nonspecificity(), p.summary().mean_mass]
        assert all(np.isfinite(table).all() for table in tables)
        np.testing.assert_allclose(p.fuzzy().sum(axis=1), 1.0, **ROUNDING)
        assert p.outliers()[-1]
        assert p.upper("dominance")[-1].all()
        assert not p.upper("mass")[-1].any()

    @given(partitions())
    def test_lower_lies_in_upper_and_is_alone_there(self, p):
        for rule in ("mass", "dominance"):
            lower, upper = p.rough(rule)
            np.testing.assert_array_equal(lower, p.lower(rule))
            np.testing.assert_array_equal(upper, p.upper(rule))
            assert (lower <= upper).all()
            np.testing.assert_array_equal(lower.any(axis=1), upper.sum(axis=1) == 1)
        np.testing.assert_array_equal(p.outliers(), ~p.upper("mass").any(axis=1))

    @given(partitions())
    def test_dominance_is_that_of_normalised_intervals(self, p):
        some = p.mass[:, 0] < 1
        m = belief.normalise(p.mass[some].astype(float), p.focal_sets)
        pl, bel = belief.contour(m, p.focal_sets), belief.singleton_belief(m, p.focal_sets)
        gap = pl[:, :, None] - bel[:, None, :]  # Pl*({k}) - Bel*({l})
        clear = (np.abs(gap) > 1e-9) | np.eye(p.n_clusters, dtype=bool)
        expected = (gap >= -1e-9).all(axis=2)
        sure = clear.all(axis=2)  # without ties, which rounding may break
        np.testing.assert_array_equal(p[some].upper("dominance")[sure], expected[sure])

    @given(partitions())
    def test_the_summary_counts_every_object_once(self, p):
        s = p.summary()
        assert s.n_sure + s.n_between + s.n_outliers == s.n_objects == len(p)
        assert s.sizes.labels.sum() == len(p)
        np.testing.assert_array_equal(s.sizes.labels, np.bincount(
            p.labels(), minlength=p.n_clusters))  # fmt: skip
        assert s.n_sure == p.decide().sure.sum()
        assert s.n_between == p.decide().between.sum()
        assert s.level == p.decide().level == p.level()
        assert s.n_outliers == p.outliers().sum()
        np.testing.assert_allclose(s.nonspecificity, np.mean(p.object_nonspecificity()), **ROUNDING)
        np.testing.assert_allclose(s.mean_mass, p.mass.mean(axis=0, dtype=float), **ROUNDING)

    @given(partitions(), st.randoms(use_true_random=False))
    def test_renaming_clusters_commutes_with_every_view(self, p, random):
        order = list(range(p.n_clusters))
        random.shuffle(order)
        q = p.relabel(order)
        for view in ("plausibility", "normalised_plausibility", "belief", "pignistic"):
            np.testing.assert_allclose(getattr(q, view), getattr(p, view)[:, order], **ROUNDING)
        for rule in ("mass", "dominance"):
            np.testing.assert_array_equal(q.upper(rule), p.upper(rule)[:, order])
            np.testing.assert_array_equal(q.lower(rule), p.lower(rule)[:, order])
        np.testing.assert_array_equal(q.outliers(), p.outliers())
        assert q.nonspecificity() == p.nonspecificity()
        assert q.relabel(np.argsort(order).tolist()) == p

    @given(partitions())
    def test_an_object_does_not_see_its_neighbours(self, p):
        for i in range(len(p)):
            np.testing.assert_array_equal(p[i].plausibility, p.plausibility[i : i + 1])
            assert p[i].labels()[0] == p.labels()[i]

    @given(partitions())
    def test_projection_gives_up_precision_and_nothing_else(self, p):
        q = p.project(FocalSets.simple(p.n_clusters))
        assert (q.belief <= p.belief + 1e-6).all()
        assert (q.plausibility >= p.plausibility - 1e-6).all()
        assert q.mass.dtype == p.mass.dtype
        np.testing.assert_array_equal(q.mass[:, 0], p.mass[:, 0])
        assert p.project(p.focal_sets) == p


class TestContainer:
    def test_nothing_can_be_changed(self, butterfly):
        with pytest.raises(dataclasses.FrozenInstanceError, match="mass"):
            butterfly.mass = OBJECTS
        with pytest.raises(ValueError, match="read-only"):
            butterfly.mass[0, 0] = 1.0
        assert OBJECTS.flags.writeable

    def test_float32_masses_stay_float32_and_sums_are_float64(self):
        p = CredalPartition(OBJECTS.astype(np.float32), FocalSets.full(2))
        assert p.mass.dtype == np.float32
        assert p.plausibility.dtype == np.float64

    @pytest.mark.parametrize(
        "rows", [slice(1, 4), slice(None, None, -2), [4, 0], np.arange(6) > 3, np.array([-1])]
    )
    def test_rows_are_picked_as_from_an_array(self, butterfly, rows):
        picked = butterfly[rows]
        np.testing.assert_array_equal(picked.mass, OBJECTS[rows])
        np.testing.assert_array_equal(picked.labels(), butterfly.labels()[rows])

    def test_one_row_is_a_partition_of_one_object(self, butterfly):
        assert len(butterfly[-1]) == 1
        assert [p.outliers()[0] for p in butterfly] == butterfly.outliers().tolist()
        with pytest.raises(IndexError, match="out of range"):
            butterfly[6]
        with pytest.raises(TypeError, match=r"use \.mass for columns"):
            butterfly[0, 1]

    def test_no_objects_at_all(self, butterfly):
        none = butterfly[:0]
        assert none.labels().shape == (0,)
        assert none.summary().nonspecificity == 0.0

    def test_equality_is_that_of_masses_and_focal_sets(self, butterfly):
        assert butterfly == CredalPartition(OBJECTS.copy(), FocalSets.full(2))
        assert butterfly != butterfly[:5]
        assert butterfly != butterfly[::-1]
        assert butterfly != butterfly.relabel([1, 0])
        assert butterfly != "butterfly"

    def test_relabel_wants_each_cluster_once(self, butterfly):
        assert butterfly.relabel([1, 0]).labels().tolist() == [0, 0, 0, 1, 1, 1]
        with pytest.raises(ValueError, match=r"each of the clusters 0\.\.1 once, got \[0, 0\]"):
            butterfly.relabel([0, 0])

    def test_projection_sends_a_set_to_the_smallest_that_contains_it(self):
        p = CredalPartition(np.full((1, 8), 0.125), FocalSets.full(3))
        q = p.project(FocalSets.of([[0], [0, 1], [1, 2], [0, 1, 2]], 3))
        # {1} has two homes of two clusters: the first; {2} has one; {0,2} only Omega.
        assert q.mass.tolist() == [[0.125, 0.125, 0.25, 0.25, 0.25]]

    def test_projection_without_a_place_for_a_set_is_refused(self, butterfly):
        with pytest.raises(ValueError, match=r"No kept focal set contains \[0, 1\]"):
            butterfly.project(FocalSets.simple(2, omega=False))
        with pytest.raises(ValueError, match="about the same 2 clusters, got 3"):
            butterfly.project(FocalSets.simple(3))
