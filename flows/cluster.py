"""The flow `cluster`: any job, from a configuration to a folder with the answer."""

from __future__ import annotations

from prefect import State, flow
from prefect.states import Cancelled

from evdist.service.config import JobConfig
from evdist.service.jobs import JobCancelled, stages_of
from flows.stages import enter_stages, reachable, whole

__all__ = ["cluster"]


@flow(name="cluster", persist_result=False)
def cluster(config: JobConfig, links_in_manifest: bool = False) -> str | State:
    """Run a job of any task; its folder is the result.

    `links_in_manifest`: the links are too many to be sent and stand in the job folder.
    """
    config = reachable(whole(config, links_in_manifest))
    try:
        return enter_stages(config, stages_of(config)).folder.url
    except JobCancelled as stop:
        return Cancelled(message=str(stop))  # asked for, so not a failure
