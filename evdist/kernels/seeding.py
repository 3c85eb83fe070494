"""Seeds of clusters far from each other: k-means++, on dissimilarities and on attributes.

Reference: Arthur, Vassilvitskii (2007), k-means++. A seed is drawn with a chance proportional to
its squared dissimilarity to the nearest seed so far.

==========  ==================================================================================
caller      rule
==========  ==================================================================================
RECM        `weights` of the objects, and dissimilarities that are squares already (`power=1`)
ECMdd MECM  `distinct`: medoids are different objects, also among copies
EVCLUS      greedy, `candidates=2 + int(log(c + 1))`; it reads the table of dissimilarities
==========  ==================================================================================

Seeds among attributes need no dissimilarities in memory. ECM draws them by scikit-learn's
`kmeans_plusplus`, and the small groups of a fit with many clusters by `seed_rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes of rows that are held in double precision; of more, a block of rows at a time.
_HELD, _BLOCK = 1 << 26, 1 << 13


def seed_rows(S: NDArray[np.float32], count: int, state: int) -> NDArray[np.float32]:
    """Rows of S (n, d) as seeds of Lloyd's iterations, (count, d); one draw for each.

    Those of scikit-learn's `kmeans_plusplus(S, count, random_state=state, n_local_trials=1)`, which
    converts S to double precision for every seed, a little at a time: 2,000 of 60,000 x 10 take it
    4.2 s, and this 1.7 s; 400 of 6,000 x 10 take 0.11 s and 0.03 s.
    """
    n = len(S)
    squares = _squares_to(S)
    rng, ones = np.random.RandomState(state), np.ones((n, 1), np.float32)
    chosen = np.empty(count, np.int64)
    chosen[0] = rng.choice(n, p=ones[:, 0] / ones.sum())
    nearest = squares(chosen[0])
    left = nearest @ ones[:, 0]
    for q in range(1, count):
        goal = rng.uniform(size=1) * left
        # Where rounding leads beyond the last object, that one.
        chosen[q] = min(int(np.searchsorted(np.cumsum(nearest), goal)[0]), n - 1)
        np.minimum(nearest, squares(chosen[q]), out=nearest)
        left = (nearest @ ones)[0]
    return S[chosen]


def _squares_to(S: NDArray[np.float32]) -> Callable[[np.int64], NDArray[np.float32]]:
    """Gives (1, n), the squared distances of all rows to one, rounded once."""
    size = len(S) if S.nbytes <= _HELD else _BLOCK
    parts = [S[lo : lo + size] for lo in range(0, len(S), size)]
    if len(parts) == 1:
        parts = [S.astype(float)]

    def length(rows: NDArray) -> NDArray[np.float64]:
        return np.einsum("ij,ij->i", rows, rows)

    lengths = [length(part.astype(float, copy=False)) for part in parts]

    def squares(i: np.int64) -> NDArray[np.float32]:
        row = S[i : i + 1].astype(float)
        found = []
        for part, sizes in zip(parts, lengths, strict=True):
            D = -2.0 * (row @ part.astype(float, copy=False).T)
            D += length(row)
            D += sizes
            found.append(D.astype(np.float32))
        return np.maximum(np.concatenate(found, axis=1), 0.0)

    return squares


def draw_seeds(
    to: Callable[[NDArray[np.int64]], NDArray[Any]],
    n: int,
    c: int,
    rng: np.random.Generator,
    *,
    weights: NDArray[np.float64] | None = None,
    power: int = 2,
    candidates: int = 1,
    distinct: bool = False,
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """c of n objects as seeds, (c,), and the dissimilarities of all objects to them, (n, c).

    Parameters
    ----------
    to : `to(objects)` is (n, k), the dissimilarities of all objects to these k
    weights : (n,) array
        Chances are proportional to them, also that of the first seed.
    power : int
        Power of the dissimilarities in the chance: 1 where they are squares already.
    candidates : int
        Of so many draws, take the one that leaves the least sum (greedy k-means++).
    distinct : bool
        Never draw a seed twice. Otherwise that happens where nothing but copies of seeds is left.
    """
    if weights is None:
        first = int(rng.integers(n))
    else:
        first = int(rng.choice(n, p=weights / weights.sum()))
    seeds = np.array([first], dtype=np.int64)
    table = to(seeds)
    while len(seeds) < c:
        # Squares of float32 dissimilarities are summed in double precision.
        left = table.min(axis=1).astype(float) ** power
        chance = left if weights is None else weights * left
        if distinct:
            chance = _without(seeds, chance)
        if not chance.sum() > 0:
            # Nothing but copies of the seeds is left: any object will do.
            chance = np.ones(n) if weights is None else weights
            chance = _without(seeds, chance) if distinct else chance
        drawn = rng.choice(n, candidates, p=chance / chance.sum())
        tries = to(drawn)
        best = int(np.minimum(tries**power, left[:, None]).sum(axis=0).argmin())
        seeds = np.append(seeds, drawn[best])
        table = np.column_stack([table, tries[:, best]])
    return seeds, table


def _without(seeds: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    out = chance.copy()
    out[seeds] = 0.0
    return out
