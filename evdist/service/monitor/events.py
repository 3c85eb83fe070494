"""News of a fit as events of the Dask scheduler: published by the client and by the workers, read
by the page and by the metrics.

```
topic "evdist"        {"job", "stage", "sweep", "max_sweeps", "objective", "change",
                       "rows_per_second", "seconds_left", "unit"}   from the client, every sweep
topic "evdist-ends"   {"job", "stage", "good", "seconds", "retries"}    from the client, at the end
topic "evdist-steps"  {"worker", "step", "steps", "rows"}  from a worker, every colour step; owners
                       of partitions add "partitions", "moved" and "received" (bytes)
```
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from evdist.engine.progress import Progress
from evdist.engine.steps import STEPS

__all__ = ["ENDS", "JOBS", "STEPS", "JobNews", "Publisher", "read_ends", "read_jobs"]

JOBS, ENDS = "evdist", "evdist-ends"
#: Seconds between two events of one stage.
_SECONDS = 0.25
#: Seconds after which a job without news is no longer shown.
_FORGOTTEN = 3600.0


class Publisher:
    """A listener that passes news on to the scheduler of `client`."""

    def __init__(self, client: Any, job: str):
        self._client, self._job = client, job
        self._last: tuple[str, float] = ("", 0.0)

    def __call__(self, news: Progress) -> None:
        stage, when = self._last
        now = time.monotonic()
        if stage == news.stage and now - when < _SECONDS:
            return
        self._last = (news.stage, now)
        values = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(news).items()
        }
        self._client.log_event(JOBS, {"job": self._job, **values})

    def end(self, stage: str, good: bool, seconds: float, retries: int) -> None:
        """The last word of a run, where the scheduler still hears it."""
        if self._client.status == "running":
            self._client.log_event(
                ENDS,
                {"job": self._job, "stage": stage, "good": good, "seconds": seconds,
                 "retries": retries},
            )  # fmt: skip


@dataclass
class JobNews:
    """What the events say of one job: the last news, and curves of the present stage."""

    job: str
    last: dict[str, Any] = field(default_factory=dict)
    when: float = 0.0
    sweeps: list[int] = field(default_factory=list)
    objectives: list[float] = field(default_factory=list)
    speeds: list[float] = field(default_factory=list)

    def add(self, when: float, event: dict[str, Any]) -> None:
        if event["stage"] != self.last.get("stage") or event["sweep"] < self.last["sweep"]:
            self.sweeps, self.objectives, self.speeds = [], [], []
        self.last, self.when = event, when
        if event["objective"] is not None:
            self.sweeps.append(event["sweep"])
            self.objectives.append(event["objective"])
            self.speeds.append(event["rows_per_second"] or 0.0)

    @property
    def ends(self) -> float | None:
        """Clock time at which it ends at the earliest."""
        left = self.last.get("seconds_left")
        return None if left is None else self.when + left


def read_ends(events: Iterable[tuple[float, Any]]) -> list[tuple[float, dict[str, Any]]]:
    """(time, what was told) of every run that has ended."""
    return [(when, event) for when, event in events if isinstance(event, dict) and "good" in event]


def read_jobs(
    events: Iterable[tuple[float, Any]],
    now: float,
    ends: Iterable[tuple[float, dict[str, Any]]] = (),
) -> list[JobNews]:
    """Jobs that had news within the last hour, the latest first; not those that have ended."""
    over = {event["job"]: when for when, event in ends}
    jobs: dict[str, JobNews] = {}
    for when, event in events:
        if now - when < _FORGOTTEN and isinstance(event, dict) and "stage" in event:
            jobs.setdefault(event["job"], JobNews(event["job"])).add(when, event)
    living = [job for job in jobs.values() if job.when > over.get(job.job, 0.0)]
    return sorted(living, key=lambda job: job.when, reverse=True)
