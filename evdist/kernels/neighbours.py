"""The nearest rows of every row, by inverted lists: a search whose cost is linear in the rows.

Rows are sorted into cells, those nearest to one of C centres, some CELL rows in each. A row's
nearest are looked for in the PROBED cells whose middles are nearest to it. Up to EXACT rows every
row is compared with all.

Cells are compared as matrices, by BLAS with one thread for each block of work, so that the result
does not depend on how many threads share the blocks. Distances of those found are computed anew
from differences: a difference of squares has few digits left where rows are close.

Symbols
-------
X       (n, d) float32 rows
C       cells, laid out one after another: rows first[q] .. first[q + 1] - 1 of the sorted table
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.jit import njit
from evdist.kernels.threads import one_blas_thread

#: Rows of a cell, on average, and at most.
CELL, LARGEST = 256, 1024
#: Cells that a row's own cell has near it, and in how many of these the row looks. With 16 the
#: share of the true neighbours that is found was .976 on MNIST (50 components), .906 on texts (384
#: attributes); with 8 .94 and .79. A second look, among neighbours of neighbours, found as many
#: more for three times the work.
NEAR, PROBED = 64, 16
#: Up to so many rows all are compared.
EXACT = 8192
#: Rows of a cell that its centre is found from, and Lloyd's iterations.
PER_CENTRE, LLOYD = 48, 5
#: Rows that are compared at a time.
_BLOCK = 512


@dataclass(frozen=True)
class NeighbourIndex:
    """Rows in cells, among which the nearest of other rows can be looked for."""

    #: The rows, cell by cell (n, d), their numbers before, and half their squared lengths.
    rows: NDArray[np.float32]
    order: NDArray[np.int64]
    half: NDArray[np.float32]
    #: Where each cell begins (C + 1,), and its middle (C, d).
    first: NDArray[np.int64]
    middles: NDArray[np.float32]
    #: What has been taken off all rows, so that products have small terms.
    centre: NDArray[np.float32]

    @classmethod
    def build(cls, X: NDArray, seed: int, threads: int = 1) -> NeighbourIndex:
        """Sort rows X (n, d) into cells; same (X, seed), same cells."""
        X = np.ascontiguousarray(X, np.float32)
        n = len(X)
        # The median: a single wild value would take the mean far from all others.
        centre = np.median(X[np.linspace(0, n - 1, min(n, 10_000)).astype(np.int64)], axis=0)
        X = X - centre
        with one_blas_thread():
            cell = _cells(X, np.random.default_rng([seed, n, 41]), threads)
        order = np.argsort(cell, kind="stable")
        rows = X[order]
        first = np.concatenate([[0], np.cumsum(np.bincount(cell))])
        middles = np.add.reduceat(rows, first[:-1], axis=0) / np.diff(first)[:, None]
        half = 0.5 * np.einsum("ij,ij->i", rows, rows)
        return cls(rows, order, half, first, middles.astype(np.float32), centre)

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def cells(self) -> int:
        return len(self.middles)

    def nearest(self, k: int, threads: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The k nearest others of every row in cell order, as places there, and squared distances.

        The nearest first. k is below the number of rows.
        """
        places = np.empty((self.n, k), np.int32)
        squared = np.empty((self.n, k), np.float32)
        near = self._near_cells()

        def work(q: int) -> None:
            for lo in range(self.first[q], self.first[q + 1], _BLOCK):
                here = slice(lo, min(lo + _BLOCK, int(self.first[q + 1])))
                self._look(self.rows[here], lo, near[q], places[here], squared[here])

        run_parts(work, range(self.cells), threads, blas=True)
        return places, squared

    def search(
        self, X: NDArray, k: int, threads: int = 1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Places of the k nearest rows to each row of X (m, d), and squared distances."""
        X = np.ascontiguousarray(X, np.float32) - self.centre
        places = np.empty((len(X), k), np.int32)
        squared = np.empty((len(X), k), np.float32)
        near = self._near_cells()
        with one_blas_thread():
            cell = _nearest_centre(X, self.middles, threads)
        order = np.argsort(cell, kind="stable")
        begin = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=self.cells))])

        def work(q: int) -> None:
            for lo in range(begin[q], begin[q + 1], _BLOCK):
                mine = order[lo : min(lo + _BLOCK, begin[q + 1])]
                found, far = np.empty((len(mine), k), np.int32), np.empty((len(mine), k), "f4")
                self._look(X[mine], -1, near[q], found, far)
                places[mine], squared[mine] = found, far

        run_parts(work, [q for q in range(self.cells) if begin[q] < begin[q + 1]], threads, True)
        return places, squared

    def nearest_outside(
        self, part: NDArray[np.int64], rows: NDArray[np.int64], threads: int = 1
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The place of the row nearest to each of `rows` in another part, and squared distances.

        part (n,) and rows are in cell order. All rows are compared: the gap may be wide.
        """
        place, squared = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)

        def work(lo: int) -> None:
            mine = rows[lo : lo + _BLOCK]
            score = np.full(len(mine), np.inf, np.float32)
            found = np.zeros((len(mine), 1), np.int32)
            for at in range(0, self.n, 4 * _BLOCK):
                to = min(at + 4 * _BLOCK, self.n)
                product = self.rows[mine] @ self.rows[at:to].T
                _keep_outside(product, self.half[at:to], at, part[at:to], part[mine], score, found)
            far = np.empty((len(mine), 1), np.float32)
            _measure(self.rows, self.rows[mine], found, far)
            place[lo : lo + _BLOCK], squared[lo : lo + _BLOCK] = found[:, 0], far[:, 0]

        run_parts(work, range(0, len(rows), _BLOCK), threads, blas=True)
        return place, squared

    def _near_cells(self) -> NDArray[np.int64]:
        """The NEAR cells nearest to each, itself first: (C, at most NEAR)."""
        V, count = self.middles, min(self.cells, NEAR)
        half = 0.5 * np.einsum("ij,ij->i", V, V)
        found = np.empty((self.cells, count), np.int64)
        with one_blas_thread():
            for lo in range(0, self.cells, _BLOCK):
                far = half - V[lo : lo + _BLOCK] @ V.T
                near = np.argpartition(far, count - 1, axis=1)[:, :count]
                rank = np.argsort(np.take_along_axis(far, near, 1), axis=1, kind="stable")
                found[lo : lo + _BLOCK] = np.take_along_axis(near, rank, 1)
        return found

    def _look(
        self, rows: NDArray, own: int, near: NDArray, places: NDArray, squared: NDArray
    ) -> None:
        """Fill `places` and `squared` for rows of one cell, those from `own` on (-1: new ones).

        Each row looks into the PROBED of the cells `near` whose middles are nearest to itself.
        """
        far = self._to_middles(rows, near)
        picked = (
            far <= np.partition(far, min(PROBED, len(near)) - 1)[:, [min(PROBED, len(near)) - 1]]
        )
        score = np.full(places.shape, np.inf, np.float32)
        places[:] = -1
        for t, q in enumerate(near):
            mine = np.flatnonzero(picked[:, t])
            some = rows if len(mine) == len(rows) else rows[mine]
            for lo in range(self.first[q], self.first[q + 1] if len(mine) else 0, 4 * _BLOCK):
                hi = min(lo + 4 * _BLOCK, int(self.first[q + 1]))
                product = some @ self.rows[lo:hi].T
                _keep_nearest(product, self.half[lo:hi], lo, own, mine, score, places)
        if places[:, -1].min() < 0 and (len(near) < self.cells or PROBED < len(near)):
            # The cells nearby hold too few rows: the row looks into all.
            short = np.flatnonzero(places[:, -1] < 0)
            places[short], score[short] = -1, np.inf
            product = rows[short] @ self.rows.T
            _keep_nearest(product, self.half, 0, own, short, score, places)
        _measure(self.rows, rows, places, squared)

    def _to_middles(self, rows: NDArray, near: NDArray) -> NDArray[np.float32]:
        """Half squared distances to middles, less what is the same for all cells: (rows, cells)."""
        V = self.middles[near]
        return 0.5 * np.einsum("ij,ij->i", V, V) - rows @ V.T


def run_parts(
    work: Callable[[int], None], parts: range | list[int], threads: int, blas: bool = False
) -> None:
    """Call `work` for each part, on threads; with `blas`, BLAS has one thread in each."""
    if blas:
        with one_blas_thread():
            run_parts(work, parts, threads)
        return
    if threads == 1 or len(parts) < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(work, part) for part in parts]:
            job.result()


# ---------------------------------------------------------------------- cells
def _cells(X: NDArray[np.float32], rng: np.random.Generator, threads: int) -> NDArray[np.int64]:
    """The cell of each row: (n,), every number up to the largest in use.

    In two steps, so that a row is compared with some 2 sqrt(C) centres instead of C.
    """
    n = len(X)
    if n <= EXACT:
        return np.zeros(n, np.int64)
    count = -(-n // CELL)
    coarse = int(np.ceil(np.sqrt(count)))
    upper = _nearest_centre(X, _centres(X, coarse, rng), threads)
    order = np.argsort(upper, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(upper[order])) + 1)
    draws = rng.integers(0, 2**63, len(parts))
    cell = np.empty(n, np.int64)
    made = np.zeros(len(parts), np.int64)

    def split(q: int) -> None:
        mine = parts[q]
        rows = X[mine]
        fine = -(-len(mine) // CELL)
        if fine == 1:
            cell[mine] = 0
        else:
            V = _centres(rows, fine, np.random.default_rng(draws[q]))
            cell[mine] = _nearest_centre(rows, V, 1)
        cell[mine] = _no_larger(cell[mine])
        made[q] = cell[mine].max() + 1

    run_parts(split, range(len(parts)), threads)
    before = np.cumsum(made) - made
    for q, mine in enumerate(parts):
        cell[mine] += before[q]
    return cell


def _no_larger(cell: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same cells, numbered without gaps, those above LARGEST cut into pieces as rows come."""
    _, cell = np.unique(cell, return_inverse=True)
    order = np.argsort(cell, kind="stable")
    size = np.bincount(cell)
    rank = np.empty(len(cell), np.int64)
    rank[order] = np.arange(len(cell)) - np.repeat(np.cumsum(size) - size, size)
    pieces = -(-size // LARGEST)
    before = np.cumsum(pieces) - pieces
    return before[cell] + rank * pieces[cell] // size[cell]


def _centres(X: NDArray[np.float32], count: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """At most `count` centres of rows X, by Lloyd's iterations on a sample."""
    some = X
    if len(X) > PER_CENTRE * count:
        some = X[np.sort(rng.choice(len(X), PER_CENTRE * count, replace=False))]
    V = some[np.sort(rng.choice(len(some), min(count, len(some)), replace=False))]
    for _ in range(LLOYD):
        near = _nearest_centre(some, V, 1)
        order = np.argsort(near, kind="stable")
        used, first = np.unique(near[order], return_index=True)
        sums = np.add.reduceat(some[order], first, axis=0)
        V = V.copy()
        V[used] = sums / np.diff(np.append(first, len(some)))[:, None]
    return V


def _nearest_centre(X: NDArray, V: NDArray, threads: int) -> NDArray[np.int64]:
    """The number of the centre V nearest to each row: (n,)."""
    near = np.empty(len(X), np.int64)
    half = 0.5 * np.einsum("ij,ij->i", V, V)

    def work(lo: int) -> None:
        near[lo : lo + 4 * _BLOCK] = (half - X[lo : lo + 4 * _BLOCK] @ V.T).argmin(axis=1)

    run_parts(work, range(0, len(X), 4 * _BLOCK), threads)
    return near


# ---------------------------------------------------------------------- compiled
@njit(error_model="numpy")
def _keep_nearest(product, half, lo, own, mine, score, places):
    """Keep, in each row of `places`, those with the least half |y|^2 - x'y, in rising order.

    product (rows, m) has x'y of the rows `mine` with those at places lo .. lo + m - 1; row r
    stands at place own + r itself (own = -1: nowhere).
    """
    k = places.shape[1]
    for u in range(product.shape[0]):
        r = mine[u]
        worst = score[r, k - 1]
        myself = own + r - lo if own >= 0 else -1
        for t in range(product.shape[1]):
            s = half[t] - product[u, t]
            if s < worst and t != myself:
                p = k - 1
                while p > 0 and score[r, p - 1] > s:
                    score[r, p] = score[r, p - 1]
                    places[r, p] = places[r, p - 1]
                    p -= 1
                score[r, p] = s
                places[r, p] = lo + t
                worst = score[r, k - 1]


@njit(error_model="numpy")
def _keep_outside(product, half, lo, part, own, score, found):
    """Keep in found[r, 0] the row of another part than own[r] with the least half |y|^2 - x'y."""
    for r in range(product.shape[0]):
        for t in range(product.shape[1]):
            s = half[t] - product[r, t]
            if s < score[r] and part[t] != own[r]:
                score[r] = s
                found[r, 0] = lo + t


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _squared(x, y):
    s = np.float32(0.0)
    for q in range(x.size):
        e = x[q] - y[q]
        s += e * e
    return s


@njit(error_model="numpy")
def _measure(rows, X, places, squared):
    """Squared distances of X (m, d) to the rows at `places` (m, k), both sorted by these."""
    k = places.shape[1]
    for r in range(places.shape[0]):
        for t in range(k):
            j = places[r, t]
            s = _squared(X[r], rows[j])
            p = t
            while p > 0 and squared[r, p - 1] > s:
                squared[r, p] = squared[r, p - 1]
                places[r, p] = places[r, p - 1]
                p -= 1
            squared[r, p] = s
            places[r, p] = j
