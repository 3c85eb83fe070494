"""Jobs in the background of this machine: one process each, which outlives the client.

``python -m evdist.service.client.background`` runs the job whose configuration stands in its
input. It loads while the client still sends the data, and ends when the client ends without a job
for it.
"""

from __future__ import annotations

import atexit
import json
import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from evdist.service.config import ConfigError, JobConfig
from evdist.service.jobs import JobCancelled, JobError, JobFolder, JobState, run
from evdist.service.jobs.logs import formatter
from evdist.stores.lease import pulse
from evdist.stores.paths import is_local

#: Seconds until a new process must have taken the job.
_PATIENCE = 60.0
#: Processes that were started from here.
_started: list[subprocess.Popen[bytes]] = []


class Background:
    """Runs each job in a process of its own."""

    def __init__(self) -> None:
        self._waiting: subprocess.Popen[bytes] | None = None

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """A process loads while a job is made ready for it; without a job it ends."""
        self._waiting = _new_process()
        try:
            yield
        finally:
            if self._waiting is not None:
                _give(self._waiting, "")
                self._waiting = None

    def start(self, folder: JobFolder, config: JobConfig) -> None:
        """Begin or go on; returns when the process has taken the job."""
        process = self._waiting or _new_process()
        self._waiting = None
        _give(process, config.model_copy(update={"folder": folder.url}).to_json())
        late = time.monotonic() + _PATIENCE
        while time.monotonic() < late:
            now = JobFolder.open(folder.url)
            ended = now.state not in (JobState.QUEUED, JobState.RUNNING)
            if now.is_alive() or (ended and process.poll() is not None):
                return
            if process.poll() is not None:
                raise JobError(f"The process of job {folder.id} ended before it began to work.")
            time.sleep(0.02)
        raise JobError(f"The process of job {folder.id} did not begin within {_PATIENCE:.0f} s.")

    def state(self, folder: JobFolder) -> JobState:
        """A job that says it runs while no process holds its lock was killed."""
        if folder.state is JobState.RUNNING and not folder.is_alive():
            return JobState.STOPPED
        if folder.state is JobState.QUEUED and _waited(folder) > _PATIENCE:
            return JobState.STOPPED  # the client was killed before it could start the job
        return folder.state

    def waits_for(self, folder: JobFolder) -> str | None:
        """Its process starts at once: there is nothing to wait for."""
        return None

    def logs(self, folder: JobFolder) -> str:
        return folder.log()

    def cancel(self, folder: JobFolder) -> None:
        folder.ask_to_cancel()


def _waited(folder: JobFolder) -> float:
    """Seconds that a job has been queued: by this machine's clock where it is its own; in object
    storage, where another machine may have written the time, as long as it was looked at here."""
    if is_local(folder.url):
        return time.time() - folder.created
    return pulse(f"{folder.url} queued", folder.state).silence


def _new_process() -> subprocess.Popen[bytes]:
    # A session of its own: Ctrl-C, or the end of this process, does not reach it.
    return subprocess.Popen(
        [sys.executable, "-m", "evdist.service.client.background"], stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _give(process: subprocess.Popen[bytes], job: str) -> None:
    """Tell a process its job; none if `job` is empty."""
    _forget_ended()
    _started.append(process)
    assert process.stdin is not None
    with suppress(BrokenPipeError), process.stdin as line:  # one that has died is found out later
        line.write(job.encode())


@atexit.register  # else Python warns at exit of processes that were never polled
def _forget_ended() -> None:
    """Processes outlive the client; those that have ended are not left over as zombies."""
    _started[:] = [one for one in _started if one.poll() is None]


def main() -> int:
    """Entry point of ``python -m evdist.service.client.background``."""
    job = sys.stdin.read()
    if not job:
        return 0  # the client had no job after all
    config = JobConfig.of(json.loads(job))
    said = logging.StreamHandler()
    said.setFormatter(formatter(JobFolder.open(config.folder).id))
    logging.basicConfig(level=logging.INFO, handlers=[said])
    try:
        # The client has taken back an earlier wish to cancel; one that came since then counts.
        run(config, resume=False)
    except (JobError, JobCancelled, ConfigError):
        return 1  # the manifest says why
    return 0


if __name__ == "__main__":
    sys.exit(main())
