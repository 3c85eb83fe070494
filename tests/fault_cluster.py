"""A Dask scheduler and workers as processes that a test kills, stops and replaces one by one."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import programs
from distributed import Client
from service.servers import ROOT, answers, end, free_port, wait_for

BIN = Path(sys.executable).parent
#: What the scheduler loads beside Dask.
PRELOAD = "evdist.service.monitor.scheduler"
#: A worker that has loaded torch and Numba holds 0.86 GB on x86-64, before any data; above 80 % of
#: its limit Dask pauses it.
LIMIT = "2GiB"


class FaultCluster:
    """Processes on loopback; `close` ends all that were ever started."""

    def __init__(self, folder: Path, memory_limit: str = LIMIT):
        self.folder, self._limit = folder, memory_limit
        self.port = free_port()
        self.dashboard = ""
        self.scheduler: programs.Program | None = None
        self.workers: list[programs.Program] = []
        self._all: list[programs.Program] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"tcp://127.0.0.1:{self.port}"

    def _start(self, name: str, *arguments: str) -> programs.Program:
        with (self.folder / f"{name}.log").open("ab") as log:
            child = programs.start(
                [BIN / "dask", *arguments], stdout=log, stderr=log,
                env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests"},
            )  # fmt: skip
        self._all.append(child)
        return child

    def start_scheduler(self) -> None:
        board = free_port()
        self.dashboard = f"http://127.0.0.1:{board}"
        self.scheduler = self._start(
            "scheduler", "scheduler", "--host", "127.0.0.1", "--port", str(self.port),
            "--dashboard-address", f"127.0.0.1:{board}", "--no-show",
            "--preload", PRELOAD,
        )  # fmt: skip
        wait_for("the scheduler", lambda: answers(f"{self.dashboard}/health"),
                 process=self.scheduler)  # fmt: skip

    def start_worker(self) -> programs.Program:
        child = self._start(
            f"worker-{len(self._all)}", "worker", self.address, "--nthreads", "1", "--no-nanny",
            "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", self._limit,
            "--local-directory", str(self.folder / "dask"),
        )  # fmt: skip
        self.workers.append(child)
        return child

    def start(self, n_workers: int = 2) -> None:
        self.start_scheduler()
        for _ in range(n_workers):
            self.start_worker()
        with Client(self.address, set_as_default=False) as client:  # a fit takes those there are
            client.wait_for_workers(n_workers, timeout=60)

    def replace_scheduler(self, *, port: int | None = None) -> None:
        """Kill it, and start another, with workers of its own: as an upgrade does."""
        assert self.scheduler is not None
        self.scheduler.kill()
        self.scheduler.wait()
        self.port = port or self.port
        n_workers = len(self.workers)
        for child in self.workers:
            end(child)
        self.workers = []
        self.start(n_workers)

    def close(self) -> None:
        for child in self._all:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGCONT)
            end(child)


@contextmanager
def fault_cluster(folder: Path, n_workers: int = 2, **options: str) -> Iterator[FaultCluster]:
    cluster = FaultCluster(folder, **options)
    try:
        cluster.start(n_workers)
        yield cluster
    finally:
        cluster.close()


def pause(dask_worker: Any) -> None:
    """Pause a worker as Dask does for want of memory."""
    from distributed.core import Status

    dask_worker.periodic_callbacks["memory_monitor"].stop()  # which would let it go on
    dask_worker.status = Status.paused
