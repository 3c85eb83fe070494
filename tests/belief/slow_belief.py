"""Belief functions on Python's sets, as textbooks write them: slow, and short enough to trust.

A mass function is {set of clusters: mass}; `cases` draws random ones for frames of 2 to 6.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain, combinations
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from evdist.belief import FocalSets, random_masses

Set = frozenset[int]
Masses = dict[Set, float]

#: Frames of 2 to 6 clusters, each on its power set and on the family of pairs.
frames = pytest.mark.parametrize(
    "focal",
    [family(c) for c in range(2, 7) for family in (FocalSets.full, FocalSets.pairs)],
    ids=lambda focal: f"c{focal.n_clusters}-f{len(focal)}",
)


def drawn(
    focal: FocalSets, sources: int = 1, *, seed: int = 0, empty: bool = True
) -> list[NDArray[np.float64]]:
    """For each source five rows: dense, sparse, consonant, simple and categorical."""
    rng = np.random.default_rng([seed, focal.n_clusters, len(focal)])
    kinds = ("uniform", "sparse", "consonant", "simple", "categorical")
    return [
        np.concatenate(
            [random_masses(1, focal, rng, kind=kind, n_sets=2, empty=empty) for kind in kinds]
        )[rng.permutation(5)]
        for _ in range(sources)
    ]


def interior(focal: FocalSets, sources: int = 1, *, seed: int = 0) -> list[NDArray[np.float64]]:
    """As `drawn`, with some mass on the empty set and on Omega in every row."""
    spread = np.zeros(len(focal))
    spread[[0, focal.omega]] = 0.5
    return [0.8 * m + 0.2 * spread for m in drawn(focal, sources, seed=seed)]


def subsets(of: Iterable[int]) -> list[Set]:
    members = sorted(of)
    sizes = range(len(members) + 1)
    return [frozenset(s) for s in chain.from_iterable(combinations(members, k) for k in sizes)]


def as_dict(row: NDArray, focal: FocalSets) -> Masses:
    return {frozenset(s): float(v) for s, v in zip(focal.sets, row, strict=True) if v}


def dicts(mass: NDArray, focal: FocalSets) -> list[Masses]:
    return [as_dict(row, focal) for row in mass]


def assert_masses(got: Masses, expected: Masses, atol: float = 1e-12) -> None:
    for s in got.keys() | expected.keys():
        assert abs(got.get(s, 0.0) - expected.get(s, 0.0)) <= atol, (sorted(s), got, expected)


def bel(m: Masses, A: Set) -> float:
    return sum(v for B, v in m.items() if B and B <= A)


def pl(m: Masses, A: Set) -> float:
    return sum(v for B, v in m.items() if B & A)


def q(m: Masses, A: Set) -> float:
    return sum(v for B, v in m.items() if B >= A)


def b(m: Masses, A: Set) -> float:
    return sum(v for B, v in m.items() if B <= A)


def betp(m: Masses, k: int) -> float:
    """Normalised."""
    return sum(v / len(B) for B, v in m.items() if k in B) / (1 - m.get(frozenset(), 0.0))


def moved(m: Masses, where: Callable[[Set], Set]) -> Masses:
    out: Masses = defaultdict(float)
    for A, v in m.items():
        out[where(A)] += v
    return out


def pairwise(m1: Masses, m2: Masses, operation: Callable[[Set, Set], Set]) -> Masses:
    out: Masses = defaultdict(float)
    for A, x in m1.items():
        for B, y in m2.items():
            out[operation(A, B)] += x * y
    return out


def conjunctive_weight(m: Masses, A: Set, omega: Set) -> float:
    """w(A), the product over B including A of q(B)^((-1)^(|B| - |A| + 1))."""
    return prod(q(m, A | more) ** (-((-1) ** len(more))) for more in subsets(omega - A))


def disjunctive_weight(m: Masses, A: Set) -> float:
    """v(A), the product over B included in A of b(B)^((-1)^(|A| - |B| + 1))."""
    return prod(b(m, A - less) ** (-((-1) ** len(less))) for less in subsets(A))
