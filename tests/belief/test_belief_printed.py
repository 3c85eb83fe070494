"""Numbers printed in articles about belief functions, beside those of the five sources.

The articles were not at hand again: data and numbers are quoted as they are known from them.
"""

from __future__ import annotations

import numpy as np
import pytest
from tolerances import PRINTED_3, PRINTED_4, ROUNDING

from evdist import belief as ev
from evdist.belief import FocalSets


def mass(n_clusters, **given):
    """A mass function from letters, such as ``ab=0.3``, and the family of these sets."""
    sets = {word: [ord(x) - ord("a") for x in word] for word in given}
    focal = FocalSets.of(sets.values(), n_clusters)
    m = np.zeros(len(focal))
    for word, members in sets.items():
        m[focal.index(members)] = given[word]
    return m, focal


class TestMurderOfMrJones:
    """Smets and Kennes (1994): the killer's sex was left to a coin; then Peter has an alibi."""

    focal = FocalSets.full(3)  # Peter, Paul, Mary
    coin = np.array([0, 0, 0, 0.5, 0.5, 0, 0, 0])

    def test_before_the_alibi_bets_are_a_quarter_a_quarter_a_half(self):
        np.testing.assert_allclose(ev.pignistic(self.coin, self.focal), [0.25, 0.25, 0.5])

    def test_the_alibi_moves_the_mass_of_peter_or_paul_to_paul(self):
        after, family = ev.condition(self.coin, self.focal, [1, 2])
        assert after[family.index([1])] == after[family.index([2])] == 0.5
        np.testing.assert_allclose(ev.pignistic(after, family), [0, 0.5, 0.5])


class TestPCR5:
    """Smarandache and Dezert (2005)."""

    def test_their_first_example(self):
        focal = FocalSets.full(2)
        m1, m2 = [0, 0.6, 0, 0.4], [0, 0, 0.3, 0.7]
        assert ev.conflict(m1, m2, focal) == pytest.approx(0.18)
        got, _ = ev.pcr5(m1, m2, focal)
        np.testing.assert_allclose(got, [0, 0.54, 0.18, 0.28], **ROUNDING)

    def test_zadehs_two_doctors(self):
        """Dempster is sure of what both hold unlikely; PCR5 leaves it at .028."""
        focal = FocalSets.of([[0], [1], [2]], 3)
        m1, m2 = [0, 0.9, 0, 0.1], [0, 0, 0.9, 0.1]
        np.testing.assert_allclose(ev.dempster([m1, m2], focal)[0], [0, 0, 0, 1], **ROUNDING)
        got, _ = ev.pcr6([m1, m2], focal)
        np.testing.assert_allclose(got, [0, 0.486, 0.486, 0.028], **PRINTED_3)


def test_canonical_decomposition_of_a_mass_function_that_is_not_separable():
    """Denoeux (2008): evidence of 2/5 and 2/7 for {a,b} and {b,c}, less 7/4 for {b}."""
    m, focal = mass(3, ab=0.3, bc=0.5, abc=0.2)
    w, family = ev.conjunctive_weights(m, focal)
    got = dict(zip(family.names, w, strict=True))
    assert got == pytest.approx({"∅": 1, "{0,1}": 2 / 5, "{1,2}": 2 / 7, "{1}": 7 / 4, "Ω": 1})


#: |A| from 1 on.
DENG = [2.6623, 3.9303, 4.9082, 5.7878, 6.6256, 7.4441, 8.2532]
DENG += [9.0578, 9.8600, 10.6612, 11.4617, 12.2620, 13.0622, 13.8622]
JOUSSELME = [0.7858, 0.6867, 0.5705, 0.4237, 0.1323, 0.3884, 0.5029, 0.5705, 0.6187]
JOUSSELME += [0.6554, 0.6844, 0.7082, 0.7281, 0.7451, 0.7599, 0.7730]


def growing(n_clusters, size, others):
    """Mass .8 on the first ``size`` clusters, .1 on all, .05 on each of two other sets."""
    sets = [*others, range(n_clusters), range(size)]
    focal = FocalSets.of({tuple(s) for s in sets} | {tuple(range(5))}, n_clusters)
    m = np.zeros(len(focal))
    for s, v in zip(sets, (0.05, 0.05, 0.1, 0.8), strict=True):
        m[focal.index(s)] += v
    return m, focal


@pytest.mark.parametrize(("size", "printed"), list(enumerate(DENG, start=1)))
def test_entropy_of_a_set_that_grows(size, printed):
    """Deng (2016), 15 elements: {6} and {3,4,5} have .05 each."""
    m, focal = growing(15, size, [[5], [2, 3, 4]])
    np.testing.assert_allclose(ev.deng_entropy(m, focal), printed, **PRINTED_4)


@pytest.mark.parametrize(("size", "printed"), list(enumerate(JOUSSELME, start=1)))
def test_distance_of_a_set_that_grows_from_the_first_five(size, printed):
    """Jousselme, Grenier and Bosse (2001), 20 elements: {2,3,4} and {7} have .05 each."""
    m, focal = growing(20, size, [[1, 2, 3], [6]])
    certain = np.zeros(len(focal))
    certain[focal.index(range(5))] = 1.0
    np.testing.assert_allclose(ev.jousselme(m, certain, focal), printed, **PRINTED_4)
