"""A submitted job, as the person who submitted it sees it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evdist.engine.progress import Progress
from evdist.partition import CredalPartition
from evdist.partition.explain import Explanation
from evdist.partition.merge import ClusterTree
from evdist.progress import ProgressBar, one_line
from evdist.service.config import JobConfig
from evdist.service.jobs import JobCancelled, JobError, JobFolder, JobResult, JobState
from evdist.service.jobs.reach import storage_away, told_when_late
from evdist.stores.paths import read_bytes, replace_bytes

if TYPE_CHECKING:
    from evdist.partition.describe import Description

#: Seconds between looks at a job that is being waited for.
_LOOK = 0.2
#: The same of one that is queued, and of one that runs without news, after a while.
_LONGEST_LOOK, _LONGEST_AT_WORK = 3.0, 0.3
_OVER = (JobState.DONE, JobState.FAILED, JobState.CANCELLED, JobState.STOPPED)


class Backend(Protocol):
    """Who runs the jobs."""

    def preparing(self) -> AbstractContextManager[None]: ...

    def start(self, folder: JobFolder, config: JobConfig) -> None: ...

    def state(self, folder: JobFolder) -> JobState: ...

    def waits_for(self, folder: JobFolder) -> str | None: ...

    def logs(self, folder: JobFolder) -> str: ...

    def cancel(self, folder: JobFolder) -> None: ...


class Job:
    """A submitted job. Its state is in its folder; this object only reads it.

    Parameters
    ----------
    url : str
        The job folder.
    backend : Backend
        Who runs it.
    """

    def __init__(self, url: str, backend: Backend):
        self.url = url
        self._backend = backend

    @property
    def folder(self) -> JobFolder:
        """The folder as it is now."""
        with told_when_late(lambda: storage_away(self.url)):
            return JobFolder.open(self.url)

    @property
    def id(self) -> str:
        return self.folder.id

    @property
    def status(self) -> JobState:
        """queued, running, done, failed, cancelled, or stopped (killed; use `resume`)."""
        return self._backend.state(self.folder)

    @property
    def error(self) -> str | None:
        """Why the job failed, in one sentence."""
        return self.folder.error

    @property
    def waiting(self) -> str | None:
        """Why a queued job has not begun: no worker, a pool that is paused, the jobs before it.

        None for a job that is not queued.
        """
        folder = self.folder
        if self._backend.state(folder) is not JobState.QUEUED:
            return None
        return self._backend.waits_for(folder)

    @property
    def progress(self) -> Progress | None:
        """The latest progress; None before the first."""
        return _news(self.folder.progress())

    def wait(
        self,
        timeout: float | None = None,
        *,
        bar: bool | Callable[[Progress], None] = True,
        restarts: int = 2,
    ) -> Job:
        """Wait for the job to end, with a progress bar; raises a JobError if it failed.

        Parameters
        ----------
        timeout : float, optional
            Seconds; then a TimeoutError is raised. The job continues.
        bar : bool or callable
            A bar in the terminal or notebook, none, or a function that gets every Progress.
        restarts : int
            How often to restart a job whose process was killed.
        """
        late = math.inf if timeout is None else time.monotonic() + timeout
        show: Any = (ProgressBar() if bar else None) if isinstance(bar, bool) else bar
        seen, pause, before = None, _LOOK, None
        try:
            while (state := self.status) not in _OVER or (
                state is JobState.STOPPED and restarts > 0
            ):
                if state is JobState.STOPPED:
                    restarts -= 1
                    self.resume()
                news = self.progress
                if show is not None and news is not None and news != seen:
                    seen = news
                    show(news)
                if time.monotonic() > late:
                    raise TimeoutError(f"Job {self.id} is {state} after {timeout:g} s.")
                # Jobs that wait, or whose processes start, must not keep a server from the others.
                longest = _LONGEST_LOOK if state is JobState.QUEUED else _LONGEST_AT_WORK
                pause = _LOOK if news != before else min(1.5 * pause, longest)
                before = news
                time.sleep(pause)
            last = self.progress
            if show is not None and last is not None and last != seen:
                show(last)
        finally:
            if hasattr(show, "close"):
                show.close()
        if state is JobState.CANCELLED:
            raise JobCancelled(f"Job {self.id} was cancelled.")
        if state is not JobState.DONE:
            why = self.error or "its process was killed repeatedly"
            raise JobError(f"Job {self.id} {state}: {why}")
        return self

    def resume(self, config: JobConfig | None = None) -> Job:
        """Resume a job that ended before it was done; finished work is not repeated.

        `config`: the same job with other settings that do not affect the result, such as another
        address of the scheduler; by default those of the last run.
        """
        if self.status in (JobState.FAILED, JobState.CANCELLED, JobState.STOPPED, JobState.QUEUED):
            folder = self.folder
            folder.forget_cancel()
            begin(self._backend, folder, config or folder.config)
        return self

    def cancel(self) -> Job:
        """Stop the job; it can be resumed. A job that has ended is not changed."""
        if self.status not in _OVER:
            self._backend.cancel(self.folder)
        return self

    def logs(self) -> str:
        """The log of the job."""
        return self._backend.logs(self.folder)

    # ------------------------------------------------------------------ the answer
    def result(self) -> CredalPartition:
        """The credal partition; its masses are read when they are needed."""
        return self._done().partition

    @property
    def metrics(self) -> dict[str, Any]:
        """The contents of metrics.json."""
        return self._done().metrics

    def model(self) -> Any:
        """The fitted estimator: it predicts new objects."""
        return self._done().model()

    def explain(self, i: int) -> Explanation:
        """Why object i is where it is: clusters, unusual attributes, nearest sure members."""
        return self._done().explain(i)

    def describe(self, *, text: Any = None) -> Description:
        """What each cluster is: sizes, what sets it apart in the units of the data, members."""
        return self._done().describe(text=text)

    def tree(self) -> ClusterTree:
        """Which clusters are hard to tell apart, and become one where fewer are wanted."""
        return self._done().tree()

    def predict(self, X: Any, *, id: str | None = None) -> CredalPartition:
        """Predict new objects in this process, with the columns, encoding and scale of the job."""
        return self._done().predict(X, id=id)

    def report(self, path: str | Path | None = None) -> Path | str:
        """Address of the HTML report; with `path`, copy it there."""
        return self._done().report if path is None else self.copy("report.html", path)

    def copy(self, name: str, path: str | Path) -> Path:
        """Copy one file of the job folder."""
        content = read_bytes(self._done().folder.path(name))
        if content is None:
            raise JobError(f"Job {self.id} has no {name}.")
        target = Path(path).absolute()
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(str(target), content)
        return target

    def _done(self) -> JobResult:
        folder = self.folder
        if folder.state is not JobState.DONE:
            state = self.status
            if state in (JobState.QUEUED, JobState.RUNNING, JobState.DONE):
                cure = "Wait for it: job.wait()."
            else:
                why = f" ({folder.error})" if folder.error else ""
                cure = f"It has no result{why}; job.resume() continues where it stopped."
            raise JobError(f"Job {folder.id} is {state}, not done. {cure}")
        return JobResult(folder)

    def _repr_html_(self) -> str:
        """What a notebook shows: where the job stands, without waiting for it."""
        folder, state, news = self.folder, self.status, self.progress
        rows = {"status": str(state), "folder": self.url}
        if news is not None and state in (JobState.QUEUED, JobState.RUNNING):
            rows["now"] = one_line(news)
        if state is JobState.QUEUED and (why := self._backend.waits_for(folder)):
            rows["waiting"] = why
        if folder.error:
            rows["error"] = folder.error
        if state is JobState.DONE:
            found = JobResult(folder).metrics
            rows["answer"] = (
                f"{found['n_objects']:,} objects in {found['n_clusters']} clusters: "
                f"{found['n_sure']:,} sure, {found['n_between']:,} between, "
                f"{found['n_outliers']:,} outliers"
            )
            rows["report"] = str(self.report())
        cells = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
            for name, text in rows.items()
        )
        return f"<p>Job <b>{escape(folder.id)}</b></p><table>{cells}</table>"

    def __repr__(self) -> str:
        return f"<Job {self.id}: {self.status}, {self.url}>"


def begin(backend: Backend, folder: JobFolder, config: JobConfig) -> None:
    """Give the job to a backend; the folder of one that is refused says so, and why."""
    try:
        backend.start(folder, config)
    except JobError as error:
        folder.refuse(str(error))
        raise


def _news(found: dict[str, Any] | None) -> Progress | None:
    if found is None or "sweep" not in found:
        return None
    known = {field.name for field in fields(Progress)}
    values: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in found.items() if name in known
    }
    return Progress(**values)
