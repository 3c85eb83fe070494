"""Conformal sets of a partition as it is: scores by hand, laws, promises, refusals."""

from __future__ import annotations

from itertools import pairwise

import dask.array as da
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tolerances import ROUNDING

from evdist import CredalPartition, FocalSets
from evdist.partition.conformal import scores, thresholds


def soft(n: int, c: int, seed: int, sharp: float = 2.0) -> np.ndarray:
    """Soft labels of every kind, some of them equal."""
    p = np.random.default_rng(seed).random((n, c)).round(2) ** sharp + 1e-3
    return p / p.sum(axis=1, keepdims=True)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    c, n = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    weights = draw(arrays(float, (n, c), elements=st.sampled_from([0.0, 1.0, 2.0, 5.0])))
    weights[weights.sum(axis=1) == 0] = 1.0
    return weights / weights.sum(axis=1, keepdims=True)


class TestScores:
    def test_by_hand(self) -> None:
        q = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
        np.testing.assert_allclose(scores(q, "aps"), [[0.8, 0, 0.5], [0, 0, 0.8]], **ROUNDING)
        np.testing.assert_allclose(scores(q, "lac"), 1 - q, **ROUNDING)
        halves = scores(q, "randomised-aps", np.array([0.5, 1.0]))
        np.testing.assert_allclose(halves, [[0.9, 0.25, 0.65], [0.4, 0.4, 1.0]], **ROUNDING)

    @given(tables())
    def test_are_the_probability_of_all_likelier_clusters(self, q: np.ndarray) -> None:
        slowly = (q[:, None, :] * (q[:, None, :] > q[:, :, None])).sum(axis=2)
        np.testing.assert_allclose(scores(q, "aps"), slowly, **ROUNDING)

    @given(tables(), st.sampled_from(["aps", "lac"]), st.integers(0, 99))
    def test_do_not_depend_on_names_and_order(self, q, score, seed) -> None:
        rng = np.random.default_rng(seed)
        rows, names = rng.permutation(len(q)), rng.permutation(q.shape[1])
        np.testing.assert_array_equal(
            scores(q[rows][:, names], score), scores(q, score)[rows][:, names]
        )


class TestThresholds:
    def test_one_drawn_label_gives_the_usual_quantile(self) -> None:
        """The ceil((1 - alpha)(m + 1))-th score of the labels, whatever the other scores are."""
        rng = np.random.default_rng(0)
        s, label = rng.random((19, 3)), rng.integers(0, 3, 19)
        own = np.sort(s[np.arange(19), label])
        for alpha, place in ((0.05, 19), (0.1, 18), (0.5, 10)):
            t = thresholds(s, np.eye(3)[label], alpha, np.ones(19), np.ones(1))
            assert t == own[place - 1]
        few = thresholds(s, np.eye(3)[label], 0.01, np.ones(19), np.ones(1))
        assert few == np.inf

    def test_weights_are_worth_as_many_objects(self) -> None:
        s, g = np.random.default_rng(1).random((30, 4)), soft(30, 4, 1)
        w = np.arange(30) % 3 + 1.0
        often = np.repeat(np.arange(30), w.astype(int))
        once = thresholds(s, g, 0.1, w, np.array([1.0, 5.0, 99.0]))
        ones = np.ones(len(often))
        assert once[0] == thresholds(s[often], g[often], 0.1, ones, np.ones(1))
        assert once[0] <= once[1] < once[2] == np.inf
        scaled = thresholds(s, g, 0.1, 8 * w, np.array([8.0, 40.0]))
        np.testing.assert_array_equal(scaled, once[:2])

    @given(tables(), st.floats(0.1, 0.9))
    def test_hold_the_probability_that_eq_1_asks_for(self, q: np.ndarray, alpha: float) -> None:
        s = scores(q, "lac")
        (t,) = thresholds(s, q, alpha, np.ones(len(q)), np.ones(1))
        held = (q * (s <= t)).sum()
        need = (1 - alpha) * (len(q) + 1)
        assert held >= need - 1e-9 or (t == np.inf and need > len(q) - 1e-9)
        assert (q * (s < t)).sum() < need + 1e-9  # and no smaller threshold does


class TestOfTheTable:
    P = CredalPartition.from_fuzzy(soft(400, 3, 0))

    @pytest.mark.parametrize("score", ["aps", "lac"])
    @pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
    def test_the_masses_are_held_on_average(self, alpha: float, score: str) -> None:
        found = self.P.conformal(alpha, score=score)
        held = (self.P.probability * found.members).sum(axis=1).mean()
        assert 1 - alpha <= held <= 1 - alpha + (0.05 if score == "aps" else 0.01)
        assert "Nothing is promised of new objects" in found.promise
        assert found.n_calibration == 400

    @pytest.mark.parametrize("score", ["aps", "lac"])
    def test_sets_grow_as_alpha_falls(self, score: str) -> None:
        sets = [self.P.conformal(a, score=score).members for a in (0.5, 0.2, 0.1, 0.02)]
        for small, large in pairwise(sets):
            assert (small <= large).all() and small.sum() < large.sum()

    def test_sets_have_the_likeliest_cluster(self) -> None:
        """With "aps" always, with "lac" where they are not empty; they hold no gap."""
        best = self.P.labels("pignistic")
        filled = self.P.conformal(0.3)
        assert filled.members[np.arange(400), best].all() and (filled.sizes >= 1).all()
        some = self.P.conformal(0.6, score="lac")
        kept = some.sizes > 0
        assert 0 < kept.sum() < 400 and some.members[np.arange(400), best][kept].all()
        p = self.P.probability
        for sets in (filled, some):
            least = np.where(sets.members, p, 2.0).min(axis=1)
            assert (np.where(sets.members, 0.0, p).max(axis=1) < least).all()

    @pytest.mark.parametrize("score", ["aps", "lac"])
    def test_order_and_names_do_not_matter(self, score: str) -> None:
        found = self.P.conformal(0.1, score=score).members
        rows = np.random.default_rng(0).permutation(400)
        np.testing.assert_array_equal(self.P[rows].conformal(0.1, score=score).members, found[rows])
        renamed = self.P.relabel([2, 0, 1]).conformal(0.1, score=score).members
        np.testing.assert_array_equal(renamed, found[:, [2, 0, 1]])

    def test_lazy_masses_give_lazy_sets(self) -> None:
        lazy = CredalPartition(da.from_array(self.P.mass, chunks=(70, -1)), self.P.focal_sets)
        here, there = self.P.conformal(), lazy.conformal()
        assert isinstance(there.members, da.Array) and there.threshold == here.threshold
        np.testing.assert_array_equal(there.members.compute(), here.members)
        assert there.summary() == here.summary()

    def test_many_objects_are_calibrated_by_some(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("evdist.partition.conformal.MOST", 150)
        found = self.P.conformal()
        assert found.n_calibration == 150 and len(found) == 400
        assert found.threshold == self.P.conformal().threshold
        assert found.threshold != self.P.conformal(random_state=1).threshold

    def test_sets_are_named_and_counted(self) -> None:
        p = CredalPartition.from_fuzzy([[0.9, 0.1, 0.0], [0.5, 0.5, 0.0], [0.4, 0.3, 0.3]] * 9)
        found = p.conformal(0.1, score="lac")
        assert found.open_names()[:3] == ["{0}", "{0,1}", "{0,1,2}"]
        assert found.counts().tolist() == [0, 9, 9, 9]
        assert found.summary().startswith(
            "27 sets at alpha = 0.1, calibrated on 27 objects: 9 of one cluster, 9 of two, 9 of "
            "three or more; 2.00 clusters on average.\n"
        )
        assert repr(found) == "ConformalSets(alpha=0.1, 27 objects)"
        assert p.conformal(0.5, score="lac").open_names()[1] == "{0,1}"

    def test_an_outlier_may_be_anywhere(self) -> None:
        mass = np.array([[0.0, 1.0, 0.0, 0.0]] * 30 + [[1.0, 0.0, 0.0, 0.0]])
        found = CredalPartition(mass, FocalSets.simple(2)).conformal(0.1)
        assert found.open_names()[-1] == "{0,1}" and found.open_names()[0] == "{0}"


class TestOfClasses:
    """Known classes calibrate: the promise is about the classes, for any masses."""

    @staticmethod
    def table(n: int = 600) -> tuple[CredalPartition, np.ndarray]:
        """Masses that are too sure of themselves, and turned round for one class in three."""
        rng = np.random.default_rng(3)
        p = soft(n, 3, 3, 1.0)
        y = np.array([rng.choice(3, p=row) for row in p])
        bets = p**4
        return CredalPartition.from_fuzzy(bets / bets.sum(axis=1, keepdims=True)), y

    @pytest.mark.parametrize("alpha", [0.05, 0.1, 0.2])
    @pytest.mark.parametrize("score", ["aps", "lac"])
    def test_the_promise_holds_for_masses_that_are_wrong(self, score: str, alpha: float) -> None:
        """The mean over 150 draws of the known objects, less three standard errors."""
        P, y = self.table()
        held = []
        for seed in range(150):
            rows = np.random.default_rng(seed).choice(600, 120, replace=False)
            known = dict(zip(rows.tolist(), y[rows].tolist(), strict=True))
            found = P.conformal(alpha, labels=known, score=score, random_state=seed)
            right = np.array(found.classes) == y[:, None]
            rest = np.setdiff1d(np.arange(600), rows)
            held.append((found.members & right)[rest].any(axis=1).mean())
        error = np.std(held) / np.sqrt(len(held))
        assert np.mean(held) >= 1 - alpha - 3 * error
        own = P.conformal(alpha, score=score).members
        assert (own & (np.arange(3) == y[:, None])).any(axis=1).mean() < 1 - alpha - 0.05

    def test_classes_have_their_names(self) -> None:
        P, y = self.table()
        names = {i: "abc"[y[i]] for i in range(200)}
        found = P.conformal(labels=names)
        assert found.classes == ("a", "b", "c")
        assert found.n_calibration == 100
        backwards = dict(reversed(names.items()))
        np.testing.assert_array_equal(P.conformal(labels=backwards).members, found.members)
        again = P.relabel([1, 2, 0]).conformal(labels=names)
        assert again.classes == ("b", "c", "a")
        np.testing.assert_array_equal(again.members, found.members[:, [1, 2, 0]])

    def test_a_class_without_a_cluster_is_refused_unless_it_is_rare(self) -> None:
        P = CredalPartition.from_labels([0, 1] * 100)
        classes = np.where(np.arange(200) % 10 < 3, 7, np.arange(200) % 2)
        with pytest.raises(ValueError, match="belong to classes that no cluster is matched to"):
            P.conformal(0.1, labels=classes)
        assert P.conformal(0.5, labels=classes).classes == (0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.0}, "alpha, the share of sets that may miss, must lie between 0 and 1"),
        ({"alpha": 5}, "such as 0.1; got 5"),
        ({"alpha": 0.01}, "alpha=0.01 needs at least 99 objects to calibrate on, got 20"),
        ({"score": "randomised-aps"}, "score must be one of 'aps', 'lac', got 'randomised-aps'"),
        ({"labels": {0: "a", 1: "b"}}, "needs at least 9 objects to calibrate on, got 1"),
        ({"labels": {}}, "labels name no object"),
    ],
)
def test_what_cannot_be_promised_is_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CredalPartition.from_labels([0, 1] * 10).conformal(**options)
