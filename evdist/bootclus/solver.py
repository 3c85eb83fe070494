"""Bootclus from end to end: mixture, bootstrap, intervals, masses.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping.

Masses (algorithm 2) are such that the belief and the plausibility that two objects belong together
approach the bounds of the confidence interval of that probability. With m_i on the f nonempty focal
sets, Bel_ij = m_i' S m_j and 1 - Pl_ij = m_i' C m_j (eqs. (9)-(12)), and

    J(M) = sum over kept pairs (Bel_ij - P^l_ij)^2 + (Pl_ij - P^u_ij)^2            (eqs. (6), (13))

is what the sweeps of EVCLUS minimise when a pair has two residuals instead of one (eqs. (14)-(18)).

Differs from the paper and from R's bootclus:

* k pairs for each object, drawn at random and symmetric; k = n - 1 is the paper's;
* the sweeps start from the posterior probabilities of the mixture, not from random masses;
* the objective is J divided by the number of kept pairs, and is that of the masses returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets, mutual_neighbour_pairs
from evdist.bootclus.interval_kernel import interval_rows, mark_live, ranks
from evdist.bootclus.intervals import (
    CHUNK,
    MIN_BAND,
    WINDOW_BYTES,
    IntervalPairs,
    Intervals,
    Replicates,
    draw_band,
    some_intervals,
)
from evdist.engine.loop import Solution
from evdist.engine.memory import check_memory
from evdist.engine.progress import Progress
from evdist.engine.workers import smallest_worker
from evdist.evclus.irqp import Stop
from evdist.evclus.problem import Pairs, Plan, Problem
from evdist.evclus.rows.sweep import Block, assign_rows
from evdist.evclus.sampling import run_blocks
from evdist.evclus.sites import ClusterSite, Site
from evdist.evclus.solver import Solver
from evdist.kernels.graph import MIN_COLOURS
from evdist.kernels.grid import project_rows
from evdist.kernels.vector import aligned_zeros, padded_width

#: Fitted objects that a new one is compared with.
LANDMARKS = 300


def interval_focal_sets(
    family: FocalSets | str, posterior: NDArray[np.float64], neighbours: int
) -> FocalSets:
    """The focal sets of a family; the pairs of "select" by the similarity of section 4.2.

    "pairs" and "select" leave out Omega, as the paper does.
    """
    c = posterior.shape[1]
    match family:
        case FocalSets():
            return family
        case "select":
            return FocalSets.pairs(c, mutual_neighbour_pairs(posterior, neighbours), omega=False)
        case "pairs":
            return FocalSets.pairs(c, omega=False)
        case _:
            return getattr(FocalSets, family)(c)


def belief_projections(focal_sets: FocalSets) -> NDArray[np.float32]:
    """S and C, eqs. (9) and (10), over the nonempty focal sets, padded: (2, f - 1, F).

    Without the empty set, which a calibrated partition has no use for, masses stay normalised.
    """
    f = len(focal_sets) - 1
    P = np.zeros((2, f, padded_width(f)), np.float32)
    P[0, :, :f] = focal_sets.S[1:, 1:]
    P[1, :, :f] = focal_sets.C[1:, 1:]
    return P


@dataclass(frozen=True)
class MassFit:
    """Masses by object, the empty set among the focal sets, and the pairs behind them."""

    mass: NDArray[np.float32]
    solution: Solution
    intervals: Intervals
    order: NDArray[np.uint32]


def fit_masses(
    X: NDArray,
    replicates: Replicates,
    focal_sets: FocalSets,
    start: NDArray,
    *,
    confidence: float,
    k: int,
    stop: Stop,
    seed: int,
    site: Site,
    identity: dict[str, Any] | None = None,
    report: Callable[[Progress], None] | None = None,
    hold: Callable[[IntervalPairs], Pairs] | None = None,
) -> MassFit:
    """Algorithm 2 on intervals of level `confidence`.

    Parameters
    ----------
    X : (n, d) array
    replicates : Replicates
    focal_sets : FocalSets
    start : (n, f - 1) array, masses on the nonempty focal sets to begin with
    k : int, pairs kept for each object
    identity : what a checkpoint must agree with
    hold : makes the intervals and keeps them where the site's sweeps can reach them. By default
        in memory; on a cluster each worker makes its own.
    """
    if report is not None:
        report(Progress("intervals", 0, 0))
    layout = draw_band(len(X), k, seed)
    order = layout.order
    made = IntervalPairs(X[order], layout.graph, replicates, confidence)
    pairs: Pairs = made
    if hold is not None:
        pairs = hold(made)
    elif not isinstance(site, ClusterSite):
        pairs = made.in_memory(site.n_threads)
    problem = Problem(
        focal_sets, pairs, Plan.of(layout.bounds), projections=belief_projections(focal_sets)
    )
    solve = Solver(site, 1.0 / made.n_pairs, stop, identity or {}, report)
    solution = solve(problem, np.asarray(start, dtype=np.float32)[order])
    mass = np.zeros((len(X), len(focal_sets)), np.float32)
    mass[order, 1:] = site.backend.on_host(solution.value)
    return MassFit(mass, solution, some_intervals(pairs, order), order)


def bayesian_masses(posterior: NDArray, focal_sets: FocalSets) -> NDArray[np.float32]:
    """Posterior probabilities as masses of the singletons: (n, f - 1), without the empty set."""
    mass = np.zeros((len(posterior), len(focal_sets) - 1), np.float32)
    mass[:, focal_sets.singletons - 1] = posterior
    return mass


# ---------------------------------------------------------------------- new objects
@dataclass(frozen=True, eq=False)
class Placement:
    """Places new objects: each gets the minimiser of its own program against fitted objects.

    The intervals of its pairs come from the same replicates, so that a new object is treated as
    the fitted ones are, and the others' masses are what the fit has found. (The replicates'
    posteriors alone would give intervals of the probabilities of clusters, whose labels are not
    what the fit has calibrated.)

    Attributes
    ----------
    X : (L, d) rows of the fitted objects
    mass : (L, f) their masses, the empty set's (zero) among them
    """

    X: NDArray
    mass: NDArray[np.float32]
    focal_sets: FocalSets
    replicates: Replicates
    confidence: float

    @cached_property
    def _posteriors(self) -> NDArray[np.float32]:
        post = np.empty((len(self.X), self.replicates.n_clusters, self.replicates.size), np.float32)
        self.replicates.posteriors(self.X, post)
        return post

    @cached_property
    def _table(self) -> NDArray[np.float32]:
        P, L = belief_projections(self.focal_sets), len(self.X)
        table = aligned_zeros(2 * L, P.shape[2])
        project_rows(np.ascontiguousarray(self.mass[:, 1:]), P, table, 0, L)
        return table

    def __call__(self, X: NDArray, n_threads: int = 1) -> NDArray[np.float32]:
        """Masses of the rows of X: (rows, f)."""
        n, L = len(X), len(self.X)
        mass = np.zeros((n, len(self.focal_sets)), np.float32)
        known, table = self._posteriors, self._table
        place = ranks(self.replicates.size, self.confidence)

        def fill(lo: int) -> None:
            hi = min(lo + CHUNK, n)
            rows = hi - lo
            post = np.concatenate([known, np.empty((rows, *known.shape[1:]), np.float32)])
            self.replicates.posteriors(X[lo:hi], post[L:])
            live = np.empty(post.shape[:2], bool)
            mark_live(post, live)
            partner = np.tile(np.arange(2 * L, dtype=np.uint32), rows)
            target = np.empty((rows, 2 * L), np.float32)
            interval_rows(
                post, live, np.arange(L, L + rows), partner.reshape(rows, 2 * L)[:, :L].astype(int),
                np.full(rows, L), *place, target,
            )  # fmt: skip
            first = np.arange(rows, dtype=np.int64) * (2 * L)
            block = Block(0, first, np.full(rows, 2 * L), partner, target.reshape(-1))
            found = np.zeros((rows, len(self.focal_sets) - 1), np.float32)
            assign_rows(found, table, block, 0, rows)
            mass[lo:hi, 1:] = found

        run_blocks(fill, range(0, n, CHUNK), n_threads)
        return mass


# ---------------------------------------------------------------------- before it starts
def check_fit_memory(shape: tuple[int, int], k: int, B: int, c: int, client: Any = None) -> None:
    """Refuse a fit that cannot fit, with the cure; on a cluster, by the smallest worker.

    A kept pair has two entries of 8 bytes; a row of masses, on all pairs of clusters, is held
    thrice beside two rows of the table; EM holds the counts and sums of a batch; a window the
    posteriors of some thousand objects under all replicates.
    """
    n, d = shape
    f = c + c * (c - 1) // 2
    workers = 1 if client is None else smallest_worker(client)[0]
    parts = {
        f"{n:,} x {k} kept pairs": 16 * n * k // workers,
        "masses and data": n * (4 * (2 * padded_width(f) + 3 * f) + 8 * (2 * d + 6)),
        "the replicates of a window": (
            WINDOW_BYTES + 4 * c * B * min(n, 8 * max(MIN_BAND, 2 * k) * MIN_COLOURS)
        ),
    }
    cure = "Lower n_dissimilarities or n_bootstrap, or use more workers."
    check_memory(parts, cure, client=client)
