"""Every function of masses refuses what cannot be one, and says in which row it is."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

from evdist import belief as ev
from evdist.belief import FocalSets, ProductFrame
from evdist.belief.arrays import SLACK, by_blocks

FOCAL = FocalSets.full(2)
#: Further arguments of the functions that need some.
MORE = {
    "average": (FOCAL,),
    "best_act": (FOCAL, np.eye(2)),
    "coarsen": (FOCAL, [[0], [1]]),
    "condition": (FOCAL, [0]),
    "contextual_discount": (FOCAL, [0.1, 0.1]),
    "contextual_reinforce": (FOCAL, [0.1], [[0]]),
    "decondition": (FOCAL, [0, 1]),
    "dediscount": (FOCAL, 0.0),
    "discount": (FOCAL, 0.1),
    "expected_loss": (FOCAL, np.eye(2)),
    "geometric_condition": (FOCAL, [0]),
    "interval_dominance": (FOCAL, np.eye(2)),
    "marginalise": (FOCAL, ProductFrame((2,)), [0]),
    "maximality": (FOCAL, np.eye(2)),
    "on_family": (FOCAL, FocalSets.full(2)),
    "refine": (FOCAL, [[0], [1]]),
    "vacuous_extension": (FOCAL, ProductFrame((2,)), [0]),
}
SEVERAL = {"average", "bold", "cautious", "conjunctive", "dempster", "disjunctive"}
SEVERAL |= {"dubois_prade", "exclusive", "pcr6", "yager"}
TWO = {"bhattacharyya", "belief_interval_distance", "conflict", "inclusion_conflict"}
TWO |= {"is_more_committed", "jousselme", "minkowski", "pcr5", "pignistic_distance"}
TWO |= {"specialisation"}
#: Of no masses: their own tests say what they refuse.
OTHER = {"FocalSets", "ProductFrame", "generalised_bayes", "mutual_neighbour_pairs"}
OTHER |= {"random_masses"}
ONE = sorted(set(ev.__all__) - SEVERAL - TWO - OTHER)
#: Inside of all of them: also m(empty) and m(Omega) above 0.
GOOD = np.full((3, 4), 0.25)


def call(name, m):
    function = getattr(ev, name)
    if name in SEVERAL:
        return function([GOOD, m], FOCAL)
    if name in TWO:
        return function(GOOD, m, FOCAL)
    return function(m, *MORE.get(name, (FOCAL,)))


@pytest.mark.parametrize("name", sorted({*SEVERAL, *TWO, *ONE}))
class TestMasses:
    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (-0.5, r"Got -0.5 for \{0\} \(column 1\) in row 2; \w+ are at least 0"),
            (np.nan, r"Got nan for \{0\} \(column 1\) in row 2; replace or drop that row"),
            (np.inf, r"Got inf for \{0\} \(column 1\) in row 2; replace or drop that row"),
        ],
    )
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_negative_and_not_finite_ones_are_refused(self, name, dtype, value, message):
        m = GOOD.astype(dtype)
        m[2, 1] = value
        with pytest.raises(ValueError, match=message):
            call(name, m)

    def test_a_single_one_is_refused_likewise(self, name):
        with pytest.raises(ValueError, match=r"Got nan for Ω \(column 3\); replace or drop"):
            call(name, [0.25, 0.25, 0.25, np.nan])

    def test_another_number_of_columns_is_refused(self, name):
        with pytest.raises(ValueError, match=r"must have shape \(n, 4\) or \(4,\)"):
            call(name, np.full((3, 5), 0.2))

    def test_what_rounding_leaves_below_zero_passes(self, name):
        m = GOOD.copy()
        m[2, 1] = -1e-17
        m[2, 3] = 0.5
        if not re.fullmatch("mass_from_.*_weights", name):  # weights must be above 0
            call(name, m)

    def test_arguments_are_not_written_to(self, name):
        m = GOOD.copy()
        m.setflags(write=False)
        call(name, m)


def test_every_public_function_is_here():
    functions = {name for name in ev.__all__ if inspect.isfunction(getattr(ev, name))}
    assert {*SEVERAL, *TWO, *ONE} == functions - OTHER


def test_rows_need_not_sum_to_one():
    assert ev.contour([0.0, 1.0, 1.0, 2.0], FOCAL).tolist() == [3.0, 3.0]


def test_the_slack_is_that_of_the_precision():
    m = np.array([0.0, -1e-7, 1, 0])
    with pytest.raises(ValueError, match="Got -1e-07"):
        ev.contour(m, FOCAL)
    assert SLACK["float32"] > 1e-7
    ev.contour(m.astype(np.float32), FOCAL)


@pytest.mark.parametrize("rows", [0, 1, 5, 23])
def test_blocks_of_rows_are_put_together(rows, monkeypatch):
    monkeypatch.setattr("evdist.belief.arrays.BLOCK", 12)
    m = np.random.default_rng(0).random((rows, 4))
    seen = []

    def kernel(x, y):
        seen.append(len(x))
        return x * y

    np.testing.assert_array_equal(by_blocks(kernel, m, m[:1] if rows else m), m * m[:1])
    assert max(seen) <= 3
    assert by_blocks(lambda x: x.sum(axis=1), np.ones(4)) == 4
