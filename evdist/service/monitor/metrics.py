"""Metrics of the jobs for Prometheus, on the scheduler's own /metrics."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from prometheus_client.core import GaugeMetricFamily

from evdist.service.monitor.events import JOBS, read_jobs

__all__ = ["JobMetrics"]

#: Metric -> (key of the news, help).
_GAUGES = {
    "evdist_sweep": ("sweep", "Sweeps done in the present stage"),
    "evdist_objective": ("objective", "Objective after the last sweep"),
    "evdist_objective_change": ("change", "Change of the objective in the last sweep"),
    "evdist_rows_per_second": ("rows_per_second", "Rows updated per second"),
    "evdist_seconds_left": ("seconds_left", "Least time left of the present stage"),
}


class JobMetrics:
    """A collector that reads the scheduler's events when it is asked."""

    def __init__(self, scheduler: Any):
        self._scheduler = scheduler

    def collect(self) -> Iterator[GaugeMetricFamily]:
        jobs = read_jobs(self._scheduler.get_events(JOBS), time.time())
        for name, (key, words) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, words, labels=["job", "stage"])
            for job in jobs:
                value = job.last.get(key)
                if value is not None:
                    gauge.add_metric([job.job, job.last["stage"]], float(value))
            yield gauge
        seen = GaugeMetricFamily("evdist_last_news_seconds", "Clock time of the last news",
                                 labels=["job"])  # fmt: skip
        for job in jobs:
            seen.add_metric([job.job], job.when)
        yield seen
