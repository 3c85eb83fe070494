"""Worked examples of the papers and slides, with the numbers printed there."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import as_sets
from tolerances import PRINTED_2, ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets


def mass(focal, letters, **given):
    """A mass function from sets written as words, such as ``TO=0.9``."""
    m = np.zeros(len(focal))
    for word, value in given.items():
        m[focal.index([letters.index(x) for x in word])] = value
    return m


def in_words(combined, letters):
    row, focal = combined
    return {"".join(sorted(letters[k] for k in s)): v for s, v in as_sets(row, focal).items() if v}


class TestNNEVCLUSExample1:
    """Three objects, three classes: conflict and the plausibility of a common class."""

    focal = FocalSets.full(3)
    m1 = mass(focal, "123", **{"1": 0.6, "12": 0.3, "123": 0.1})
    m2 = mass(focal, "123", **{"12": 0.5, "3": 0.2, "123": 0.3})
    m3 = mass(focal, "123", **{"1": 0.1, "2": 0.1, "3": 0.8})

    def test_degrees_of_conflict(self):
        assert ev.conflict(self.m1, self.m2, self.focal) == pytest.approx(0.18)
        assert ev.conflict(self.m1, self.m3, self.focal) == pytest.approx(0.78)

    def test_plausibility_of_the_same_class(self):
        kappa = ev.conflict(self.m1, np.stack([self.m2, self.m3]), self.focal)
        np.testing.assert_allclose(1 - kappa, [0.82, 0.22], **ROUNDING)


class TestNNEVCLUSTable1:
    """Evidential partition of the butterfly data, and what example 2 says of it."""

    focal = FocalSets.full(2)
    m = np.array(
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

    def objects(self, column):
        """Objects, numbered from 1, whose largest mass is in this column."""
        return (np.flatnonzero(self.m.argmax(axis=1) == column) + 1).tolist()

    def test_rows_are_mass_functions_up_to_printing(self):
        np.testing.assert_allclose(self.m.sum(axis=1), 1.0, rtol=0, atol=0.011)

    def test_lower_and_upper_approximations(self):
        both = self.objects(self.focal.omega)
        lower1, lower2 = (self.objects(column) for column in self.focal.singletons)
        assert lower1 == [7, 8, 9, 10, 11]
        assert lower2 == [1, 2, 3, 4, 5]
        assert sorted(lower1 + both) == [6, 7, 8, 9, 10, 11]
        assert sorted(lower2 + both) == [1, 2, 3, 4, 5, 6]

    def test_object_12_is_an_outlier(self):
        assert self.objects(0) == [12]
        np.testing.assert_allclose(ev.contour(self.m[11], self.focal), [0.03, 0], **ROUNDING)

    def test_object_6_is_the_most_unspecific_of_the_others(self):
        assert ev.nonspecificity(self.m[:11], self.focal).argmax() + 1 == 6


class TestRoadScene:
    """Grass, road, tree, obstacle, sky: a lidar and a camera."""

    letters = "GRTOS"
    focal = FocalSets.full(5)
    lidar = mass(focal, letters, TO=0.9, GRTOS=0.1)

    def test_belief_and_plausibility_of_the_lidar(self):
        asked = [[2, 3], [2], [0], range(5)]
        np.testing.assert_allclose(
            ev.belief(self.lidar, self.focal, asked), [0.9, 0, 0, 1], **ROUNDING
        )
        np.testing.assert_allclose(
            ev.plausibility(self.lidar, self.focal, asked), [1, 1, 0.1, 1], **ROUNDING
        )

    def test_an_unreliable_sensor_is_a_discounted_one(self):
        sure = mass(self.focal, self.letters, TO=1.0)
        np.testing.assert_allclose(ev.discount(sure, self.focal, 0.1), self.lidar, **ROUNDING)

    @pytest.mark.parametrize("rule", [ev.conjunctive, ev.dempster])
    def test_a_camera_that_agrees(self, rule):
        camera = mass(self.focal, self.letters, GT=0.8, GRTOS=0.2)
        got = in_words(rule([self.lidar, camera], self.focal), self.letters)
        assert got == pytest.approx({"T": 0.72, "OT": 0.18, "GT": 0.08, "GORST": 0.02})

    def test_a_camera_that_disagrees(self):
        camera = mass(self.focal, self.letters, GR=0.8, GRTOS=0.2)
        assert ev.conflict(self.lidar, camera, self.focal) == pytest.approx(0.72)
        got = in_words(ev.dempster([self.lidar, camera], self.focal), self.letters)
        assert got == pytest.approx({"OT": 9 / 14, "GR": 4 / 14, "GORST": 1 / 14})

    def test_the_two_of_them_by_the_other_rules(self):
        camera = mass(self.focal, self.letters, GR=0.8, GRTOS=0.2)
        sources = [self.lidar, camera]
        got = in_words(ev.dubois_prade(sources, self.focal), self.letters)
        assert got == pytest.approx({"GORT": 0.72, "OT": 0.18, "GR": 0.08, "GORST": 0.02})
        got = in_words(ev.disjunctive(sources, self.focal), self.letters)
        assert got == pytest.approx({"GORT": 0.72, "GORST": 0.28})
        got = in_words(ev.average(sources, self.focal), self.letters)
        assert got == pytest.approx({"OT": 0.45, "GR": 0.4, "GORST": 0.15})


@pytest.mark.parametrize("family", ["full", "only the sets named"])
def test_dempsters_table_with_conflict_04(family):
    sets = [[1], [0, 1], [0, 2], [0], [2]]
    focal = FocalSets.full(3) if family == "full" else FocalSets.of(sets, 3)
    m1 = mass(focal, "abc", b=0.5, ab=0.2, ac=0.3)
    m2 = mass(focal, "abc", a=0.1, ab=0.4, c=0.5)
    assert ev.conflict(m1, m2, focal) == pytest.approx(0.4)
    joint = in_words(ev.conjunctive([m1, m2], focal), "abc")
    assert joint == pytest.approx({"": 0.4, "a": 0.17, "b": 0.2, "ab": 0.08, "c": 0.15})
    got = in_words(ev.dempster([m1, m2], focal), "abc")
    assert got == pytest.approx(
        {"a": 0.17 / 0.6, "b": 0.2 / 0.6, "ab": 0.08 / 0.6, "c": 0.15 / 0.6}
    )


def test_special_cases_of_mass_functions():
    """Slides (2021): a Bayesian mass function is a probability, a logical one a set."""
    focal = FocalSets.full(5)
    bayesian = mass(focal, "GRTOS", T=0.5, O=0.5)
    for transform in (ev.contour, ev.singleton_belief, ev.pignistic):
        assert transform(bayesian, focal).tolist() == [0, 0, 0.5, 0.5, 0]
    met, _ = ev.dempster([mass(focal, "GRTOS", TO=1), mass(focal, "GRTOS", GT=1)], focal)
    assert as_sets(met, focal)[frozenset([2])] == 1.0


def test_relational_representation_of_three_objects():
    """Slides (2017): m12, m13 and m23 on {same, not same}."""
    focal = FocalSets.full(2)
    m = np.array([[0.3, 0.6, 0.1, 0.0], [0.0, 0.7, 0.1, 0.2], [0.0, 0.1, 0.6, 0.3]])
    left, right = m[[0, 0, 1]], m[[1, 2, 2]]
    empty = np.einsum("np,pq,nq->n", left, focal.B, right)
    same = np.einsum("np,pq,nq->n", left, focal.S, right)
    kappa = ev.conflict(left, right, focal)
    relation = np.stack([empty, same, kappa - empty, 1 - kappa - same], axis=1)
    expected = [[0.30, 0.43, 0.13, 0.14], [0.30, 0.12, 0.37, 0.21], [0.00, 0.13, 0.43, 0.44]]
    np.testing.assert_allclose(relation, expected, **ROUNDING)
    # Pl(not same) = m'E m, k-CEVCLUS eq. (15).
    apart = np.einsum("np,pq,nq->n", left, focal.E, right)
    np.testing.assert_allclose(apart, relation[:, 2] + relation[:, 3], **ROUNDING)


def test_credal_partition_of_the_slides():
    """Objects 3, 5, 6 and 12 of the butterfly: certain, doubtful, between clusters, outlier."""
    focal = FocalSets.full(2)
    m = np.array([[0, 1, 0, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1], [0.9, 0, 0.1, 0]])
    np.testing.assert_allclose(
        ev.contour(m, focal), [[1, 0], [1, 0.5], [1, 1], [0, 0.1]], **PRINTED_2
    )
    np.testing.assert_allclose(ev.nonspecificity(m, focal), [0, 0.5, 1, 0.9], **ROUNDING)
    np.testing.assert_allclose(
        ev.pignistic(m, focal, normalised=True), [[1, 0], [0.75, 0.25], [0.5, 0.5], [0, 1]]
    )
