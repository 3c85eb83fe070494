"""News of a fit: one kind, whoever works and whoever listens."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Progress"]


@dataclass(frozen=True)
class Progress:
    """One line of news from a fit: the single source of logs, bars and dashboards.

    A stage without sweeps counts something else in `sweep` and `max_sweeps`, which `unit` names,
    and has no objective: NaN.
    """

    stage: str
    sweep: int
    max_sweeps: int
    objective: float = math.nan
    change: float = math.nan
    rows_per_second: float = math.nan
    seconds_left: float = math.nan
    unit: str = "sweep"
