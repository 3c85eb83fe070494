"""Which pairs of objects are kept, such that rows can be updated together.

Pairs are symmetric (if j is kept for i, i is kept for j), so that a row's program holds every
term in which the row appears. Rows of one step share no pair: updating them at once is updating
them one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairGraph", "all_pairs_graph", "coloured_graph"]

#: Groups of objects; partners come from other groups.
COLOURS = 8


@dataclass(frozen=True)
class PairGraph:
    """Kept partners of each object, and the order in which rows are updated.

    Parameters
    ----------
    partner : (n, k) int
        Partners of each object, -1 where there is none.
    steps : tuple of (b,) int arrays
        All objects, split into groups without pairs inside.
    """

    partner: NDArray
    steps: tuple[NDArray, ...]


def all_pairs_graph(n: int) -> PairGraph:
    """Every object is paired with every other; rows are updated one by one."""
    partner = np.tile(np.arange(n), (n, 1))
    np.fill_diagonal(partner, -1)
    return PairGraph(partner, tuple(np.arange(n)[:, None]))


def coloured_graph(n: int, k: int, rng: np.random.Generator) -> PairGraph:
    """About ``k`` random partners of each object, all from other colours.

    The objects lie in random order in B blocks of equal length. Each draw takes an offset o and
    pairs block b with block b + o (mod B) through a random permutation: one partner ahead and
    one behind for every object. A pair that is drawn twice counts twice.
    """
    if n < 2:
        raise ValueError(f"Pairs need at least two objects, got {n}.")
    if k < 1:
        raise ValueError(f"At least one pair per object must be kept, got {k}.")
    B = min(COLOURS, n)
    length = -(-n // B)
    # The last places of some blocks stay empty (-1) when B does not divide n.
    grid = np.full(length * B, -1)
    grid[:n] = rng.permutation(n)
    grid = np.ascontiguousarray(grid.reshape(length, B).T)
    partner = np.full((n, 2 * -(-k // 2)), -1)
    for slot in range(0, partner.shape[1], 2):
        offset = int(rng.integers(1, B))
        shuffle = rng.permuted(np.tile(np.arange(length), (B, 1)), axis=1)
        ahead = np.take_along_axis(np.roll(grid, -offset, axis=0), shuffle, axis=1)
        kept = (grid >= 0) & (ahead >= 0)
        partner[grid[kept], slot] = ahead[kept]
        partner[ahead[kept], slot + 1] = grid[kept]
    return PairGraph(partner, tuple(np.sort(row[row >= 0]) for row in grid))
