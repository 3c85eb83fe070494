"""Seeds of clusters far from each other: k-means++ on dissimilarities.

Reference: Arthur, Vassilvitskii (2007), k-means++. A seed is drawn with a chance proportional to
its squared dissimilarity to the nearest seed so far.

==========  ==================================================================================
caller      rule
==========  ==================================================================================
RECM        `weights` of the objects, and dissimilarities that are squares already (`power=1`)
ECMdd MECM  `distinct`: medoids are different objects, also among copies
EVCLUS      greedy, `candidates=2 + int(log(c + 1))`; it reads the table of dissimilarities
==========  ==================================================================================

ECM draws its seeds by scikit-learn's `kmeans_plusplus`, which needs no dissimilarities in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
