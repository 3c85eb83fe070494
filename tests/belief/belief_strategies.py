"""Families of focal sets and masses on them, drawn by hypothesis, and a slow reference."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from evdist.belief import FocalSets

Set = frozenset[int]


@st.composite
def families(draw: st.DrawFn, max_clusters: int = 4) -> FocalSets:
    """Named families, power sets in any order, and arbitrary lists of sets."""
    c = draw(st.integers(1, max_clusters))
    kind = draw(st.sampled_from(["simple", "pairs", "full", "shuffled", "any"]))
    if kind in ("simple", "pairs"):
        return getattr(FocalSets, kind)(c, omega=draw(st.booleans()))
    if kind == "full":
        return FocalSets.full(c)
    sets = draw(st.permutations(FocalSets.full(c).sets[1:]))
    size = len(sets) if kind == "shuffled" else draw(st.integers(1, len(sets)))
    return FocalSets.of(sets[:size], c)


@st.composite
def masses_on(draw: st.DrawFn, focal: FocalSets, n: int = 3) -> NDArray[np.float64]:
    """(n, f) masses in twelfths of a row's total: zeros, ties and m(empty) = 1 come often."""
    row = st.lists(st.integers(0, 12), min_size=len(focal), max_size=len(focal))
    m = np.array(draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    m[m.sum(axis=1) == 0, 0] = 1.0
    return m / m.sum(axis=1, keepdims=True)


@st.composite
def evidence(
    draw: st.DrawFn, sources: int = 1, within: st.SearchStrategy[FocalSets] | None = None
) -> tuple:
    """(focal, m_1, ..., m_sources), focal from any family or from those given."""
    focal = draw(families() if within is None else within)
    return (focal, *(draw(masses_on(focal)) for _ in range(sources)))


def with_omega(max_clusters: int = 4) -> st.SearchStrategy[FocalSets]:
    return families(max_clusters).filter(lambda focal: focal.omega is not None)


def as_sets(m: NDArray, focal: FocalSets) -> dict[Set, float]:
    """One mass function as {set of clusters: mass}."""
    return {frozenset(s): float(v) for s, v in zip(focal.sets, m, strict=True)}


def pairwise(
    m1: NDArray, m2: NDArray, focal: FocalSets, operation: Callable[[Set, Set], Set]
) -> dict[Set, float]:
    """Definition of a combination rule, set by set."""
    out: dict[Set, float] = defaultdict(float)
    for A, x in as_sets(m1, focal).items():
        for B, y in as_sets(m2, focal).items():
            out[operation(A, B)] += x * y
    return out


def assert_same_masses(got: dict[Set, float], expected: dict[Set, float]) -> None:
    """Equal masses, whichever sets without mass each side lists."""
    for s in got.keys() | expected.keys():
        assert abs(got.get(s, 0.0) - expected.get(s, 0.0)) < 1e-12, sorted(s)


def renamed(focal: FocalSets, names: list[int]) -> FocalSets:
    """Cluster k becomes names[k]; the columns keep their order."""
    return FocalSets.of([[names[k] for k in s] for s in focal.sets], focal.n_clusters)
