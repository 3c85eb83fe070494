"""Orders of commitment and specialisation."""

from __future__ import annotations

import numpy as np
import pytest
from belief.belief_strategies import evidence
from belief.slow_belief import (
    conjunctive_weight,
    dicts,
    disjunctive_weight,
    drawn,
    frames,
    interior,
    pl,
    q,
    subsets,
)
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets

ORDERS = ("pl", "q", "s", "w", "v")


def compared(focal, seed):
    """Unrelated masses, and pairs where one is made from the other by each kind of evidence."""
    x, y = interior(focal, 2, seed=seed)
    more, _ = ev.conjunctive([x, y], focal)
    less, _ = ev.disjunctive([x, y], focal)
    return np.concatenate([x, more, x]), np.concatenate([y, x, less])


@pytest.mark.parametrize("c", range(2, 6))
def test_pl_q_w_and_v_compare_all_sets(c):
    full = FocalSets.full(c)
    x, y = compared(full, seed=c)
    omega = frozenset(range(c))
    everything = subsets(omega)
    below = 1 + 1e-9
    slow = {
        "pl": lambda a, b: all(pl(a, A) <= pl(b, A) + 1e-12 for A in everything),
        "q": lambda a, b: all(q(a, A) <= q(b, A) + 1e-12 for A in everything),
        "w": lambda a, b: all(
            conjunctive_weight(a, A, omega) <= conjunctive_weight(b, A, omega) * below
            for A in everything
            if A != omega
        ),
        "v": lambda a, b: all(
            disjunctive_weight(b, A) <= disjunctive_weight(a, A) * below for A in everything if A
        ),
    }
    for order, holds in slow.items():
        expected = [holds(a, b) for a, b in zip(dicts(x, full), dicts(y, full), strict=True)]
        got = ev.is_more_committed(x, y, full, order=order)
        assert got.tolist() == expected, order


@given(evidence(2), st.floats(0.05, 0.9))
def test_evidence_commits_and_discounting_undoes(drawn, rate):
    focal, x, y = drawn
    full = FocalSets.full(focal.n_clusters)
    x, y = (ev.on_family(m, focal, full) for m in (x, y))
    spread = np.zeros(len(full))
    spread[[0, -1]] = 0.5
    x, y = 0.75 * x + 0.25 * spread, 0.75 * y + 0.25 * spread
    more, _ = ev.conjunctive([x, y], full)
    less, _ = ev.disjunctive([x, y], full)
    for order in ("pl", "q", "s"):
        assert ev.is_more_committed(more, x, full, order=order).all()
        assert ev.is_more_committed(x, less, full, order=order).all()
        assert ev.is_more_committed(x, ev.discount(x, full, rate), full, order=order).all()
        assert ev.is_more_committed(x, x, full, order=order).all()


@given(evidence(2))
def test_some_orders_imply_others(drawn):
    """w and v imply s, s implies pl and q; Denoeux (2008)."""
    focal, x, y = drawn
    full = FocalSets.full(focal.n_clusters)
    spread = np.zeros(len(full))
    spread[[0, -1]] = 0.5
    x, y = (0.75 * ev.on_family(m, focal, full) + 0.25 * spread for m in (x, y))
    for a, b in ((x, y), (ev.cautious([x, y], full)[0], y), (y, ev.bold([x, y], full)[0])):
        holds = {order: ev.is_more_committed(a, b, full, order=order) for order in ORDERS}
        for one, other in (("w", "s"), ("v", "s"), ("s", "pl"), ("s", "q")):
            assert (holds[other] | ~holds[one]).all(), (one, other)


class TestSpecialisation:
    @given(evidence(2))
    def test_the_matrix_moves_masses_to_subsets(self, drawn):
        focal, x, y = drawn
        x, family = ev.conjunctive([x, y], focal)
        y = ev.on_family(y, focal, family)
        S = ev.specialisation(x, y, family)
        np.testing.assert_allclose(np.einsum("nab,nb->na", S, y), x, rtol=0, atol=1e-8)
        np.testing.assert_allclose(S.sum(axis=1), 1.0, **ROUNDING)
        inside = np.array([[set(A) <= set(B) for B in family.sets] for A in family.sets])
        assert (S[:, ~inside] == 0).all()
        assert (S >= 0).all()

    @given(evidence(2))
    def test_there_is_one_just_where_every_downward_closed_family_has_enough(self, drawn):
        """Hall's condition: sets that m1 needs mass for can get it from sets above them."""
        focal, x, y = drawn
        if len(focal) > 8:
            return
        found = ev.is_more_committed(x, y, focal, order="s")
        columns = range(len(focal))
        for row, holds in enumerate(found):
            enough = all(
                sum(x[row, list(chosen)])
                <= sum(
                    y[row, b]
                    for b in columns
                    if any(set(focal.sets[a]) <= set(focal.sets[b]) for a in chosen)
                )
                + 1e-9
                for chosen in subsets(columns)
            )
            assert holds == enough

    def test_none(self):
        focal = FocalSets.full(2)
        S = ev.specialisation([0, 0, 0, 1.0], [0, 0.5, 0, 0.5], focal)
        assert np.isnan(S).all()
        assert S.shape == (4, 4)

    def test_mass_already_moved_may_have_to_move_again(self):
        """{0,1} can serve {0} or {1}, {0,2} only {0}: taking {0} from {0,1} first is wrong."""
        focal = FocalSets.of([[0], [1], [0, 1], [0, 2]], 3)
        x, y = np.array([0, 0.5, 0.5, 0, 0]), np.array([0, 0, 0, 0.5, 0.5])
        S = ev.specialisation(x, y, focal)
        np.testing.assert_allclose(S @ y, x, **ROUNDING)
        assert S[focal.index([0]), focal.index([0, 2])] == 1.0


@frames
def test_the_dempsterian_matrix_is_conditioning_and_combines(focal):
    x, y = drawn(focal, 2)
    S = ev.dempsterian_matrix(x, focal)
    np.testing.assert_allclose(
        np.einsum("nab,nb->na", S, y), ev.conjunctive([x, y], focal)[0], **ROUNDING
    )
    for q_, members in enumerate(focal.sets):
        mass, family = ev.condition(x, focal, members)
        np.testing.assert_allclose(S[:, :, q_], mass[:, : len(focal)], **ROUNDING)
        assert family == focal
    np.testing.assert_allclose(ev.dempsterian_matrix(x[0], focal), S[0], **ROUNDING)


def test_what_is_refused():
    with pytest.raises(ValueError, match="got 'bel'"):
        ev.is_more_committed(np.eye(4)[1], np.eye(4)[2], FocalSets.full(2), order="bel")
    with pytest.raises(ValueError, match=r"got \{0,1\} and \{1,2\} without theirs"):
        ev.dempsterian_matrix([0.0, 0.5, 0.5], FocalSets.of([[0, 1], [1, 2]], 3))
