"""Small problems for the kernels, and slow references written from the definitions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.evclus.rows.sweep import Block, Links, block_objective, no_links, update_rows
from evdist.kernels.graph import draw_graph
from evdist.kernels.grid import project_rows
from evdist.kernels.simplex import solve_simplex
from evdist.kernels.vector import aligned_zeros, padded_width

#: Masses are whole multiples of 1 / GRID.
GRID = 1 << 24

#: One, two and three vectors of 16 columns: f = 3, 4, 10, 16, 17, 32, 38.
FAMILIES = {
    "singletons, c=2": FocalSets.simple(2, omega=False),
    "simple, c=2": FocalSets.simple(2),
    "simple, c=8": FocalSets.simple(8),
    "full, c=4": FocalSets.full(4),
    "pairs, c=5, no Omega, one triple": FocalSets.of(
        [*FocalSets.pairs(5, omega=False).sets, (0, 1, 2)], 5
    ),
    "full, c=5": FocalSets.full(5),
    "pairs, c=8": FocalSets.pairs(8),
}
NO_WEIGHT = np.zeros(0, np.float32)


def units(M: NDArray) -> NDArray[np.int64]:
    """Masses in whole grid units; fails when they are not whole."""
    scaled = M.astype(np.float64) * GRID
    assert (scaled == np.rint(scaled)).all()
    return scaled.astype(np.int64)


def kkt_residual(S: NDArray, u: NDArray, m: NDArray) -> float:
    """How far m is from the optimality conditions, relative to the numbers of the program.

    g = S m - u must equal its smallest value nu wherever m > 0.
    """
    assert (m >= 0).all()
    assert abs(m.sum() - 1) < 1e-14
    g = S @ m - u
    scale = max(np.abs(S).max(), np.abs(u).max())
    return 0.0 if scale == 0 else float((g[m > 0] - g.min()).max() / scale)


@dataclass(frozen=True)
class Case:
    """Everything `update_rows` takes; `delta` is the (n, n) symmetric matrix behind the pairs."""

    focal: FocalSets
    M: NDArray[np.float32]
    table: NDArray[np.float32]
    P: NDArray[np.float32]
    block: Block
    weight: NDArray[np.float32]
    links: Links
    bounds: NDArray[np.int64]
    delta: NDArray[np.float32]

    @property
    def n(self) -> int:
        return len(self.M)

    def copy(self) -> Case:
        """Masses and table of its own; what the kernels only read is shared."""
        table = aligned_zeros(*self.table.shape)
        table[:] = self.table
        return replace(self, M=self.M.copy(), table=table)

    def update(self, rows: NDArray, block: Block | None = None) -> NDArray[np.float64]:
        """Minimise over `rows`; returns the change that each row of the block brought."""
        block = self.block if block is None else block
        change = np.zeros(len(block.first))
        update_rows(
            self.M, self.table, self.P, block, self.weight, self.links,
            np.asarray(rows, np.int64), change,
        )  # fmt: skip
        return change

    def sweep(self) -> float:
        return float(self.update(np.arange(self.n)).sum())

    def objective(self) -> float:
        """As the kernel sums it: every pair and link is kept by both of its rows."""
        return float(self.sums().sum()) / 2

    def sums(self) -> NDArray[np.float64]:
        """Stress and link penalty of all rows."""
        cuts = np.array([0, self.n])
        return block_objective(self.M, self.table, self.block, self.weight, self.links, cuts)[0]

    def partners(self, i: int) -> NDArray[np.int64]:
        start = self.block.first[i - self.block.row0]
        stop = start + self.block.degree[i - self.block.row0]
        return self.block.partner[start:stop].astype(np.int64)

    def slice(self, lo: int, hi: int) -> Block:
        """The rows lo..hi-1 of the block, as a block of their own."""
        start, stop = self.block.first[lo], self.block.first[hi - 1] + self.block.degree[hi - 1]
        return Block(
            lo,
            self.block.first[lo:hi] - start,
            self.block.degree[lo:hi],
            self.block.partner[start:stop],
            self.block.delta[start:stop],
        )

    # ------------------------------------------------------------------ from the definitions
    def row_program(self, i: int) -> tuple[NDArray, NDArray]:
        """(S, u) with g(m_i) = 1/2 m'Sm - u'm + constant; k-CEVCLUS eqs. (18)-(20)."""
        j = self.partners(i)
        A = self.M[j].astype(float) @ self.focal.C
        w = self.pair_weight(i, j)
        S = 2 * A.T @ (w[:, None] * A)
        u = 2 * A.T @ (w * self.delta[i, j])
        if self.links.first.size:
            for t in range(self.links.first[i], self.links.first[i + 1]):
                other = self.M[self.links.other[t]].astype(float)
                u -= self.links.penalty * self.links.sign[t] * (self.links.Q @ other)
        return S, u

    def row_minimiser(self, i: int) -> NDArray[np.float64]:
        S, u = self.row_program(i)
        return solve_simplex(S, u, np.full(len(self.focal), 1 / len(self.focal)))

    def row_cost(self, i: int, m: NDArray) -> float:
        """Terms of the objective that hold row i, were its masses `m`."""
        j = self.partners(i)
        kappa = self.M[j].astype(float) @ self.focal.C @ m
        cost = float(self.pair_weight(i, j) @ (kappa - self.delta[i, j]) ** 2)
        if self.links.first.size:
            for t in range(self.links.first[i], self.links.first[i + 1]):
                other = self.M[self.links.other[t]].astype(float)
                cost += self.links.penalty * link_cost(self.focal, m, other, self.links.sign[t])
        return cost

    def pair_weight(self, i: int, j: NDArray) -> NDArray[np.float64]:
        if not self.weight.size:
            return np.ones(len(j))
        return (self.weight[i] * self.weight[j]).astype(float)  # a float32, as the kernels take it


def link_cost(focal: FocalSets, m1: NDArray, m2: NDArray, sign: float) -> float:
    """One term of J_ML (sign +1) or J_CL (sign -1), from the plausibilities; eqs. (8), (10)."""
    conflict = sum(
        m1[a] * m2[b]
        for a, A in enumerate(focal.sets)
        for b, B in enumerate(focal.sets)
        if not set(A) & set(B)
    )
    same = 1 - conflict
    apart = 1 - m1[0] - m2[0] + m1[0] * m2[0]
    apart -= sum(m1[q] * m2[q] for q, A in enumerate(focal.sets) if len(A) == 1)
    return apart + 1 - same if sign > 0 else same + 1 - apart


def conflict_table(focal: FocalSets) -> NDArray[np.float32]:
    """C as the only projection, padded: (1, f, F)."""
    f = len(focal)
    P = np.zeros((1, f, padded_width(f)), np.float32)
    P[0, :, :f] = focal.C
    return P


def make_case(
    focal: FocalSets,
    n: int = 40,
    k: int = 12,
    seed: int = 0,
    *,
    weighted: bool = False,
    n_links: int = 0,
    penalty: float = 2.0,
) -> Case:
    """Points in three groups, a drawn graph on them, and random masses."""
    rng = np.random.default_rng([seed, n, k, len(focal)])
    points = rng.normal(size=(n, 2)) + 4 * rng.integers(0, 3, n)[:, None]
    square = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    delta = (1 - np.exp(-3 * square / np.quantile(square, 0.6))).astype(np.float32)
    graph = draw_graph(n, k, rng)
    partner, degree = graph.partners(0, n)
    block = Block(
        0,
        np.arange(n, dtype=np.int64) * graph.k,
        degree,
        partner.reshape(-1),
        delta[np.arange(n)[:, None], partner].reshape(-1),
    )
    # A few rows on vertices and faces: zeros and ties are the usual state of a fit.
    M = rng.dirichlet(np.full(len(focal), 0.5), n).astype(np.float32)
    M[::5] = np.eye(len(focal), dtype=np.float32)[rng.integers(0, len(focal), len(M[::5]))]
    P = conflict_table(focal)
    table = aligned_zeros(n, P.shape[2])
    project_rows(M, P, table, 0, n)
    weight = rng.uniform(0.1, 3, n).astype(np.float32) if weighted else NO_WEIGHT
    links = make_links(focal, n, n_links, penalty, rng) if n_links else no_links(len(focal))
    return Case(focal, M, table, P, block, weight, links, graph.bounds, delta)


def make_links(
    focal: FocalSets, n: int, n_links: int, penalty: float, rng: np.random.Generator
) -> Links:
    """Must-links and cannot-links between different random objects, in both their rows."""
    i, shift = rng.integers(0, n, n_links), rng.integers(1, n, n_links)
    j, sign = (i + shift) % n, rng.choice([-1.0, 1.0], n_links)
    return compressed(focal, n, i, j, sign, penalty)


def compressed(
    focal: FocalSets, n: int, i: NDArray, j: NDArray, sign: NDArray, penalty: float
) -> Links:
    mine, other = np.concatenate([i, j]), np.concatenate([j, i])
    both = np.concatenate([sign, sign]).astype(float)
    at = np.argsort(mine, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(mine, minlength=n))]).astype(np.int64)
    # A copy: the matrices of a family are read-only, another type to the compiler.
    Q = np.array(focal.C + focal.E)
    return Links(first, other[at].astype(np.int64), both[at], Q, penalty)
