"""Sweeps on a device until the objective stands still: k-CEVCLUS, algorithm 1 and eq. (21)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.gpu.arrays import State

__all__ = ["Course", "run", "sweep"]


class Rows(Protocol):
    """What a sweep does to rows, whole (`TorchRows`) or in parts (`PartRows`)."""

    def update(self, state: State, colour: int, places: Tensor | None = None) -> None: ...

    def objective(self, state: State) -> Tensor: ...


@dataclass
class Course:
    """How P problems came along: objectives before the first and after every sweep, (P,) each."""

    history: list[np.ndarray] = field(default_factory=list)
    error: np.ndarray = field(default_factory=lambda: np.ones(0))
    tol: float = 0.0

    @property
    def objective(self) -> np.ndarray:
        return self.history[-1]

    @property
    def converged(self) -> bool:
        return bool((self.error < self.tol).all())


def sweep(rows: Rows, state: State) -> np.ndarray:
    """Update every row once, colour by colour; returns the change of each problem's sum, (P,)."""
    for colour in range(len(state.graph.colours)):
        rows.update(state, colour)
    return state.change.sum(1, dtype=torch.float64).cpu().numpy()


def run(
    rows: Rows,
    state: State,
    scale: float,
    tol: float,
    max_iter: int,
    report: Callable[[int, float], None] | None = None,
) -> Course:
    """Sweep until the running mean of the relative change is below `tol` in every problem.

    `scale` is one over the total weight of the pairs. The last objective is computed afresh.
    """
    course = Course([_objective(rows, state, scale)], np.ones(len(state.mass)), tol)
    while len(course.history) <= max_iter and not course.converged:
        before = course.objective
        now = np.maximum(before + sweep(rows, state) * scale, 0.0)
        # e_t = e_{t-1} / 2 + |J_t - J_{t-1}| / (2 J_{t-1}), eq. (21b); e_0 = 1.
        relative = np.divide(before - now, before, out=np.zeros_like(now), where=before > 0)
        course.error = 0.5 * course.error + 0.5 * relative
        course.history.append(now)
        if report is not None:
            report(len(course.history) - 1, float(now[0]))
    course.history[-1] = np.minimum(_objective(rows, state, scale), course.history[-1])
    return course


def _objective(rows: Rows, state: State, scale: float) -> np.ndarray:
    """Every pair is kept by both of its rows: half the sum over rows."""
    return rows.objective(state).cpu().numpy() * (0.5 * scale)
