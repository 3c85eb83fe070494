"""Lists of pairs that cannot tell clusters apart: seen, told, mended where attributes are known.

EVCLUS needs far pairs as well as near ones: where objects conflict is what tells clusters apart.
A graph of nearest neighbours has near pairs alone; every mass function then agrees with all others.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csgraph, csr_array

from evdist.data.sources import AttributeSource, PairList, pair_list

#: In a graph of neighbours, two neighbours of an object are often neighbours themselves. Pairs
#: drawn at random have a closure of about their density.
CLOSED, TIMES = 0.1, 4.0
#: Objects whose neighbours are looked at.
LOOKED_AT = 200
#: Random partners of each object where a graph is mended.
FAR = 50


def checked_pairs(pairs: PairList, attributes: Any = None, seed: int = 0) -> PairList:
    """The pairs, with far ones where attributes are known; a neighbour graph alone is refused."""
    if attributes is not None:
        return mended(pairs, np.asarray(attributes, dtype=float), seed)
    share, density = closure(pairs), len(pairs.other) / (pairs.n * max(pairs.n - 1, 1))
    if share > CLOSED and share > TIMES * density:
        raise ValueError(
            f"The pairs are those of a neighbour graph: of two partners of an object {share:.0%} "
            f"are partners themselves, where {density:.1%} of all pairs are known. Near pairs "
            "alone cannot tell clusters apart. Pass the attributes too, fit(graph, attributes=X), "
            "which adds random far pairs; add such pairs yourself; or fit(X, metric='geodesic')."
        )
    _tell_of_parts(pairs)
    return pairs


def closure(pairs: PairList) -> float:
    """Share of pairs of partners of an object that are known pairs themselves, on a sample."""
    rng = np.random.default_rng(0)
    some = rng.choice(pairs.n, min(pairs.n, LOOKED_AT), replace=False)
    closed = total = 0
    for i in some:
        mine = pairs.other[pairs.first[i] : pairs.first[i + 1]]
        if len(mine) < 2:
            continue
        a, b = rng.choice(mine, 20), rng.choice(mine, 20)
        for j, k in zip(a[a != b], b[a != b], strict=True):
            row = pairs.other[pairs.first[j] : pairs.first[j + 1]]
            at = int(np.searchsorted(row, k))
            closed += at < len(row) and row[at] == k
            total += 1
    return closed / total if total else 0.0


def mended(pairs: PairList, attributes: NDArray[np.float64], seed: int) -> PairList:
    """The pairs and, of each object, some random ones at their Euclidean distance."""
    if attributes.ndim != 2 or len(attributes) != pairs.n:
        raise ValueError(
            f"attributes must have one row for each of the {pairs.n} objects, got shape "
            f"{attributes.shape}."
        )
    n, rng = pairs.n, np.random.default_rng([seed, 41])
    k = min(FAR, n - 1)
    mine = np.repeat(np.arange(n), k)
    others = (mine + rng.integers(1, n, n * k)) % n
    source = AttributeSource.of(attributes, "euclidean")
    far = source.distances(np.arange(n, dtype=np.uint32), others.reshape(n, k).astype(np.uint32))
    known = np.repeat(np.arange(n), np.diff(pairs.first))
    # A pair that is given keeps its value.
    given = set((known.astype(np.int64) * n + pairs.other).tolist())
    fresh = np.array([a * n + b not in given for a, b in zip(mine, others, strict=True)])
    i = np.concatenate([known, mine[fresh]])
    j = np.concatenate([pairs.other.astype(np.int64), others[fresh]])
    return pair_list(i, j, np.concatenate([pairs.D, far.ravel()[fresh]]), n)


def _tell_of_parts(pairs: PairList) -> None:
    graph = csr_array((np.ones(len(pairs.other), np.int8), pairs.other, pairs.first),
                      shape=(pairs.n, pairs.n))  # fmt: skip
    count, part = csgraph.connected_components(graph, directed=False)
    if count > 1:
        size = np.bincount(part)
        apart = int(np.flatnonzero(part != part[0])[0])
        warnings.warn(
            f"The pairs fall into {count:,} parts without a pair between them (objects 0 and "
            f"{apart}, for instance; the largest part has {size.max():,} of {pairs.n:,}). Nothing "
            "tells which clusters of two parts are the same. Add pairs between them, or cluster "
            "each part by itself.",
            stacklevel=5,
        )
