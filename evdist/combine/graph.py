"""Which pairs of objects are kept, such that rows can be updated together.

Pairs are symmetric (if j is kept for i, i is kept for j), so that a row's program holds every
term in which the row appears. Rows of one step share no pair: updating them at once is updating
them one after another.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.graph import draw_graph


@dataclass(frozen=True)
class PairGraph:
    """Kept partners of each object, and the order in which rows are updated.

    `coloured_graph` and `all_pairs_graph` make one.

    Parameters
    ----------
    partner : (n, k) int
        Partners of each object, -1 where there is none.
    steps : tuple of (b,) int arrays
        All objects, split into groups without pairs inside.
    """

    partner: NDArray[Any]
    steps: tuple[NDArray[Any], ...]


def all_pairs_graph(n: int) -> PairGraph:
    """Every object is paired with every other; rows are updated one by one.

    Parameters
    ----------
    n : int
        Number of objects.

    Examples
    --------
    >>> from evdist.combine import all_pairs_graph
    >>> all_pairs_graph(3).partner
    array([[-1,  1,  2],
           [ 0, -1,  2],
           [ 0,  1, -1]])
    """
    partner = np.tile(np.arange(n), (n, 1))
    np.fill_diagonal(partner, -1)
    return PairGraph(partner, tuple(np.arange(n)[:, None]))


def coloured_graph(n: int, k: int, rng: np.random.Generator) -> PairGraph:
    """``k`` random partners of each object, all from other colours: the graph of EVCLUS.

    Parameters
    ----------
    n : int
        Number of objects, at least two.
    k : int
        Partners of each object, at least one; n - 1 or more is all.
    rng : numpy.random.Generator
        Draws the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist.combine import coloured_graph
    >>> coloured_graph(10, 3, np.random.default_rng(0)).partner.shape
    (10, 3)
    """
    if n < 2:
        raise ValueError(f"Pairs need at least two objects, got {n}.")
    if k < 1:
        raise ValueError(f"At least one pair per object must be kept, got {k}.")
    order = rng.permutation(n)
    graph = draw_graph(n, min(k, n - 1), rng)
    position, degree = graph.partners(0, n)
    partner = np.empty(position.shape, dtype=np.int64)
    partner[order] = np.where(np.arange(graph.k) < degree[:, None], order[position], -1)
    steps = tuple(np.sort(order[lo:hi]) for lo, hi in pairwise(graph.bounds))
    return PairGraph(partner, steps)
