"""What a fit reports while it works: one kind of message, one clock for speed and time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One message from a fit: the single source of logs, bars and dashboards.

    A stage without sweeps counts something else in `sweep` and `max_sweeps`, which `unit` names,
    and has no objective: NaN. `max_sweeps` is 0 when such a stage begins and counts nothing.
    """

    stage: str
    sweep: int
    max_sweeps: int
    objective: float = math.nan
    change: float = math.nan
    rows_per_second: float = math.nan
    seconds_left: float = math.nan
    unit: str = "sweep"


#: What a fit calls with every message; None where it reports to no callback.
Report = Callable[[Progress], None] | None


class Clock:
    """Reports the steps of one stage, with the speed and the time left since it began.

    Parameters
    ----------
    report : called with a `Progress` for every step; None reports nothing
    stage : str
    most : int
        Steps at most.
    rows : int
        Objects that one step visits.
    already : int
        Steps done before the clock began, by a run that this one continues.
    before : int
        Passes over the objects that were made before the first step and count for the speed.
    """

    def __init__(
        self,
        report: Report,
        stage: str,
        most: int,
        *,
        rows: int,
        already: int = 0,
        before: int = 0,
        unit: str = "sweep",
    ):
        self._report, self._stage, self._most, self._unit = report, stage, most, unit
        self._rows, self._already, self._before = rows, already, before
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since the stage began."""
        return time.perf_counter() - self._began

    def tell(
        self,
        done: int,
        objective: float = math.nan,
        change: float = math.nan,
        *,
        left: int | None = None,
        timed: int | None = None,
    ) -> None:
        """Report that `done` steps are done; `left` more are expected, by default all others.

        `timed` is the number of steps done by now, where several are reported one after the other.
        """
        if self._report is None:
            return
        steps = (done if timed is None else timed) - self._already + self._before
        each = max(self.seconds, 1e-9) / max(steps, 1)
        left = self._most - done if left is None else min(left, self._most - done)
        self._report(
            Progress(
                self._stage, done, self._most, objective, change, self._rows / each, left * each,
                self._unit,
            )
        )  # fmt: skip
