"""The pair graph in compiled code, and the colours of a graph that was given.

`evdist.kernels.circulant` says which partners a position has and why; here are the partners of
many rows at a time.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evdist.kernels.circulant import MIN_COLOURS, Circulant

__all__ = ["MIN_COLOURS", "PairGraph", "draw_graph", "greedy_colours"]


class PairGraph(Circulant):
    """A symmetric, coloured graph on positions 0..n-1, given by its (offset, shift) pairs."""

    def partners(self, lo: int, hi: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """Partner positions of rows lo..hi-1, (rows, k), and how many each row has, (rows,).

        Unused places at the end of a row hold the row's own position.
        """
        partner = np.empty((hi - lo, self.k), np.uint32)
        degree = np.empty(hi - lo, np.int64)
        offsets, shifts = np.array(self.offsets), np.array(self.shifts)
        _fill_partners(lo, self.size, self.bounds, offsets, shifts, partner, degree)
        return partner, degree


def draw_graph(n: int, k: int, rng: np.random.Generator) -> PairGraph:
    """Draw a graph with k partners per object, 1 <= k <= n - 1; see `Circulant.draw`."""
    return PairGraph.draw(n, k, rng)


@njit(cache=True, nogil=True)
def _fill_partners(lo, s, bounds, offsets, shifts, partner, degree):
    B = bounds.size - 1
    b = np.searchsorted(bounds, lo, side="right") - 1
    for row in range(partner.shape[0]):
        i = lo + row
        while i >= bounds[b + 1]:
            b += 1
        t = i - bounds[b]
        count = 0
        for h in range(offsets.size):
            other = b + offsets[h]
            if other >= B:
                other -= B
            at = t + shifts[h]
            if at >= s:
                at -= s
            position = bounds[other] + at
            if position < bounds[other + 1]:
                partner[row, count] = position
                count += 1
        degree[row] = count
        for h in range(count, offsets.size):
            partner[row, h] = i


@njit(cache=True)
def greedy_colours(first, other, rows):
    """Colour a graph given in compressed rows so that neighbours differ; visits `rows` in order.

    Only neighbours already coloured count; returns (n,) int64, -1 for rows not visited.
    """
    n = first.size - 1
    colour = np.full(n, -1, np.int64)
    used = np.full(n + 1, -1, np.int64)
    for i in rows:
        for t in range(first[i], first[i + 1]):
            if colour[other[t]] >= 0:
                used[colour[other[t]]] = i
        q = 0
        while used[q] == i:
            q += 1
        colour[i] = q
    return colour
