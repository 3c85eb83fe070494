"""What `chaos.py` breaks besides processes of Dask: a storage server, a disk, a Prefect server; and
what it counts when all is over."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from service.servers import BIN, ROOT, answers, end, free_port, wait_for


class Storage:
    """An S3 server that can be killed: what it had answered is there when it starts again."""

    def __init__(self, folder: Path):
        self._folder, self.port = folder, free_port()
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        program = [str(BIN / "python"), str(ROOT / "tests/kept_s3.py"), str(self.port)]
        with (self._folder / "s3.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*program, str(self._folder / "s3.kept")], stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        wait_for("S3", lambda: answers(f"http://127.0.0.1:{self.port}/moto-api/"),
                 process=self.process)  # fmt: skip

    def again(self) -> None:
        assert self.process is not None
        self.process.wait()
        self.start()

    def close(self) -> None:
        if self.process is not None:
            end(self.process)


class Disk:
    """A file system of its own, which can be filled to the last byte."""

    def __init__(self, place: Path):
        self.place = place

    def fill(self) -> None:
        with suppress(OSError), (self.place / "filler").open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with suppress(OSError):
                    while file.write(bytes(size)):
                        pass

    def make_room(self) -> None:
        (self.place / "filler").unlink(missing_ok=True)


@contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[Disk | None]:
    """A tmpfs; None where this account may not mount one, and the disk is not filled then."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "evdist-chaos", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


# ---------------------------------------------------------------------- when all is over
def strays(mark: str, known: set[int], runs_jobs: set[int]) -> list[str]:
    """Processes with our mark that are no server and no child of one.

    A job in Prefect is a child of the Prefect worker, one of `runs_jobs`: it counts.
    """
    found = []
    for one in psutil.process_iter():
        with suppress(psutil.Error):
            if one.environ().get("EVDIST_CHAOS") != mark or one.pid in known | runs_jobs:
                continue
            if one.status() == psutil.STATUS_ZOMBIE:
                continue
            if not known & {parent.pid for parent in one.parents()}:
                found.append(f"{one.pid} {' '.join(one.cmdline())[:100]}")
    return found


def shared_memory_in_use() -> set[str]:
    """Names of shared memory that some process has mapped or open: perhaps not ours."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):
            for line in path.read_text().splitlines():
                if "/dev/shm/" in line:
                    found.add(line.split("/dev/shm/")[1].split(" ")[0])
    return found


def resident() -> int:
    """Bytes of this process, after it has given back what it does not use."""
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process(os.getpid()).memory_info().rss


def shares_held() -> int:
    from evdist.engine.worker_state import STATES  # those of the worker

    return len(STATES)


def booked(dask_scheduler: object = None) -> tuple[int, int]:
    from evdist.engine.admission import book_of  # that of the scheduler

    book = book_of(dask_scheduler)
    return len(book.inside), len(book.waiting)
