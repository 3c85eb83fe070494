"""Users take turns: the k-th waiting job of each comes before the (k + 1)-th of any.

A Prefect worker takes the flow runs of its pool in the order of the times for which they are
scheduled. Left to themselves, these are the times of submission, and a user who queues a hundred
jobs keeps all others waiting until they are done. The client therefore schedules by start-time
fair queueing (Goyal, Vin and Cheng 1996), with the same cost for every job:

    S_j = max(v, S_{j-1} + step)

S_j is the time of a user's j-th job, v the virtual time: where the queue stands, which is the
earliest time of a job that waits. A user who comes late joins the present round: ahead of what
others have queued for later rounds, but not ahead of what has waited longest. The step only has to
order the jobs of a user; it is so short that all are due at once.

When nothing waits, v is the last full hour, so that scheduled times stay close to real ones. It is
not the present time: of two clients that find an empty queue a second apart, the later one would be
a thousand rounds behind.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import StateType
from prefect.client.schemas.sorting import FlowRunSort

#: Of runs that take turns; scheduled runs, and those started on Prefect's pages, have their times.
TAKES_TURNS = "evdist-turns"
_STEP = timedelta(milliseconds=1)
#: Nothing is put ahead of a run that has waited for so long.
_LONGEST = timedelta(days=1)


def tags(user: str) -> list[str]:
    """Tags of the runs of a user."""
    return [TAKES_TURNS, f"evdist-user:{user}"]


def next_turn(client: SyncPrefectClient, pool: str | None, user: str) -> datetime:
    """The time for which the next job of a user is scheduled."""

    def time_of(sort: FlowRunSort, tag: str = TAKES_TURNS, **which: Any) -> datetime | None:
        found = client.read_flow_runs(
            flow_run_filter=FlowRunFilter(tags=FlowRunFilterTags(all_=[tag]), **which),
            work_pool_filter=WorkPoolFilter(name=WorkPoolFilterName(any_=[pool])) if pool else None,
            sort=sort,
            limit=1,
        )
        return found[0].expected_start_time if found else None

    scheduled = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
    begun = FlowRunFilterStartTime(is_null_=False)
    return turn(
        datetime.now(UTC),
        waits=time_of(FlowRunSort.EXPECTED_START_TIME_ASC, state=scheduled),
        began=time_of(FlowRunSort.START_TIME_DESC, start_time=begun),
        own=time_of(FlowRunSort.EXPECTED_START_TIME_DESC, tags(user)[1]),
    )


def turn(
    now: datetime, waits: datetime | None, began: datetime | None, own: datetime | None
) -> datetime:
    """S_j of the module.

    Parameters
    ----------
    waits, began : datetime or None
        Times of the first run that waits and of the run that began last. The queue stands at the
        first, unless that run waits in vain, in a queue that no worker serves.
    own : datetime or None
        Time of the user's last run, S_{j-1}.
    """
    hour = now.replace(minute=0, second=0, microsecond=0)
    virtual = max(hour if waits is None else waits, began or now - _LONGEST, now - _LONGEST)
    if own is not None:
        virtual = max(virtual, own + _STEP)
    return min(virtual, now)  # a client whose clock is ahead delays no other one
