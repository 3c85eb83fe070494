"""Where a fit on a device starts: d0 and landmarks, solved from many starts side by side.

The algorithms are those of `evdist.evclus.start`, with the same random numbers; all starts, and
all values of d0, are problems on one graph and are swept together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evdist.belief import FocalSets, nonspecificity
from evdist.evclus.gpu.arrays import (
    Graph,
    Partners,
    State,
    on_grid,
    project,
    tile_count,
    tiles,
    untile,
)
from evdist.evclus.gpu.cuda_rows import Rows, rows_on
from evdist.evclus.gpu.data import gamma_of, matrix, sample
from evdist.evclus.gpu.sweeps import run
from evdist.kernels.circulant import Circulant

__all__ = ["Landmarks", "choose_d0", "fit_landmarks", "place", "positive_quantile"]

#: d0 = "auto" tries these quantiles of the dissimilarities.
QUANTILES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
#: Criteria this close count as equal.
TIE = 0.05
#: Every start gets this far; the best of them is then run to the end.
TRIAL_TOL, TRIAL_SWEEPS = 1e-4, 60
TRIAL_STARTS = 4
#: Objects placed at a time.
_ROWS = 1 << 19


@dataclass(frozen=True)
class Landmarks:
    """Objects with known masses, against which others are placed.

    `data` (T, d, 32) are their attributes in tiles, `mass` (L, f) their masses.
    """

    data: Tensor
    mass: Tensor
    focal_sets: FocalSets
    d0: float


@dataclass(frozen=True)
class _Trial:
    """A small set of objects: all its dissimilarities, and those of its kept pairs, raw."""

    n: int
    order: np.ndarray
    graph: Graph
    D: np.ndarray
    kept: Tensor

    @classmethod
    def of(cls, data: Tensor, n: int, code: tuple[int, int], k: int, seed: int) -> _Trial:
        rng = np.random.default_rng([seed, n, min(k, n - 1)])
        order = rng.permutation(n)
        graph = Graph.of(Circulant.draw(n, min(k, n - 1), rng), data.device)
        rows = rows_on(data.device, 2)
        D = matrix(rows, data, n, code)
        places = torch.as_tensor(order, device=data.device)
        laid_out = tiles(untile(data, n)[places])
        return cls(n, order, graph, D.cpu().numpy(), sample(rows, laid_out, graph, code, None,
                                                            torch.float32))  # fmt: skip

    def starts(self, focal_sets: FocalSets, count: int, seed: int, init: str) -> np.ndarray:
        """Initial masses by object, (count, n, f): k-means++ seeds and random ones by turns."""
        f = len(focal_sets)
        out = np.empty((count, self.n, f), np.float32)
        for i in range(count):
            rng = np.random.default_rng([seed, 7, i])
            seeded = init == "k-means++" or (init != "random" and i % 2 == 0)
            if seeded and (focal_sets.singletons >= 0).all():
                out[i] = 0.3 / f
                near = self._nearest_seed(focal_sets.n_clusters, rng)
                out[i, np.arange(self.n), focal_sets.singletons[near]] += 0.7
            else:
                out[i] = rng.dirichlet(np.ones(f), self.n)
        return out

    def _nearest_seed(self, c: int, rng: np.random.Generator) -> np.ndarray:
        """Number of the nearest of c k-means++ seeds, greedy, for each object."""
        near = self.D[[int(rng.integers(self.n))]].astype(float)
        for _ in range(c - 1):
            square = near.min(axis=0) ** 2
            chance = square / square.sum() if square.any() else np.full(self.n, 1 / self.n)
            tries = self.D[rng.choice(self.n, 2 + int(np.log(c + 1)), p=chance)]
            left = np.minimum(tries**2, square).sum(axis=1)
            near = np.vstack([near, tries[np.argmin(left)]])
        return near.argmin(axis=0)

    def solve(
        self, rows: Rows, starts: np.ndarray, d0: np.ndarray, focal_sets: FocalSets,
        tol: float, max_iter: int,
    ) -> tuple[np.ndarray, State]:  # fmt: skip
        """Objectives (P,) of problems from `starts` (P, n, f) with `d0` (P,), and their state."""
        gamma = torch.tensor([gamma_of(d) for d in d0], dtype=torch.float64)
        D = self.kept.double()
        parts = [-torch.expm1(-g * D * D).float() for g in gamma.tolist()]
        mass = torch.as_tensor(starts[:, self.order], device=D.device)
        state = State.of(self.graph, torch.stack(parts), tiles(on_grid(mass)), focal_sets.C)
        course = run(rows, state, self.scale, tol, max_iter)
        return course.objective, state

    @property
    def scale(self) -> float:
        return 2.0 / self.graph.entries

    def masses(self, state: State) -> np.ndarray:
        """By object, (P, n, f)."""
        out = np.empty((len(state.mass), self.n, state.f), np.float32)
        out[:, self.order] = untile(state.mass, self.n).cpu().numpy()
        return out

    def random_dissimilarities(self, seed: int, n_pairs: int = 100_000) -> np.ndarray:
        """Of random pairs; of all pairs when there are fewer."""
        n = self.n
        if n * (n - 1) // 2 <= n_pairs:
            return self.D[np.triu_indices(n, 1)]
        rng = np.random.default_rng([seed, n])
        mine = rng.integers(0, n, n_pairs // 20, dtype=np.uint32)
        shift = rng.integers(1, n, (len(mine), 20), dtype=np.uint32)
        return self.D[mine[:, None], (mine[:, None].astype(np.int64) + shift) % n].ravel()


def positive_quantile(D: np.ndarray, q: float) -> float:
    """A quantile of the dissimilarities, or the next larger one when that is zero."""
    d0 = float(np.quantile(D, q))
    if d0 > 0:
        return d0
    positive = D[D > 0]
    if not positive.size:
        raise ValueError(
            "All dissimilarities are zero: every object is the same. There is nothing to cluster."
        )
    return float(positive.min())


def criterion(mass: np.ndarray, objective: float, spread: float, focal_sets: FocalSets) -> float:
    """N* + J / var(delta): nonspecificity plus the share of delta that is not explained."""
    bits = np.log2(max(focal_sets.n_clusters, 2))
    n_star = float(nonspecificity(mass.astype(float), focal_sets).mean() / bits)
    return n_star + (objective / spread if spread > 0 else 0.0)


def choose_d0(
    data: Tensor, n: int, code: tuple[int, int], n_clusters: int, *, k: int, seed: int
) -> tuple[float, list[tuple[float, float]]]:
    """The smallest quantile whose criterion is all but the best, and (quantile, criterion).

    `data` (T, d, 32) holds the attributes of a few objects.
    """
    focal_sets = FocalSets.simple(n_clusters)
    trial = _Trial.of(data, n, code, k, seed)
    rows = rows_on(data.device, len(focal_sets))
    starts = trial.starts(focal_sets, TRIAL_STARTS, seed, "auto")
    known = trial.random_dissimilarities(seed)
    tried = np.array([positive_quantile(known, q) for q in QUANTILES])
    objective, state = trial.solve(
        rows, np.tile(starts, (len(tried), 1, 1)), np.repeat(tried, TRIAL_STARTS), focal_sets,
        TRIAL_TOL, TRIAL_SWEEPS,
    )  # fmt: skip
    mass = trial.masses(state)
    spread = _variances(state)
    curve = []
    for i, q in enumerate(QUANTILES):
        best = i * TRIAL_STARTS + int(np.argmin(objective[i * TRIAL_STARTS :][:TRIAL_STARTS]))
        curve.append((q, criterion(mass[best], objective[best], spread[best], focal_sets)))
    least = min(value for _, value in curve)
    chosen = next(i for i, (_, value) in enumerate(curve) if value <= least + TIE)
    return float(tried[chosen]), curve


def _variances(state: State) -> np.ndarray:
    """Of the dissimilarities of kept pairs, (P,); places without a partner hold zeros."""
    delta, count = state.delta.double(), state.graph.entries
    mean = delta.sum((1, 2)) / count
    return ((delta * delta).sum((1, 2)) / count - mean * mean).cpu().numpy()


def fit_landmarks(
    data: Tensor, n: int, code: tuple[int, int], focal_sets: FocalSets, d0: float, *,
    k: int, n_starts: int, init: str, tol: float, max_iter: int, seed: int, everyone: bool,
) -> Landmarks:  # fmt: skip
    """Solve EVCLUS on a few objects from several starts and keep the best.

    Where they are `everyone`, their masses are those of the best start, not yet of the solution.
    """
    trial = _Trial.of(data, n, code, k, seed)
    rows = rows_on(data.device, len(focal_sets))
    starts = trial.starts(focal_sets, n_starts, seed, init)
    objective, state = trial.solve(
        rows, starts, np.full(n_starts, d0), focal_sets, TRIAL_TOL, TRIAL_SWEEPS
    )
    best = int(np.argmin(objective))
    if everyone:
        mass = starts[best]
    else:
        one = slice(best, best + 1)
        state = State.of(trial.graph, state.delta[one], state.mass[one].contiguous(), focal_sets.C)
        run(rows, state, trial.scale, tol, max_iter)
        mass = trial.masses(state)[0]
    return Landmarks(data, torch.as_tensor(mass, device=data.device), focal_sets, d0)


def place(
    landmarks: Landmarks, data: Tensor, n: int, code: tuple[int, int], *,
    k: int, seed: int, spread: bool = True,
) -> Tensor:  # fmt: skip
    """Masses in tiles (T, f, 32) of n objects `data` (T, d, 32), each against k landmarks.

    With `spread` each object meets landmarks of its own; without, all meet the same, so that what
    an object gets does not depend on its place among the others.
    """
    L, f = landmarks.mass.shape
    rows = rows_on(data.device, f)
    C = torch.as_tensor(np.asarray(landmarks.focal_sets.C, np.float32), device=data.device)
    table = project(tiles(on_grid(landmarks.mass)), C)
    k = min(k, L)
    shifts = np.sort(np.random.default_rng([seed, 11, L]).choice(L, k, replace=False))
    partners = Partners.landmarks(shifts, L, data.device)
    mass = torch.zeros(tile_count(n), f, 32, device=data.device)
    delta = torch.empty(k, min(n, _ROWS), device=data.device)
    gamma = gamma_of(landmarks.d0)
    for lo in range(0, n, _ROWS):
        count = min(_ROWS, n - lo)
        rows.distances(
            data, landmarks.data, delta, partners, code, gamma,
            lo=lo, first=0, rows=count, place=lo, spread=int(spread),
        )  # fmt: skip
        rows.assign(mass, table, delta[:, :count], partners, lo, count, lo, int(spread))
    return mass
