"""A bar and a table in Prefect that follow the sweeps, written beside the work.

A thread of its own writes the last state every few seconds, each artifact in its place: a server
that is away or slow keeps no sweep waiting, and a long fit leaves two artifacts, not thousands.
"""

from __future__ import annotations

import contextvars
import json
import logging
import threading
import time
from typing import Any
from uuid import UUID

from prefect.artifacts import (
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactUpdate

from evdist.engine.progress import Progress
from evdist.service.config import JobConfig

__all__ = ["Artifacts"]

logger = logging.getLogger("evdist.job")

#: Seconds between two updates of an artifact.
_SECONDS = 2.0
#: Seconds that the end of a stage waits for the last update.
_LAST = 10.0
#: Rows of the table of sweeps.
_ROWS = 50


class Artifacts:
    """A listener of one stage."""

    def __init__(self, config: JobConfig, name: str):
        self._key = f"{name}-{config.fingerprint[:12]}"
        self._bar: UUID | None = None
        self._table: UUID | None = None
        self._began = time.monotonic()
        self._rows: list[dict[str, Any]] = []
        self._percent: float | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._told = False

    def __call__(self, news: Progress) -> None:
        if not news.max_sweeps:
            return  # a stage that counts nothing is over soon
        if news.objective == news.objective:  # not NaN
            row = {
                "stage": news.stage,
                "sweep": news.sweep,
                "objective": news.objective,
                "change": news.change,
                "rows/s": round(news.rows_per_second),
            }
            self._rows = [*self._rows, row][-_ROWS:]
        self._percent = self._share(news)
        if self._thread is None:
            # The artifacts belong to the flow run of this thread.
            context = contextvars.copy_context()
            self._thread = threading.Thread(
                target=context.run, args=(self._write,), daemon=True, name="evdist-artifacts"
            )
            self._thread.start()

    def _share(self, news: Progress) -> float:
        if news.seconds_left == news.seconds_left:
            past = time.monotonic() - self._began
            return 100.0 * past / max(past + news.seconds_left, 1e-9)
        return 100.0 * news.sweep / news.max_sweeps

    def _write(self) -> None:
        while True:
            over = self._over.wait(_SECONDS)
            try:
                self._show(100.0 if over else self._percent or 0.0)
            except Exception as error:  # pictures are not worth a job
                if not self._told:
                    logger.warning("Prefect shows no progress: %s", error)
                self._told = True
            if over:
                return

    def _show(self, percent: float) -> None:
        if self._bar is None:
            self._bar = create_progress_artifact(
                percent, key=f"progress-{self._key}", description="at least this much is left"
            )
        else:
            update_progress_artifact(self._bar, percent)
        if not self._rows:
            return
        if self._table is None:
            self._table = create_table_artifact(self._rows, key=f"sweeps-{self._key}")
        else:
            with get_client(sync_client=True) as client:
                client.update_artifact(self._table, ArtifactUpdate(data=json.dumps(self._rows)))

    def close(self) -> None:
        """The stage is over; its last state is shown when the server answers soon."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(_LAST)
