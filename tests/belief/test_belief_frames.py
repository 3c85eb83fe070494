"""Refinement, coarsening, products of frames, and masses on another family."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from belief.belief_strategies import evidence
from belief.slow_belief import assert_masses, dicts, drawn, frames, moved
from hypothesis import given
from hypothesis import strategies as st
from tolerances import ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets, ProductFrame


def groups_of(c, random):
    """Fine clusters 0.. in random groups, one to three for each coarse cluster."""
    sizes = [random.randint(1, 3) for _ in range(c)]
    numbers = list(range(sum(sizes)))
    random.shuffle(numbers)
    return [[numbers.pop() for _ in range(size)] for size in sizes]


@frames
def test_refining_takes_each_set_to_what_it_is_made_of(focal):
    (m,) = drawn(focal)
    groups = [[2 * k, 2 * k + 1] for k in range(focal.n_clusters)]
    mass, fine = ev.refine(m, focal, groups)
    assert fine.n_clusters == 2 * focal.n_clusters
    for got, row in zip(dicts(mass, fine), dicts(m, focal), strict=True):
        assert_masses(got, moved(row, lambda A: frozenset(x for k in A for x in groups[k])))


@frames
def test_coarsening_takes_each_set_to_what_it_meets_or_holds(focal):
    (m,) = drawn(focal)
    groups = [[0, focal.n_clusters - 1], list(range(1, focal.n_clusters - 1))]
    groups = [g for g in groups if g]
    ways = {
        "outer": lambda A: frozenset(k for k, g in enumerate(groups) if A & set(g)),
        "inner": lambda A: frozenset(k for k, g in enumerate(groups) if A >= set(g)),
    }
    for reduction, way in ways.items():
        mass, coarse = ev.coarsen(m, focal, groups, reduction=reduction)
        for got, row in zip(dicts(mass, coarse), dicts(m, focal), strict=True):
            assert_masses(got, moved(row, way))


@given(evidence(), st.randoms())
def test_coarsening_undoes_refining(drawn, random):
    focal, m = drawn
    groups = groups_of(focal.n_clusters, random)
    mass, fine = ev.refine(m, focal, groups)
    for reduction in ("outer", "inner"):
        back, coarse = ev.coarsen(mass, fine, groups, reduction=reduction)
        columns = [coarse.index(s) for s in focal.sets]
        np.testing.assert_allclose(back[:, columns], m, **ROUNDING)


@given(evidence(), st.randoms())
def test_coarsening_keeps_beliefs_and_plausibilities_of_unions_of_groups(drawn, random):
    focal, m = drawn
    order = list(range(focal.n_clusters))
    random.shuffle(order)
    cut = random.randint(1, focal.n_clusters)
    groups = [g for g in (order[:cut], order[cut:]) if g]
    mass, coarse = ev.coarsen(m, focal, groups)
    held, smaller = ev.coarsen(m, focal, groups, reduction="inner")
    for k, group in enumerate(groups):
        for function in (ev.belief, ev.plausibility):
            np.testing.assert_allclose(
                function(mass, coarse, [[k]]), function(m, focal, [group]), **ROUNDING
            )
        # The inner reduction: what surely holds a whole group is its commonality.
        kept = [q for q, s in enumerate(smaller.sets) if k in s]
        whole = [q for q, s in enumerate(focal.sets) if set(group) <= set(s)]
        np.testing.assert_allclose(held[:, kept].sum(axis=1), m[:, whole].sum(axis=1), **ROUNDING)


@given(evidence(2), st.randoms())
def test_combining_before_or_after_refining(drawn, random):
    focal, x, y = drawn
    groups = groups_of(focal.n_clusters, random)
    early, family = ev.conjunctive([x, y], focal)
    early, last = ev.refine(early, family, groups)
    (fine_x, fine), (fine_y, _) = (ev.refine(m, focal, groups) for m in (x, y))
    late, other = ev.conjunctive([fine_x, fine_y], fine)
    for one, two in zip(dicts(early, last), dicts(late, other), strict=True):
        assert_masses(one, two)


def test_a_power_set_stays_a_power_set():
    _, coarse = ev.coarsen(np.eye(16), FocalSets.full(4), [[0, 3], [1], [2]])
    assert coarse == FocalSets.full(3)


class TestProducts:
    frame = ProductFrame((2, 3, 2))

    def test_numbers_and_answers(self):
        assert self.frame.n_clusters == 12
        for number, answers in enumerate(product(range(2), range(3), range(2))):
            assert self.frame.number(answers) == number
            assert self.frame.answers(number) == answers

    def test_vacuous_extension_is_the_cylinder(self):
        focal = FocalSets.full(3)
        (m,) = drawn(focal)
        mass, wide = ev.vacuous_extension(m, focal, self.frame, [1])
        everyone = list(product(range(2), range(3), range(2)))

        def cylinder(A):
            return frozenset(self.frame.number(a) for a in everyone if a[1] in A)

        for got, row in zip(dicts(mass, wide), dicts(m, focal), strict=True):
            assert_masses(got, moved(row, cylinder))

    def test_a_marginal_is_the_projection(self):
        rng = np.random.default_rng(0)
        sets = [rng.choice(12, rng.integers(1, 6), replace=False) for _ in range(8)]
        focal = FocalSets.of({tuple(sorted(map(int, s))) for s in sets}, 12)
        m = rng.dirichlet(np.ones(len(focal)), 3)
        mass, small = ev.marginalise(m, focal, self.frame, [2, 0])
        pairs = ProductFrame((2, 2))

        def projected(A):
            answers = [self.frame.answers(x) for x in A]
            return frozenset(pairs.number((a[2], a[0])) for a in answers)

        for got, row in zip(dicts(mass, small), dicts(m, focal), strict=True):
            assert_masses(got, moved(row, projected))

    @pytest.mark.parametrize("variables", [[0], [2], [1, 0], [0, 1, 2]])
    def test_the_marginal_of_an_extension_is_what_was_extended(self, variables):
        c = int(np.prod([self.frame.sizes[v] for v in variables]))
        focal = FocalSets.pairs(c)
        (m,) = drawn(focal)
        wide = ev.vacuous_extension(m, focal, self.frame, variables)
        back, small = ev.marginalise(*wide, self.frame, variables)
        for got, row in zip(dicts(back, small), dicts(m, focal), strict=True):
            assert_masses(got, row)

    def test_independent_variables_combined_have_their_own_marginals(self):
        one, two = FocalSets.full(2), FocalSets.full(3)
        x, y = drawn(one, empty=False)[0], drawn(two, empty=False)[0]
        wide = [
            ev.vacuous_extension(x, one, self.frame, [0]),
            ev.vacuous_extension(y, two, self.frame, [1]),
        ]
        every = FocalSets.of({s for _, family in wide for s in family.sets}, 12)
        joint, family = ev.conjunctive([ev.on_family(*w, every) for w in wide], every)
        for m, focal, v in ((x, one, 0), (y, two, 1)):
            back, small = ev.marginalise(joint, family, self.frame, [v])
            for got, row in zip(dicts(back, small), dicts(m, focal), strict=True):
                assert_masses(got, row)

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda: ProductFrame(()), "at least one answer"),
            (lambda: ProductFrame((2, 0)), r"at least one answer, got sizes \(2, 0\)"),
            (lambda: ProductFrame((2, 3)).number((1, 3)), r"below \(2, 3\), got \(1, 3\)"),
            (lambda: ProductFrame((2, 3)).cylinders([0, 0]), r"0..1, got \[0, 0\]"),
            (lambda: ProductFrame((2, 3)).cylinders([2]), r"0..1, got \[2\]"),
        ],
    )
    def test_what_is_refused(self, call, message):
        with pytest.raises(ValueError, match=message):
            call()


class TestOtherFamilies:
    def test_masses_stay_with_their_sets(self):
        simple, full = FocalSets.simple(3), FocalSets.full(3)
        m = np.array([[0.1, 0.2, 0.3, 0.0, 0.4]])
        wide = ev.on_family(m, simple, full)
        assert wide.tolist() == [[0.1, 0.2, 0.3, 0, 0, 0, 0, 0.4]]
        np.testing.assert_array_equal(ev.on_power_set(m, simple)[0], wide)
        np.testing.assert_array_equal(ev.on_family(wide, full, simple), m)

    def test_mass_that_would_be_lost_is_refused(self):
        with pytest.raises(ValueError, match=r"\{0,1\} has mass and is no set of the other"):
            ev.on_family([0.0, 0, 0, 1, 0, 0, 0, 0], FocalSets.full(3), FocalSets.simple(3))
        with pytest.raises(ValueError, match="about the same clusters, got 2 and 3"):
            ev.on_family([0.0, 0, 0, 1], FocalSets.full(2), FocalSets.full(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, f: ev.refine(m, f, [[0]]), "2 sets of fine clusters, one per cluster, got 1"),
        (lambda m, f: ev.refine(m, f, [[0], [0, 1]]), "disjoint"),
        (lambda m, f: ev.refine(m, f, [[0], []]), "non-empty"),
        (lambda m, f: ev.coarsen(m, f, [[0, 1, 2]]), r"clusters 0\.\.1, got 0\.\.2"),
        (lambda m, f: ev.coarsen(m, f, [[0, 1]], reduction="top"), '"outer" or "inner"'),
    ],
)
def test_groups_that_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call([0.0, 1, 0, 0], FocalSets.full(2))
