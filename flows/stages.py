"""One Prefect task per stage of a job, with retries, logs and artifacts that move."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from prefect import task
from prefect.logging.handlers import APILogHandler

from evdist.registry import load
from evdist.service.config import Cluster, ConfigError, JobConfig
from evdist.service.jobs import JobCancelled, JobError, JobFolder, JobResult, JobState, run
from flows.artifacts import Artifacts

__all__ = ["enter_stages", "reachable", "stage", "whole"]


def reachable(config: JobConfig) -> JobConfig:
    """The configuration with the Dask cluster of this deployment, unless it names its own.

    EVDIST_SCHEDULER is the scheduler's address; EVDIST_WORKERS how many workers to ask for where
    the cluster grows by itself; EVDIST_TLS_CA, EVDIST_TLS_CERT and EVDIST_TLS_KEY are files.
    """
    address = os.environ.get("EVDIST_SCHEDULER")
    if not address or config.cluster.kind != "threads":
        return config
    names = ("CA", "CERT", "KEY")
    tls = {f"tls_{name.lower()}": os.environ.get(f"EVDIST_TLS_{name}") for name in names}
    workers = os.environ.get("EVDIST_WORKERS")
    cluster = Cluster(
        kind="scheduler", address=address, threads=config.cluster.threads,
        n_workers=int(workers) if workers else None, **tls,
    )  # fmt: skip
    return config.model_copy(update={"cluster": cluster})


def whole(config: JobConfig, links_in_manifest: bool) -> JobConfig:
    """The configuration with its links, where they are too many to be parameters."""
    if not links_in_manifest:
        return config
    return config.model_copy(update={"links": JobFolder.open(config.folder).config.links})


def _may_pass(task: Any, task_run: Any, state: Any) -> bool:
    """Whether trying again makes sense: not for a mistake that a person must mend."""
    try:
        state.result()
    except (ConfigError, JobCancelled):
        return False
    except JobError as error:
        return error.transient
    except Exception:
        return True
    return False


@task(
    task_run_name="{name}",
    retries=3,
    retry_delay_seconds=[5, 30, 120],
    retry_condition_fn=_may_pass,
    persist_result=False,
)
def stage(config: JobConfig, name: str) -> str:
    """Enter one stage; what was done before is not done again. The result is the job folder."""
    return run(config, through=name, listen=(Artifacts(config, name),), resume=False).folder.url


def enter_stages(config: JobConfig, names: tuple[str, ...]) -> JobResult:
    """All stages, one after the other; the last one's folder.

    A flow run that begins after a cancel was carried out is a wish to go on. A cancel that came
    while it was queued counts, and no retry of a stage takes it back.
    """
    folder = JobFolder.create(config)
    if folder.state is JobState.CANCELLED:
        folder.forget_cancel()
    with _logged():
        for name in names:
            stage(config, name)
    result = JobResult(JobFolder.open(config.folder))
    load("flows.answer:publish")(result)  # imports matplotlib, which no stage before needs
    return result


@contextmanager
def _logged() -> Iterator[None]:
    """Pass what the job says on to Prefect."""
    logger = logging.getLogger("evdist.job")
    handler = APILogHandler()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.flush()
