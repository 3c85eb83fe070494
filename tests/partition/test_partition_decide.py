"""Sure, between or outlier, by hand and as laws; calibration of the level; explanations."""

from __future__ import annotations

import json
import pickle

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import zarr
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from tolerances import ROUNDING

from evdist import CredalPartition, FocalSets
from evdist.partition.calibrate import (
    certified,
    first_part,
    pick_level,
    upper_bound,
    wrong,
)
from evdist.partition.decisions import (
    LEVELS,
    Level,
    auto_level,
    coded_sets,
    level_told,
    named_sets,
)

levels = st.floats(0.5, 1.0)


@st.composite
def partitions(draw: st.DrawFn, least: int = 1) -> CredalPartition:
    """Small partitions with many ties and zeros."""
    c = draw(st.integers(least, 4))
    focal = draw(st.sampled_from([FocalSets.simple, FocalSets.pairs, FocalSets.full]))(c)
    n = draw(st.integers(1, 8))
    row = st.lists(st.integers(0, 3), min_size=len(focal), max_size=len(focal))
    weights = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    weights[weights.sum(axis=1) == 0, 0] = 1.0
    return CredalPartition(weights / weights.sum(axis=1, keepdims=True), focal)


@pytest.mark.parametrize("c", [1, 8, 9, 64, 65, 300])
def test_sets_are_named_by_their_clusters(c: int) -> None:
    rng = np.random.default_rng(c)
    members = rng.random((50, c)) < 2.0 / c
    members[3] = members[17]
    members[5] = False
    codes, names = coded_sets(members)
    assert len(set(names)) == len(names) and set(codes) == set(range(len(names)))
    spelled = ["{" + ",".join(map(str, np.flatnonzero(row))) + "}" for row in members]
    assert named_sets(members) == [name if name != "{}" else "∅" for name in spelled]


class TestByHand:
    P = CredalPartition(
        [
            [0.0, 0.9, 0.05, 0.0, 0.05],  # {0}
            [0.0, 0.45, 0.5, 0.05, 0.0],  # {0} or {1}
            [0.4, 0.3, 0.3, 0.0, 0.0],  # more mass on the empty set than on any other
            [0.3, 0.35, 0.35, 0.0, 0.0],  # {0} or {1}, whatever the empty set has
            [0.0, 0.0, 0.0, 0.0, 1.0],  # anything
        ],
        FocalSets.simple(3),
    )

    def test_decisions_name_the_open_clusters(self) -> None:
        answer = self.P.decide(0.7)
        assert answer.names.tolist() == ["sure", "between", "outlier", "between", "between"]
        assert answer.open_names() == ["{0}", "{0,1}", "∅", "{0,1}", "{0,1,2}"]
        assert answer.open.sum(axis=1).tolist() == [1, 2, 0, 2, 3]
        assert repr(answer) == "Decisions(level=0.7: 1 sure, 3 between, 1 outlier)"

    def test_the_level_is_a_probability_between_the_two_best(self) -> None:
        p = CredalPartition([[0.0, 0.8, 0.2]], FocalSets.simple(2, omega=False))
        assert p.decide(0.79).sure.tolist() == [True]
        assert p.decide(0.81).between.tolist() == [True]

    def test_level_one_says_that_no_object_is_sure(self) -> None:
        p = CredalPartition([[0.0, 0.96, 0.03, 0.01, 0.0]], FocalSets.simple(3))
        assert p.decide(0.95).sure.all()
        assert p.decide(1.0).open_names() == ["{0,1}"]

    def test_the_margin_is_normalised_but_not_beyond_one_half(self) -> None:
        np.testing.assert_allclose(self.P.margin(), [0.85, 0.05, 0.0, 0.0, 0.0], **ROUNDING)
        p = CredalPartition([[0.4, 0.6, 0.0], [0.9, 0.1, 0.0]], FocalSets.simple(2, omega=False))
        np.testing.assert_allclose(p.margin(), [1.0, 0.2], **ROUNDING)

    @pytest.mark.parametrize("level", [0.4, 1.1, float("nan")])
    def test_a_level_that_means_nothing_is_refused(self, level: float) -> None:
        with pytest.raises(ValueError, match=r"level must lie between 0\.5"):
            self.P.decide(level)

    def test_the_default_level_rises_with_the_share_of_undecided_objects(self) -> None:
        found = [auto_level(1000, undecided) for undecided in range(0, 1001, 10)]
        assert found == sorted(found)
        assert (found[0], found[-1]) == (0.7, 1.0)
        assert set(found) <= set(LEVELS)

    def test_the_summary_takes_a_level_and_says_it(self) -> None:
        assert "at level 0.70" in str(self.P.summary(level=0.7))
        blurred = CredalPartition.from_fuzzy(np.tile([0.55, 0.45], (200, 1)))
        assert blurred.summary().n_sure == 0
        assert "too many objects undecided" in str(blurred.summary())

    def test_one_cluster_leaves_no_doubt(self) -> None:
        p = CredalPartition.from_labels([0, 0, 0])
        assert p.summary().n_sure == p.decide(1.0).sure.sum() == 3
        assert "level 1" not in str(p.summary(level=1.0))


class TestByPair:
    """Three clusters, of which 0 and 1 overlap and 2 lies apart."""

    def partition(self, undecided: int = 30) -> CredalPartition:
        rows = [[0.9, 0.08, 0.02]] * 40 + [[0.08, 0.9, 0.02]] * 40 + [[0.06, 0.06, 0.88]] * 80
        rows += [[0.5, 0.45, 0.05]] * (undecided // 2) + [[0.45, 0.5, 0.05]] * (undecided // 2)
        mass = np.column_stack([np.zeros(len(rows)), rows])
        return CredalPartition(mass, FocalSets.simple(3, omega=False))

    def test_two_that_overlap_leave_a_third_alone(self) -> None:
        p = self.partition()
        level = p.level()
        assert isinstance(level, Level) and level.pairs[0, 1] > level.pairs[0, 2]
        assert p.decide().sure[80:160].all()
        assert p.decide(0.95).sure[80:160].sum() == 0, "with the level of the pair for all"

    def test_a_cluster_that_cannot_be_told_from_another_has_no_sure_members(self) -> None:
        p = self.partition(undecided=54)
        level = p.level()
        assert isinstance(level, Level) and (level.pairs[0, 1:] == 1).all()
        assert p.decide().sure.nonzero()[0].tolist() == list(range(80, 160))

    def test_where_nearly_half_are_undecided_none_is_sure(self) -> None:
        assert self.partition(undecided=120).level() == 1.0

    def test_summary_and_parts_take_it(self) -> None:
        p = self.partition()
        assert p.summary().n_sure == p.summary(level=p.level()).n_sure == p.decide().sure.sum()
        assert "by pair of clusters" in str(p.summary())
        part = p[100:].decide(p.level())
        np.testing.assert_array_equal(part.codes, p.decide().codes[100:])

    def test_it_travels(self) -> None:
        level = self.partition().level()
        again = pickle.loads(pickle.dumps(level))
        assert again == level and (again.pairs == level.pairs).all()
        told = json.loads(json.dumps({"level": level, "levels": level.pairs.tolist()}))
        assert (level_told(told).pairs == level.pairs).all()
        assert level_told({"level": 0.7}) == 0.7 and level_told({}) is None


class TestLaws:
    @given(partitions(), levels)
    def test_every_object_is_one_of_three(self, p: CredalPartition, level: float) -> None:
        d = p.decide(level)
        one_of = d.sure.astype(int) + d.between + d.outlier
        assert (one_of == 1).all()
        np.testing.assert_array_equal(d.outlier, p.outliers())
        many = d.open.sum(axis=1)
        assert (many[d.sure] == 1).all()
        assert (many[d.between] > 1).all()
        assert (many[d.outlier] == 0).all()
        s = p.summary(level=level)
        counted = [s.n_sure, s.n_between, s.n_outliers]
        assert counted == np.bincount(d.codes, minlength=3).tolist()

    @given(partitions(), levels, st.randoms(use_true_random=False))
    def test_renaming_clusters_renames_the_open_ones(self, p, level, random) -> None:
        order = list(range(p.n_clusters))
        random.shuffle(order)
        one, two = p.decide(level), p.relabel(order).decide(level)
        np.testing.assert_array_equal(one.codes, two.codes)
        np.testing.assert_array_equal(one.open[:, order], two.open)
        np.testing.assert_array_equal(one.margin, two.margin)
        assert p.relabel(order).level() == p.level()

    @given(partitions(), levels, levels)
    def test_raising_the_level_makes_no_object_sure(self, p, one, two) -> None:
        low, high = (p.decide(q) for q in sorted((one, two)))
        assert not (high.sure & ~low.sure).any()
        if max(one, two) < 1:
            assert not (low.open & ~high.open).any()

    @given(st.integers(1, 5), st.floats(0.5, 1.0, exclude_max=True))
    def test_certain_masses_are_sure_and_vacuous_ones_open_to_all(self, c, level) -> None:
        certain = CredalPartition.from_labels(np.arange(c)).decide(level)
        assert certain.sure.all()
        np.testing.assert_array_equal(certain.open, np.eye(c, dtype=bool))
        if c > 1:
            vacuous = np.zeros((1, c + 2))
            vacuous[0, -1] = 1
            unknown = CredalPartition(vacuous, FocalSets.simple(c)).decide(level)
            assert unknown.between.all()
            assert unknown.open.all()

    @given(partitions(), st.integers(1, 3))
    def test_lazy_masses_decide_alike(self, p: CredalPartition, rows: int) -> None:
        eager = p.decide()
        lazy = CredalPartition(da.from_array(p.mass, chunks=(rows, -1)), p.focal_sets).decide()
        assert isinstance(lazy.codes, da.Array)
        assert "not computed" in repr(lazy)
        assert lazy.level == eager.level
        for name in ("codes", "open", "margin", "sure"):
            np.testing.assert_array_equal(np.asarray(getattr(lazy, name)), getattr(eager, name))

    def test_stored_masses_decide_alike(self, tmp_path) -> None:
        mass = np.random.default_rng(0).dirichlet(np.full(5, 0.3), 700)
        p = CredalPartition(mass, FocalSets.simple(3))
        stored = zarr.create_array(
            str(tmp_path / "m"), shape=mass.shape, chunks=(99, 5), dtype=float
        )
        stored[:] = mass
        one, two = p.decide(), CredalPartition(stored, p.focal_sets).decide()
        assert one.level == two.level
        np.testing.assert_array_equal(one.codes, two.codes)
        np.testing.assert_array_equal(one.open, two.open)

    @given(partitions(), st.floats(0.5, 1.0, exclude_max=True))
    def test_the_empty_set_decides_outliers_only(self, p: CredalPartition, level: float) -> None:
        kept = p.mass[:, 0] < 1
        normal = p.mass[kept].copy()
        normal[:, 0] = 0
        normal /= normal.sum(axis=1, keepdims=True)
        here, there = p[kept].decide(level), CredalPartition(normal, p.focal_sets).decide(level)
        judged = ~here.outlier
        # Dividing rounds: an object may lie on the edge of the level.
        shares = np.sort(p[kept].pignistic, axis=1)
        second = shares[:, -2] if p.n_clusters > 1 else np.zeros(len(shares))
        clear = np.abs(second / (second + shares[:, -1]).clip(1e-9) - (1 - level)) > 1e-9
        np.testing.assert_array_equal(here.codes[judged & clear], there.codes[judged & clear])


class TestCalibrate:
    @staticmethod
    def blurred(n: int = 4000) -> tuple[CredalPartition, np.ndarray]:
        """Probabilities that are right: class 1 has the probability that the membership says."""
        rng = np.random.default_rng(0)
        p = rng.random(n)
        return CredalPartition.from_fuzzy(np.column_stack([1 - p, p])), (rng.random(n) < p) * 1

    def test_the_level_is_chosen_on_one_half_and_its_risk_measured_on_the_other(self) -> None:
        p, y = self.blurred()
        known = np.where(np.arange(4000) < 600, y, -1)
        found = p.calibrate(known, risk=0.05)
        d = p.decide(found.level)
        error = wrong(p.labels(), y, 2)
        first = first_part(600, 0)
        assert (found.n_chosen, found.n_known) == (first.sum(), 600 - first.sum()) == (300, 300)
        assert error[:600][d.sure[:600] & first].mean() <= 0.05
        assert error[:600][d.sure[:600] & ~first].mean() == found.risk < found.bound
        assert found.n_sure == (d.sure[:600] & ~first).sum()
        assert error[d.sure].mean() < found.bound
        assert "95 % confidence" in str(found)

    def test_labels_may_be_a_mapping_of_any_classes(self) -> None:
        p, y = self.blurred()
        names = {i: "ab"[y[i]] for i in range(300)}
        assert p.calibrate(names) == p.calibrate(np.where(np.arange(4000) < 300, y, -1))

    def test_another_partition_stands_for_the_classes(self) -> None:
        p, _ = self.blurred()
        found = p.calibrate(p, risk=0.05)
        assert 0.88 < found.level < 0.92  # 1 - p < 2 * .05 has mean error .05
        with pytest.raises(ValueError, match="same 4000 objects, it has 10"):
            p.calibrate(p[:10])

    def test_no_level_may_do(self) -> None:
        assert pick_level(np.array([0.1, 0.2]), np.array([1.0, 1.0]), 0.02) == 1.0
        p = CredalPartition.from_fuzzy([[0.9, 0.1], [0.8, 0.2]] * 20)
        found = p.calibrate(np.arange(40) % 4 // 2, risk=0.02)  # classes that are no clusters
        assert (found.level, found.n_sure, found.bound) == (1.0, 0, 1.0)
        assert "none of 20 others is sure" in str(found)

    @given(st.lists(st.tuples(st.floats(0, 0.5), st.booleans()), min_size=1), st.floats(0, 0.9))
    def test_the_level_parts_the_known_objects_as_it_says(self, rows, risk) -> None:
        r, e = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
        sure = r.round(3) < 1.0 - pick_level(r.round(3), e, risk)
        assert not sure.any() or e[sure].mean() <= risk + 1e-12

    @given(
        st.lists(st.tuples(st.floats(0, 0.5), st.floats(0, 1)), min_size=1, max_size=60),
        st.floats(0, 0.9),
        st.booleans(),
        st.integers(0, 5),
    )
    def test_a_level_with_confidence_has_the_bound_that_was_asked_for(
        self, rows, risk, whole, seed
    ) -> None:
        r, e = (np.array(part, dtype=float) for part in zip(*rows, strict=True))
        e = e.round() if whole else e
        found = certified(r, e, first_part(len(r), seed), risk, 0.9)
        assert found.bound == (risk if found.level < 1.0 else 1.0)
        assert found.n_sure == 0 or found.risk <= risk

    def test_the_bound_is_that_of_clopper_and_pearson(self) -> None:
        assert upper_bound(0, 100, 0.95, True) == pytest.approx(1 - 0.05 ** (1 / 100))
        assert binom.cdf(3, 50, upper_bound(3, 50, 0.9, True)) == pytest.approx(0.1)
        assert upper_bound(3, 50, 0.9, True) < upper_bound(3, 50, 0.9, False) < 0.2
        assert upper_bound(5, 5, 0.95, True) == 1.0

    @pytest.mark.parametrize("apart", [2.0, 4.0])
    def test_its_promises_hold(self, apart: float) -> None:
        """Of 400 draws of labels, bounds and risks are broken in at most 5 % + 3 standard errors.

        The clusters are halves of the line between two Gaussians, the error of a sure object is
        known; few labels and a partition that is too sure of itself make it hard.
        """
        rng = np.random.default_rng(0)
        y = rng.integers(0, 2, 20_000)
        x = rng.normal(size=20_000) + apart * (y - 0.5)
        bet = 1 / (1 + np.exp(-3 * apart * x))
        p = CredalPartition.from_fuzzy(np.column_stack([1 - bet, bet]))
        r, error = np.minimum(bet, 1 - bet), (bet > 0.5) != y
        broken = np.zeros(2)
        for seed in range(400):
            rows = rng.choice(20_000, 120, replace=False)
            known = dict(zip(rows.tolist(), y[rows].tolist(), strict=True))
            for j, confidence in enumerate((None, 0.95)):
                found = p.calibrate(known, 0.1, confidence=confidence, random_state=seed)
                if found.level < 1.0:
                    broken[j] += error[r < 1 - found.level].mean() > found.bound
        assert (broken / 400 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)).all(), broken

    @pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
    def test_a_confidence_that_means_nothing_is_refused(self, confidence: float) -> None:
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1, such"):
            CredalPartition.from_labels([0, 1]).calibrate([0, 1], confidence=confidence)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ({}, "name no object"),
            ({7: 0}, r"objects 0..2, got 7..7"),
            ([1, 2], "one label for each"),
        ],
    )
    def test_labels_that_cannot_be_used_are_refused(self, labels, message) -> None:
        with pytest.raises(ValueError, match=message):
            CredalPartition.from_labels([0, 1, 1]).calibrate(labels)


class TestExplain:
    @staticmethod
    def flowers() -> tuple[CredalPartition, pd.DataFrame]:
        rng = np.random.default_rng(0)
        X = np.concatenate([rng.normal(0, 1, (50, 3)), rng.normal(9, 1, (50, 3)), [[4.5] * 3]])
        X[7, 2] = 40.0
        mass = np.zeros((101, 4))
        mass[:50, 1] = mass[50:100, 2] = 1
        mass[7] = [0.7, 0.2, 0.1, 0.0]
        mass[100] = [0.0, 0.4, 0.4, 0.2]
        return CredalPartition(mass, FocalSets.simple(2)), pd.DataFrame(X, columns=list("abc"))

    def test_an_outlier_is_told_by_its_strange_attribute(self) -> None:
        p, X = self.flowers()
        why = p.explain(7, X)
        assert why.decision == "outlier"
        assert why.attributes[0].name == "c"
        assert why.attributes[0].z > 20
        assert len(why.neighbours) == 5
        assert all(row < 50 and row != 7 for row, _ in why.neighbours)
        assert "an outlier: mass 0.70 on the empty set" in str(why)
        assert "c: 40" in str(why)

    def test_attributes_are_told_in_their_own_units_with_what_is_typical(self) -> None:
        p, X = self.flowers()
        table = X.assign(c=100 * X["c"], place=np.where(np.arange(101) < 50, "bog", "wood"))
        table.loc[7, "place"] = "wood"
        why = p.explain(7, table)
        told = {one.name: one for one in why.attributes}
        assert told["place"].value == "wood"
        assert told["place"].share == 0.0
        assert "place: wood, as of 0 % of them; typically bog, strange" in str(why)
        assert told["c"].z > 20
        low, high = (float(text) for text in (told["c"].low, told["c"].high))
        assert -300 < low < 0 < high < 300
        assert "c: 4000, typically " in str(why)
        assert len(why.neighbours) == 5

    def test_an_object_between_names_both_clusters(self) -> None:
        p, _ = self.flowers()
        why = p.explain(100)
        assert [e.cluster for e in why.clusters if e.is_open] == [0, 1]
        assert why.clusters[0].sets == (("{0}", 0.4), ("Ω", 0.2))
        assert "between clusters {0} and {1}" in repr(why)
        assert p.explain(-1).row == 100

    def test_decisions_that_are_known_are_not_made_again(self, monkeypatch) -> None:
        p, X = self.flowers()
        answer = p.decide(0.8)
        wanted = [p.explain(i, X, level=0.8) for i in (3, 7, 100)]
        monkeypatch.setattr(CredalPartition, "decide", None)
        assert [p.explain(i, X, level=answer) for i in (3, 7, 100)] == wanted

    def test_lazy_masses_and_attributes_explain_alike(self) -> None:
        p, X = self.flowers()
        lazy = CredalPartition(da.from_array(p.mass, chunks=(30, -1)), p.focal_sets)
        table = da.from_array(X.to_numpy(), chunks=(40, -1))
        assert lazy.explain(3, table) == p.explain(3, X.to_numpy())

    def test_without_sure_members_the_likeliest_ones_serve(self) -> None:
        p, X = self.flowers()
        why = p.explain(3, X, level=1.0)
        assert "no sure members" in str(why)
        assert "against the likeliest members of {0}" in str(why)
        assert why.neighbours

    def test_refused(self) -> None:
        p, X = self.flowers()
        with pytest.raises(IndexError, match=r"objects 0..100, got 101"):
            p.explain(101)
        with pytest.raises(ValueError, match="one row for each of the 101 objects"):
            p.explain(0, X[:5])
