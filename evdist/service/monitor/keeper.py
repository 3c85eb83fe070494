"""``python -m evdist.service.monitor.keeper``: looks after Prefect, and tells Prometheus.

Every half minute it queues jobs again whose run was killed (`evdist.service.client.keeper`), asks
whether Prefect and its database answer, and how full the storage is. EVDIST_API_URL or
PREFECT_API_URL names the server, EVDIST_RESTARTS how often a job is queued again (3; 0 for never),
EVDIST_KEEPER_PORT where the metrics are (9108).
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator

from prometheus_client import start_http_server
from prometheus_client.core import REGISTRY, CounterMetricFamily, GaugeMetricFamily

from evdist.service.client.keeper import Kept, look
from evdist.service.jobs import JobError
from evdist.service.jobs.keeping import quota, total
from evdist.service.jobs.reach import prefect_away, storage_away
from evdist.stores.paths import is_local

logger = logging.getLogger("evdist.keeper")

_EVERY = 30.0
#: Seconds between two measurements of the storage: all its objects are listed.
_MEASURED = 600.0
Family = GaugeMetricFamily | CounterMetricFamily


class Keeper:
    """What is known since the last look, as a collector of Prometheus."""

    def __init__(self, api_url: str, storage: str, restarts: int):
        self.api_url, self.storage, self.restarts = api_url, storage, restarts
        self._kept, self._prefect, self._storage = Kept(), False, False
        self._restarted = 0
        self._held: tuple[float, int | None] = (0.0, None)

    def look(self) -> None:
        """Ask everybody; who does not answer is told by the metrics."""
        away = prefect_away(self.api_url)
        self._prefect = away is None
        lost = storage_away(self.storage)
        self._storage = lost is None
        if said := away or lost:
            logger.warning("%s", said)
            return
        try:
            self._kept = look(self.api_url, self.restarts)
            self._restarted += len(self._kept.restarted)
        except JobError as error:
            self._prefect = False
            logger.warning("%s", error)
        if quota() is not None and time.monotonic() > self._held[0]:
            self._held = (time.monotonic() + _MEASURED, total(self.storage))

    def collect(self) -> Iterator[Family]:
        yield _gauge("evdist_prefect_ready", "Prefect's server and its database answer",
                     self._prefect)  # fmt: skip
        yield _gauge("evdist_storage_ready", "The storage answers", self._storage)
        workers = GaugeMetricFamily("evdist_prefect_workers", "Prefect workers online",
                                    labels=["pool"])  # fmt: skip
        for pool, count in self._kept.workers.items():
            workers.add_metric([pool], count)
        yield workers
        runs = GaugeMetricFamily("evdist_prefect_runs", "Flow runs of the past day",
                                 labels=["state"])  # fmt: skip
        for state, count in self._kept.runs.items():
            runs.add_metric([state.lower()], count)
        yield runs
        yield _gauge("evdist_prefect_oldest_waiting_seconds", "Of a run that has not begun",
                     self._kept.oldest_waiting)  # fmt: skip
        yield CounterMetricFamily("evdist_prefect_restarts", "Killed jobs that were queued again",
                                  value=self._restarted)  # fmt: skip
        yield _gauge("evdist_prefect_given_up", "Jobs of the past day that were killed too often",
                     len(self._kept.given_up))  # fmt: skip
        limit, held = quota(), self._held[1]
        if limit is not None and held is not None:
            yield _gauge("evdist_storage_bytes", "Of all jobs and data", held)
            yield _gauge("evdist_storage_quota_bytes", "EVDIST_QUOTA", limit)
        if is_local(self.storage) and os.path.isdir(self.storage):
            disk = shutil.disk_usage(self.storage)
            yield _gauge("evdist_storage_disk_bytes", "Size of the storage's disk", disk.total)
            yield _gauge("evdist_storage_free_bytes", "Free on the storage's disk", disk.free)


def _gauge(name: str, words: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, words, value=float(value))


def main() -> int:
    """Look for as long as the process lives."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it tells of every request
    api_url = os.environ.get("EVDIST_API_URL") or os.environ.get("PREFECT_API_URL")
    storage = os.environ.get("EVDIST_STORAGE")
    if not api_url or not storage:
        sys.stderr.write("EVDIST_STORAGE and EVDIST_API_URL (or PREFECT_API_URL) must be set.\n")
        return 2
    keeper = Keeper(api_url, storage, int(os.environ.get("EVDIST_RESTARTS", "3")))
    REGISTRY.register(keeper)
    start_http_server(int(os.environ.get("EVDIST_KEEPER_PORT", "9108")))
    while True:
        try:
            keeper.look()
        except Exception:  # what a library raises today must not end the watch
            logger.exception("this look failed")
        time.sleep(_EVERY)


if __name__ == "__main__":
    sys.exit(main())
