"""`run`: from a configuration to a folder with the answer; after a crash the same call goes on."""

from __future__ import annotations

import errno
import json
import logging
import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from evdist.data.contents import Table
from evdist.engine.connect import connected, local_workers
from evdist.engine.growing import grow
from evdist.engine.progress import Progress
from evdist.kernels.threads import thread_count
from evdist.partition import CredalPartition
from evdist.partition.decisions import level_told
from evdist.partition.explain import Explanation
from evdist.partition.merge import ClusterTree
from evdist.registry import load
from evdist.service.config import Cluster, JobConfig, read_config
from evdist.service.jobs.allowed import check_allowed
from evdist.service.jobs.context import Job, StageWork, enter_all
from evdist.service.jobs.folder import JobFolder, JobState
from evdist.service.jobs.models import load_model, place
from evdist.service.jobs.tasks import TASKS
from evdist.service.jobs.watch import JobCancelled, Watch, logger, watched
from evdist.service.monitor.events import Publisher
from evdist.stores.encoding import StoreError, reading
from evdist.stores.paths import read_bytes, replace_bytes
from evdist.stores.transient import is_transient

if TYPE_CHECKING:
    from evdist.partition.describe import Description

__all__ = ["JobCancelled", "JobError", "JobResult", "run", "sentence", "stages_of"]

#: Seconds between two attempts of a run that has lost its scheduler or its storage.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
#: Noted on an error after the last attempt, so that a retry from outside does not begin again.
_GAVE_UP = "tried again and again"
#: What a user can mend.
_MENDABLE = (StoreError, ValueError, TypeError, MemoryError, OSError)


class JobError(Exception):
    """A job that could not be done: the sentence says why, and what to do.

    `transient`: the same call may succeed later with nothing changed, as after a lost connection.
    """

    def __init__(self, said: str, *, transient: bool = False):
        super().__init__(said)
        self.transient = transient


@dataclass(frozen=True)
class JobResult:
    """What a finished job has left in its folder; large things are read when they are needed."""

    folder: JobFolder

    @property
    def partition(self) -> CredalPartition:
        """The credal partition, lazily."""
        return CredalPartition.load(self.folder.path("masses.zarr"))

    @property
    def metrics(self) -> dict[str, Any]:
        """What metrics.json says; a StoreError when it is lost or damaged."""
        path = self.folder.path("metrics.json")
        content, cure = read_bytes(path), "Run the job again to recreate it."
        if content is None:
            raise StoreError(f"{path} is lost. {cure}")
        with reading(path, cure):
            return dict(json.loads(content))

    @property
    def report(self) -> str:
        """Address of the HTML report."""
        return self.folder.path("report.html")

    def model(self) -> Any:
        """The fitted estimator, for rows as it was given them: encoded and on their scale."""
        return load_model(self.folder.url)[0]

    def explain(self, i: int) -> Explanation:
        """Why object i is where it is: `CredalPartition.explain` at the level of the job.

        Attributes are in the units of the data; distances to members are those of the scaled rows.
        """
        explain = load("evdist.service.jobs.explaining:explain")  # pandas takes a while
        found: Explanation = explain(self.folder, self.partition, i, level_told(self.metrics))
        return found

    def describe(self, *, text: Any = None) -> Description:
        """What each cluster is, in the units of the data: `CredalPartition.describe`.

        Parameters
        ----------
        text : (n,) sequence of str, optional
            Texts of the objects, whose words name the clusters.
        """
        describe = load("evdist.service.jobs.explaining:describe")
        found: Description = describe(
            self.folder, self.partition.in_memory(), text, level_told(self.metrics)
        )
        return found

    def tree(self) -> ClusterTree:
        """Which clusters are hard to tell apart: `CredalPartition.tree`; also in metrics.json."""
        return self.partition.in_memory().tree()

    def predict(self, X: Any, *, id: str | None = None) -> CredalPartition:
        """Place new objects here and now, as the task predict does: X is read, encoded and scaled
        as the data of the job were.

        Parameters
        ----------
        X : data frame, array, or path of a file
        id : name of the column of ids, default that of the job; the index of a data frame serves
        """
        return place(self.folder.url, Table(X, id=id))


def stages_of(config: JobConfig) -> tuple[str, ...]:
    """Names of the stages of a job, in order."""
    return tuple(stage.name for stage in TASKS[config.task])


def run(
    config: JobConfig | Mapping[str, Any] | str | PathLike[str],
    *,
    listen: Sequence[Callable[[Progress], None]] = (),
    client: Any = None,
    through: str | None = None,
    resume: bool = True,
) -> JobResult:
    """Run a job to its end, resuming where an earlier call stopped.

    Parameters
    ----------
    config : JobConfig, mapping or path
        The configuration, its values, or a .json, .yaml or .toml file of them.
    listen : sequence of callables
        Each is called with every `Progress` of the job, such as `ProgressBar()`.
    client : distributed.Client, optional
        A Dask client to use instead of `config.cluster`.
    through : str, optional
        Stop after the stage with this name (see `stages_of`).
    resume : bool
        Whether this call undoes an earlier cancel. Automatic retries pass False: then a cancelled
        job stays cancelled.

    Returns
    -------
    JobResult
        Access to all results.

    Raises
    ------
    ConfigError
        The configuration has a mistake; nothing was done.
    JobError
        The job cannot be done; the message names the cause and the remedy. Finished work is
        kept.
    JobCancelled
        The job was cancelled. The same call resumes it.
    """
    wanted = _config(config)
    check_allowed(wanted)
    with _told_in_sentences():
        folder = JobFolder.create(wanted)
    stages = TASKS[wanted.task]
    names = stages_of(wanted)
    if through is not None and through not in names:
        raise ValueError(f"through must be one of {', '.join(names)}, got {through!r}.")
    last = names.index(through) if through else len(names) - 1
    with (
        _told_in_sentences(),
        folder.held(),
        watched(folder, listen) as watch,
        _outcome(folder, watch, finished=last == len(names) - 1),
    ):
        folder.adopt(wanted)
        if resume:
            folder.forget_cancel()
        elif folder.is_cancelled():
            raise JobCancelled(f"Job {folder.id} was cancelled. Resume it to continue.")
        folder.set_state(JobState.RUNNING)
        _Attempts(folder, wanted, watch, client).enter(stages[: last + 1])
    return JobResult(folder)


@dataclass
class _Attempts:
    """A run of stages that outlives what passes by itself: a scheduler that is replaced, a storage
    that is away. Each attempt connects anew and goes on from the last checkpoint: the same bits."""

    folder: JobFolder
    config: JobConfig
    watch: Watch
    client: Any
    #: Whether Dask has ever answered: an address that never did is a mistake, told at once.
    answered: bool = False
    #: How often a lost connection was made anew.
    retries: int = 0

    def enter(self, stages: Sequence[StageWork]) -> None:
        pause, late, done = _FIRST_PAUSE, time.monotonic() + retry_seconds(), self._done()
        while True:
            try:
                return self._enter_once(stages)
            except Exception as error:
                self.watch.check()
                if not self._may_pass(error):
                    raise
                if self._done() != done:
                    pause, late, done = (
                        _FIRST_PAUSE,
                        time.monotonic() + retry_seconds(),
                        self._done(),
                    )
                if time.monotonic() > late:
                    error.add_note(_GAVE_UP)
                    raise
                said = " ".join(str(error).split()) or type(error).__name__
                logger.warning("%s; tried again in %.0f s", said, pause)
                self.retries += 1
            self.watch.pause(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _enter_once(self, stages: Sequence[StageWork]) -> None:
        began = time.perf_counter()
        with ExitStack() as opened:

            def connect() -> Any:
                dask = opened.enter_context(_dask(self.config.cluster, self.client))
                if dask is not None:
                    self.answered = True
                    publisher = Publisher(dask, self.folder.id)
                    self.watch.also(publisher)
                    opened.callback(self.watch.without, publisher)
                    opened.push(partial(self._tell_end, publisher, stages[-1].name, began))
                return dask

            enter_all(Job(self.folder, self.config, self.watch, connect, TASKS), stages)

    def _tell_end(
        self, publisher: Publisher, stage: str, began: float, kind: Any, *rest: Any
    ) -> None:
        """Let those who watch the cluster know that this job needs it no more."""
        publisher.end(stage, kind is None, time.perf_counter() - began, self.retries)

    def _may_pass(self, error: Exception) -> bool:
        # A client that was given cannot be made anew here.
        return self.client is None and self.answered and is_transient(error)

    def _done(self) -> tuple[int, int]:
        """Grows while the job gets on: finished stages, and the sweeps of the present one."""
        return len(self.folder.stages), self.watch.most_sweeps


def retry_seconds() -> float:
    """Seconds without any progress after which a job gives up: EVDIST_RETRY_SECONDS, or 300."""
    return float(os.environ.get("EVDIST_RETRY_SECONDS", "300"))


def _config(config: JobConfig | Mapping[str, Any] | str | PathLike[str]) -> JobConfig:
    if isinstance(config, JobConfig):
        return config
    return JobConfig.of(config) if isinstance(config, Mapping) else read_config(str(config))


@contextmanager
def _dask(cluster: Cluster, client: Any) -> Iterator[Any]:
    """The client to work with; None for threads of this process."""
    if client is not None or cluster.kind == "threads":
        yield client
    elif cluster.kind == "scheduler":
        assert cluster.address is not None
        tls = {"ca": cluster.tls_ca, "cert": cluster.tls_cert, "key": cluster.tls_key}
        with connected(cluster.address, **tls) as found:
            if cluster.n_workers is not None:
                grow(found, cluster.n_workers)
            yield found
    else:
        threads = cluster.threads or 1
        workers = cluster.n_workers or max(thread_count(None) // threads, 1)
        settings = load("evdist.service.monitor.scheduler:settings")  # imports Dask's dashboard
        with local_workers(workers, threads, settings()) as found:
            logger.info("dashboard: %s", found.dashboard_link)
            yield found


@contextmanager
def _outcome(folder: JobFolder, watch: Watch, finished: bool) -> Iterator[None]:
    """The manifest says how the run ended, whatever ended it."""
    stop: BaseException | None = None
    try:
        yield
    except BaseException as error:
        stop = error
    while True:
        try:
            watch.calm()
            break
        except KeyboardInterrupt as late:
            # Our own, which comes too late for the work; or that of a person, who means it.
            stop = stop or (None if watch.cancelled else late)
    if stop is not None and watch.failed is not None:
        stop = watch.failed  # the interrupt was only its messenger
    elif stop is not None and watch.cancelled and not isinstance(stop, JobCancelled):
        # Whatever the interrupt became on its way: in a library it may come out as another error.
        stop = _because(JobCancelled(f"Job {folder.id} was cancelled."), stop)
    goes_on = "the same call resumes where it stopped"
    if stop is None:
        if finished:
            _end(watch, JobState.DONE, "done")
    elif isinstance(stop, JobCancelled):
        _end(watch, JobState.CANCELLED, f"cancelled; {goes_on}")
        raise stop
    elif isinstance(stop, Exception):
        _keep_traceback(folder, stop)
        _end(watch, JobState.FAILED, f"failed: {sentence(stop)}", sentence(stop))
        raise stop
    else:  # Ctrl-C, or a signal to end
        wanted = folder.is_cancelled()
        _end(watch, JobState.CANCELLED if wanted else JobState.STOPPED, f"stopped; {goes_on}")
        raise stop


def _keep_traceback(folder: JobFolder, error: Exception) -> None:
    """For those who look after the service: the sentence is for the person who submitted."""
    text = "".join(traceback.format_exception(error))
    try:
        replace_bytes(folder.path("traceback.txt"), text.encode("utf-8", "replace"))
    except Exception as unwritten:
        logger.warning("cannot keep the traceback: %s", unwritten)


def _because(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def _end(watch: Watch, state: JobState, said: str, error: str | None = None) -> None:
    """The last words stand in the log before the manifest says that there are no more.

    A second signal, as of a supervisor that has lost its patience, does not stop the writing.
    """
    for attempt in (1, 2, 3):
        try:
            return _write_end(watch, state, said, error)
        except Exception:
            raise
        except BaseException:
            if attempt == 3:
                raise


def _write_end(watch: Watch, state: JobState, said: str, error: str | None) -> None:
    logger.log(logging.INFO if error is None else logging.ERROR, "%s", said)
    watch.write()
    try:
        watch.folder.set_state(state, error)
    except Exception as unwritten:
        if state is JobState.DONE:
            raise
        # Why the run ended is worth more than that it could not be written down.
        logger.error("cannot write the manifest of %s: %s", watch.folder.url, unwritten)


@contextmanager
def _told_in_sentences() -> Iterator[None]:
    """A mistake that a user can mend is a JobError with a sentence; a bug stays what it is."""
    try:
        yield
    except JobError:
        raise
    except Exception as error:
        if not isinstance(error, _MENDABLE) and not is_transient(error):
            raise
        away = is_transient(error) and _GAVE_UP not in getattr(error, "__notes__", ())
        raise JobError(sentence(error), transient=away) from error


def sentence(error: BaseException) -> str:
    """What happened, and what to do, for a person who runs a job."""
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return (
            f"The disk is full ({error.filename or 'no space left on device'}). Free some space "
            "and run the job again: finished work is kept."
        )
    if isinstance(error, FileExistsError | NotADirectoryError) and error.filename:
        return f"{error.filename} is a file, not a folder. Choose another job folder."
    if isinstance(error, PermissionError) or (
        isinstance(error, OSError) and error.errno == errno.EROFS
    ):
        return f"No permission to write or read {error.filename or error}. Choose another folder."
    if isinstance(error, MemoryError):
        what = str(error).rstrip(".") or "an array could not be allocated"
        return f"There is not enough memory: {what}."
    said = str(error) or type(error).__name__
    return said.encode("utf-8", "backslashreplace").decode()  # a file may hold what cannot be shown
