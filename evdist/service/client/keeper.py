"""Jobs whose flow run was killed come back by themselves, whether or not a client waits for them.

A run that ends with its pod (evicted, out of memory, its node lost) leaves a job that says it runs
and that no process works at. Here the last run of every job of the past day is looked at: where it
was killed, the next one is queued, as `job.resume()` would, and from the last checkpoint. A job
that is killed again and again, as by a limit of memory, is left alone after a few runs.

Two keepers, or a keeper and a client that waits, make one new run: it has a key of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort

from evdist.service.client.deployment import Deployment
from evdist.service.client.turns import TAKES_TURNS
from evdist.service.jobs import JobError, JobFolder, JobState
from evdist.stores.encoding import StoreError

logger = logging.getLogger("evdist.keeper")

#: Runs that are looked at; the server gives no more at once.
_MOST = 200
_RECENT = timedelta(days=1)
_PREFIX = "evdist-job:"


@dataclass
class Kept:
    """What one look found: numbers for the metrics."""

    #: State of a flow run -> how many of the past day are in it.
    runs: dict[str, int] = field(default_factory=dict)
    #: Seconds since the oldest run that waits was asked for.
    oldest_waiting: float = 0.0
    #: Work pool -> workers that are online.
    workers: dict[str, int] = field(default_factory=dict)
    #: Jobs that were queued again now, and those that were killed too often for that.
    restarted: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)


def look(api_url: str, restarts: int, *, now: datetime | None = None) -> Kept:
    """Look at the runs of the past day, and queue again those that were killed."""
    backend = Deployment(api_url)
    now = now or datetime.now(UTC)
    runs = backend.asked(lambda client: _recent(client, now))
    found = Kept(workers=backend.asked(lambda client: _workers(client, runs)))
    for run in runs:
        name = run.state.type.value if run.state is not None else "UNKNOWN"
        found.runs[name] = found.runs.get(name, 0) + 1
        if name in ("SCHEDULED", "PENDING"):
            waited = (now - run.created).total_seconds()
            found.oldest_waiting = max(found.oldest_waiting, waited)
    for job, (last, count) in _jobs(runs).items():
        if (killed := _killed(backend, last)) is None:
            continue
        if count > restarts:
            found.given_up.append(job)
            continue
        try:
            again = Deployment(api_url, _deployment(backend, last), user=_user(last))
            again.start(killed, killed.config)
        except JobError as error:
            logger.warning("%s was killed and could not be queued again: %s", job, error)
            continue
        logger.warning("%s was killed: queued again, run %d", job, count + 1)
        found.restarted.append(job)
    return found


def _recent(client: SyncPrefectClient, now: datetime) -> list[Any]:
    """Runs of jobs of the past day, the latest first."""
    when = FlowRunFilterExpectedStartTime.model_validate({"after_": now - _RECENT})
    return client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            tags=FlowRunFilterTags(all_=[TAKES_TURNS]), expected_start_time=when
        ),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=_MOST,
    )


def _jobs(runs: list[Any]) -> dict[str, tuple[Any, int]]:
    """Job -> its last run, by the server's clock, and how many it has had."""
    found: dict[str, tuple[Any, int]] = {}
    for run in sorted(runs, key=lambda one: one.created):
        for tag in run.tags:
            if tag.startswith(_PREFIX):
                job = tag.removeprefix(_PREFIX)
                found[job] = (run, found.get(job, (None, 0))[1] + 1)
    return found


def _killed(backend: Deployment, run: Any) -> JobFolder | None:
    """The folder of a job whose last run was killed; None for any other.

    A run that says it works and has been silent for a minute counts, as for a client.
    """
    if run.state is None or run.state.type in (StateType.COMPLETED, StateType.SCHEDULED):
        return None
    config: Mapping[str, Any] = run.parameters.get("config") or {}
    try:
        folder = JobFolder.open(config["folder"])
        return folder if backend.state(folder) is JobState.STOPPED else None
    except (KeyError, StoreError, JobError, OSError):
        return None


def _deployment(backend: Deployment, run: Any) -> str:
    """FLOW/DEPLOYMENT of a run."""

    def ask(client: SyncPrefectClient) -> str:
        deployment = client.read_deployment(run.deployment_id)
        return f"{client.read_flow(deployment.flow_id).name}/{deployment.name}"

    return backend.asked(ask)


def _user(run: Any) -> str:
    named = [tag for tag in run.tags if tag.startswith("evdist-user:")]
    return named[0].partition(":")[2] if named else "anyone"


def _workers(client: SyncPrefectClient, runs: list[Any]) -> dict[str, int]:
    """Work pools, and how many of their workers are online."""
    pools = {pool.name for pool in client.read_work_pools()}
    pools |= {run.work_pool_name for run in runs if run.work_pool_name}
    found = {}
    for pool in sorted(pools):
        workers = client.read_workers_for_work_pool(pool)
        online = [getattr(one.status, "value", one.status) == "ONLINE" for one in workers]
        found[pool] = sum(online)
    return found
