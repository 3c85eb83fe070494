"""Metrics of the jobs for Prometheus, on the scheduler's own /metrics."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import dask
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from evdist.engine.admission import book_of
from evdist.service.monitor.events import ENDS, JOBS, read_ends, read_jobs

#: Metric -> (key of the news, help).
_GAUGES = {
    "evdist_sweep": ("sweep", "Sweeps done in the current stage"),
    "evdist_objective": ("objective", "Objective after the last sweep"),
    "evdist_objective_change": ("change", "Change of the objective in the last sweep"),
    "evdist_rows_per_second": ("rows_per_second", "Rows updated per second"),
    "evdist_seconds_left": ("seconds_left", "Minimum remaining time of the current stage"),
}
Family = GaugeMetricFamily | CounterMetricFamily


class JobMetrics:
    """A collector that reads the scheduler's events, and its book of jobs, when it is asked."""

    def __init__(self, scheduler: Any):
        self._scheduler = scheduler

    def collect(self) -> Iterator[Family]:
        ends = read_ends(self._scheduler.get_events(ENDS))
        yield from self._progress(ends)
        yield from _outcomes([event for _, event in ends])
        yield from self._admission()
        yield from _certificate()

    def _progress(self, ends: list[tuple[float, dict[str, Any]]]) -> Iterator[Family]:
        """Of jobs at work; those that have ended are gone."""
        jobs = read_jobs(self._scheduler.get_events(JOBS), time.time(), ends)
        for name, (key, words) in _GAUGES.items():
            gauge = GaugeMetricFamily(name, words, labels=["job", "stage"])
            for job in jobs:
                value = job.last.get(key)
                if value is not None:
                    gauge.add_metric([job.job, job.last["stage"]], float(value))
            yield gauge
        seen = GaugeMetricFamily("evdist_last_news_seconds", "Time of the last update",
                                 labels=["job"])  # fmt: skip
        for job in jobs:
            seen.add_metric([job.job], job.when)
        yield seen

    def _admission(self) -> Iterator[Family]:
        book = book_of(self._scheduler)  # without jobs whose client is gone
        inside, waiting = list(book.inside.values()), len(book.waiting)
        jobs = GaugeMetricFamily("evdist_jobs", "Jobs on the cluster", labels=["state"])
        jobs.add_metric(["running"], len(inside))
        jobs.add_metric(["waiting"], waiting)
        yield jobs
        yield GaugeMetricFamily(
            "evdist_reserved_bytes", "Memory of each worker reserved by admitted jobs",
            value=float(sum(size for _, size in inside)),
        )  # fmt: skip


def _outcomes(ends: list[dict[str, Any]]) -> Iterator[Family]:
    count, seconds, retries = Counter[str](), Counter[str](), 0
    for event in ends:
        outcome = "done" if event["good"] else "failed"
        count[outcome] += 1
        seconds[outcome] += event["seconds"]
        retries += event["retries"]
    runs = CounterMetricFamily("evdist_runs", "Runs of stages that have ended", labels=["outcome"])
    spent = CounterMetricFamily("evdist_run_seconds", "Seconds of these runs", labels=["outcome"])
    for outcome in ("done", "failed"):
        runs.add_metric([outcome], count[outcome])
        spent.add_metric([outcome], seconds[outcome])
    yield runs
    yield spent
    yield CounterMetricFamily(
        "evdist_retries", "Reconnections of runs after a lost connection", value=retries
    )


def _certificate() -> Iterator[Family]:
    """When the scheduler's certificate ends; nothing without TLS."""
    path = dask.config.get("distributed.comm.tls.scheduler.cert", None)
    if not path or not Path(path).is_file():
        return
    try:
        from cryptography import x509  # only where there is TLS
    except ImportError:
        return
    certificate = x509.load_pem_x509_certificate(Path(path).read_bytes())
    yield GaugeMetricFamily(
        "evdist_certificate_expiry_seconds", "Time at which the certificate expires",
        value=certificate.not_valid_after_utc.astimezone(UTC).timestamp(),
    )  # fmt: skip
