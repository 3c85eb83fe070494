"""Why a flow run has not begun, in one sentence."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.exceptions import ObjectNotFound

#: Runs that are counted; a longer queue is "at least" as long. The server gives no more at once.
_MOST = 200
#: States in which a worker has taken the run.
_TAKEN = {
    "Pending": "A worker has taken it and is about to start its process.",
    "Submitting": "A worker has taken it and is about to start its process.",
    "InfrastructurePending": "A worker has taken it: Kubernetes looks for a place, or fetches the "
    "image. kubectl get pods says which.",
    "AwaitingRetry": "It failed for a passing reason and is tried again after a pause.",
    "Paused": "It was paused on Prefect's pages.",
    "Suspended": "It was suspended on Prefect's pages.",
}


def why_queued(client: SyncPrefectClient, run: Any) -> str:
    """What a flow run waits for. Asked from the outside in: pool, queue, workers, place."""
    if run.state is not None and run.state.name in _TAKEN:
        return _TAKEN[run.state.name]
    pool = run.work_pool_name
    if not pool:
        return "Its deployment has no work pool."
    try:
        if client.read_work_pool(pool).is_paused:
            return f"The work pool {pool} is paused: prefect work-pool resume {pool}"
    except ObjectNotFound:
        return f"There is no work pool {pool}: the flows must be deployed again."
    name = run.work_queue_name or "default"
    with suppress(ObjectNotFound):
        if client.read_work_queue_by_name(name, pool).is_paused:
            return f"The work queue {name} of {pool} is paused: prefect work-queue resume {name}"
    workers = client.read_workers_for_work_pool(pool)
    if not any(getattr(one.status, "value", one.status) == "ONLINE" for one in workers):
        seen = max((one.last_heartbeat_time for one in workers if one.last_heartbeat_time),
                   default=None)  # fmt: skip
        last = f"; the last sign of one was at {seen:%Y-%m-%d %H:%M:%S} UTC" if seen else ""
        return f"No worker of the work pool {pool} is online{last}. It starts when one is."
    ahead, more = _ahead(client, pool, run)
    if not ahead:
        return "It is the next: it starts when a worker has room."
    words = "1 run of the queue goes" if ahead == 1 else f"{ahead} runs of the queue go"
    return f"{'At least ' if more else ''}{words} first."


def _ahead(client: SyncPrefectClient, pool: str, run: Any) -> tuple[int, bool]:
    """Runs of the pool with an earlier turn, and whether there may be more of them."""
    scheduled = FlowRunFilterStateType(any_=[StateType.SCHEDULED])
    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=scheduled)),
        work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])),
        sort=FlowRunSort.EXPECTED_START_TIME_ASC,
        limit=_MOST,
    )
    for place, one in enumerate(found):
        if one.id == run.id:
            return place, False
    return len(found), len(found) == _MOST
