"""Rules that give conflicting masses back to the sets that conflict: PCR5 and PCR6.

Where sources say sets that have no cluster in common, the product of their masses returns to these
sets, in proportion to their masses. The empty set counts like any other: it meets nothing.

References: Smarandache and Dezert (2005), Information fusion based on new proportional conflict
redistribution rules, for PCR5; Martin and Osswald (2006), A new generalization of the
proportional conflict redistribution rule stable in terms of decision, for PCR6. For two
sources they are the same rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.belief.arrays import BLOCK, by_blocks
from evdist.belief.combine import Combined, conjunctive, sources
from evdist.belief.families import on_family
from evdist.belief.focal import FocalSets

#: Combinations of one focal set per source: more would take minutes per thousand rows.
MAX_COMBINATIONS = 1 << 24


def pcr5(m1: ArrayLike, m2: ArrayLike, focal: FocalSets) -> Combined:
    """PCR5 of two sources: m1(A) m2(B) of disjoint sets goes back to A and B.

    m(A) = conjunctive sum + sum over B disjoint from A of m1(A)^2 m2(B) / (m1(A) + m2(B)) and
    the same with the sources exchanged; Smarandache and Dezert (2005).

    Parameters
    ----------
    m1, m2 : (n, f) or (f,) arrays
        Masses of two sources.
    focal : FocalSets
        The sets that the columns are for.

    Returns
    -------
    mass : (n, f') or (f',) array
        Masses on the sets of the result.
    focal : FocalSets
        As of :func:`evdist.belief.conjunctive`.

    Examples
    --------
    >>> from evdist.belief import FocalSets, pcr5
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = pcr5([0, .8, 0, .2], [0, 0, .6, .4], focal)
    >>> m.round(2)  # of the conflict, 0.48, set {0} gets back 0.8 / (0.8 + 0.6)
    array([0.  , 0.59, 0.33, 0.08])
    """
    return pcr6([m1, m2], focal)


def pcr6(masses: Sequence[ArrayLike], focal: FocalSets) -> Combined:
    """PCR6 of any number of sources; Martin and Osswald (2006).

    The product of masses m_1(X_1) ... m_s(X_s) of sets without a common cluster is divided among
    X_1, ..., X_s in proportion to these masses. Not associative, and so taken of all sources at
    once: f^s combinations, where two sources look at pairs of disjoint sets only.

    Parameters and result as in :func:`evdist.belief.conjunctive`.

    Parameters
    ----------
    masses : sequence of (n, f) or (f,) arrays
        One per source.
    focal : FocalSets
        The sets that the columns are for.

    Examples
    --------
    >>> from evdist.belief import FocalSets, pcr6
    >>> focal = FocalSets.full(2)  # ∅, {0}, {1}, {0,1}
    >>> m, _ = pcr6([[0, .8, 0, .2], [0, 0, .6, .4], [0, .5, 0, .5]], focal)
    >>> m.round(2)
    array([0.  , 0.65, 0.24, 0.11])
    """
    arrays = sources(masses, focal)
    joint, family = conjunctive(arrays, focal)
    if len(arrays) == 1:
        return joint, family
    if len(arrays) == 2:
        back = by_blocks(lambda a, b: _of_two(a, b, focal), *arrays, width=2 * len(focal))
    else:
        used = [np.flatnonzero(np.atleast_2d(m).any(axis=0)) for m in arrays]
        tuples = _conflicts(used, focal)
        back = by_blocks(lambda *rows: _of_many(rows, tuples, len(focal)), *arrays)
    joint[..., 0] = 0.0
    return joint + on_family(back, focal, family), family


def _of_two(a: NDArray[Any], b: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """What the conflicts of two sources give back, (b, f): one set of the first at a time."""
    a, b = np.broadcast_arrays(a, b)
    x, y = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    out = np.zeros_like(x)
    disjoint, tiny = focal.C > 0, np.finfo(out.dtype).tiny
    facing, parts = np.empty_like(y), np.empty_like(y)
    for q in range(len(focal)):
        others = np.flatnonzero(disjoint[q])
        if not len(others) or not x[q].any():
            continue
        z, part = facing[: len(others)], parts[: len(others)]
        np.take(y, others, axis=0, out=z, mode="clip")
        # x z / (x + z), shared as x and z are; where both are 0 nothing is.
        np.add(z, np.maximum(x[q], tiny), out=part)
        np.divide(z, part, out=part)
        out[q] += x[q] ** 2 * part.sum(axis=0)
        z *= x[q]
        z *= part
        out[others] += z
    return out.T


def _conflicts(used: list[NDArray[np.intp]], focal: FocalSets) -> NDArray[np.intp]:
    """Columns (t, s) of every choice of a set per source that has no cluster in common."""
    count = int(np.prod([float(len(u)) for u in used]))
    if count > MAX_COMBINATIONS:
        raise MemoryError(
            f"PCR6 looks at every choice of a focal set per source, at most {MAX_COMBINATIONS}, "
            f"got {count}. Combine fewer sources, or masses on fewer sets."
        )
    # A cluster is common when no source's set lacks it.
    chosen, common = used[0][:, None], focal.matrix[used[0]]
    for u in used[1:]:
        common = (common[:, None] & focal.matrix[u]).reshape(-1, focal.n_clusters)
        chosen = np.hstack([np.repeat(chosen, len(u), axis=0), np.tile(u, len(chosen))[:, None]])
    return chosen[~common.any(axis=1)]


def _of_many(rows: Sequence[NDArray[Any]], tuples: NDArray[np.intp], f: int) -> NDArray[Any]:
    """What the conflicts of all sources give back, (b, f), some combinations at a time."""
    x = [np.ascontiguousarray(m.T) for m in np.broadcast_arrays(*rows)]
    out = np.zeros_like(x[0])
    step = max(1, BLOCK // max(1, x[0].shape[1]))
    for start in range(0, len(tuples), step):
        some = tuples[start : start + step]
        masses = [m[some[:, j]] for j, m in enumerate(x)]
        total = np.sum(masses, axis=0)
        share = np.prod(masses, axis=0) / np.where(total, total, 1)
        for j, m in enumerate(masses):
            order = np.argsort(some[:, j], kind="stable")
            reached, starts = np.unique(some[order, j], return_index=True)
            out[reached] += np.add.reduceat((share * m)[order], starts, axis=0)
    return out.T
