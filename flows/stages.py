"""One Prefect task per stage of a job, with retries, logs and artifacts that move."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from prefect import task
from prefect.artifacts import (
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.logging.handlers import APILogHandler

from evdist.engine.progress import Progress
from evdist.registry import load
from evdist.service.config import Cluster, ConfigError, JobConfig
from evdist.service.jobs import JobCancelled, JobError, JobFolder, JobResult, JobState, run

__all__ = ["enter_stages", "reachable", "stage"]

#: Seconds between two updates of an artifact.
_SECONDS = 2.0
#: Rows of the table of sweeps.
_ROWS = 50


def reachable(config: JobConfig) -> JobConfig:
    """The configuration with the Dask cluster of this deployment, unless it names its own.

    EVDIST_SCHEDULER is the scheduler's address; EVDIST_TLS_CA, EVDIST_TLS_CERT and EVDIST_TLS_KEY
    are files.
    """
    address = os.environ.get("EVDIST_SCHEDULER")
    if not address or config.cluster.kind != "threads":
        return config
    names = ("CA", "CERT", "KEY")
    tls = {f"tls_{name.lower()}": os.environ.get(f"EVDIST_TLS_{name}") for name in names}
    cluster = Cluster(kind="scheduler", address=address, threads=config.cluster.threads, **tls)
    return config.model_copy(update={"cluster": cluster})


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


class Artifacts:
    """A listener: a bar and a table in Prefect that follow the sweeps."""

    def __init__(self, config: JobConfig, name: str):
        self._key = f"{name}-{config.fingerprint[:12]}"
        self._bar: UUID | None = None
        self._when = 0.0
        self._began = time.monotonic()
        self._rows: list[dict[str, Any]] = []

    def __call__(self, news: Progress) -> None:
        if not news.max_sweeps:
            return  # a stage that counts nothing is over soon
        if news.objective == news.objective:  # not NaN
            self._rows.append(
                {
                    "stage": news.stage,
                    "sweep": news.sweep,
                    "objective": news.objective,
                    "change": news.change,
                    "rows/s": round(news.rows_per_second),
                }
            )
        if time.monotonic() - self._when >= _SECONDS:
            self._show(self._share(news))

    def _share(self, news: Progress) -> float:
        if news.seconds_left == news.seconds_left:
            past = time.monotonic() - self._began
            return 100.0 * past / max(past + news.seconds_left, 1e-9)
        return 100.0 * news.sweep / news.max_sweeps

    def _show(self, percent: float) -> None:
        self._when = time.monotonic()
        if self._bar is None:
            self._bar = create_progress_artifact(
                percent, key=f"progress-{self._key}", description="at least this much is left"
            )
        else:
            update_progress_artifact(self._bar, percent)
        if self._rows:
            create_table_artifact(self._rows[-_ROWS:], key=f"sweeps-{self._key}")

    def close(self) -> None:
        """The stage is over."""
        if self._bar is not None or self._rows:
            self._show(100.0)
