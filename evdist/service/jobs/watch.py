"""A run as others see it: its log, its news, and whether it was asked to stop.

A thread looks after the folder every second or so, so that a stage without news of its own still
shows that it lives, and stops when it is asked to.
"""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from evdist.engine.progress import Progress
from evdist.progress import one_line
from evdist.service.jobs.folder import JobFolder
from evdist.stores.paths import read_bytes, replace_bytes

__all__ = ["LOG_FORMAT", "JobCancelled", "Watch", "logger", "watched"]

#: One format for everything that a job says, wherever it is read.
LOG_FORMAT = "%(asctime)s %(levelname)-7s [{job}] %(message)s"
logger = logging.getLogger("evdist.job")

#: Seconds between two looks at the folder: on disk, in object storage.
_LOOK_LOCAL, _LOOK_REMOTE = 0.5, 2.0
#: Objectives kept for those who draw the curve.
_KEPT = 500


class JobCancelled(Exception):
    """The job was asked to stop. The same call goes on where it was."""


class _FolderLog(logging.Handler):
    """Lines kept in the job folder; object storage cannot append, so all are written again."""

    def __init__(self, folder: JobFolder):
        super().__init__()
        self.setFormatter(logging.Formatter(LOG_FORMAT.format(job=folder.id)))
        self._path = folder.path("job.log")
        self._lines = [(read_bytes(self._path) or b"").decode("utf-8", "replace")]
        self._fresh = False

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record) + "\n")
        self._fresh = True

    def write(self) -> None:
        if self._fresh:
            self._fresh = False
            replace_bytes(self._path, "".join(self._lines).encode())


class Watch:
    """Takes the news of a run and passes them to `listen`; raises JobCancelled when asked to."""

    def __init__(self, folder: JobFolder, listen: Sequence[Callable[[Progress], None]]):
        self.folder = folder
        self.log = _FolderLog(folder)
        self._listen = list(listen)
        self._last: dict[str, Any] = {"stage": "start"}
        self._curve: list[float] = []
        self._stop = threading.Event()
        self._cancelled = False
        self._running, self._lock = True, threading.Lock()
        self._in_main = threading.current_thread() is threading.main_thread()
        self._every = _LOOK_REMOTE if "://" in folder.url else _LOOK_LOCAL
        self._said: tuple[str, float] = ("", 0.0)

    def also(self, listen: Callable[[Progress], None]) -> None:
        """One more listener."""
        self._listen.append(listen)

    def __call__(self, news: Progress) -> None:
        """One piece of news; the thread writes the last one to the folder."""
        if self._cancelled:
            raise JobCancelled(f"Job {self.folder.id} was cancelled.")
        if not math.isnan(news.objective):
            if self._last.get("stage") != news.stage:
                self._curve = []
            self._curve = [*self._curve, news.objective][-_KEPT:]
        self._last = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(news).items()
        }
        self._last["history"] = self._curve
        self._log(news)
        for listen in self._listen:
            listen(news)

    def _log(self, news: Progress) -> None:
        stage, when = self._said
        now = time.monotonic()
        if news.max_sweeps and (stage != news.stage or now - when >= 5.0):
            self._said = (news.stage, now)
            logger.info("%s", one_line(news))

    # ------------------------------------------------------------------ the thread
    def look_after(self) -> None:
        while not self._stop.wait(self._every):
            self.write()
            with self._lock:
                if self._running and not self._cancelled and self.folder.is_cancelled():
                    self._cancelled = True
                    logger.info("asked to stop")
                    if self._in_main:
                        # A long stage has no news: interrupt it as Ctrl-C would.
                        signal.raise_signal(signal.SIGINT)

    def write(self) -> None:
        """Put the last news and the log into the folder."""
        try:
            # "updated" must move even when nothing else does.
            self.folder.tell(self._last)
            self.log.write()
        except OSError as error:  # news are not worth a job
            logger.warning("cannot write news to %s: %s", self.folder.url, error)

    def calm(self) -> None:
        """The work is over: interrupt it no more. A signal that was sent before arrives here."""
        with self._lock:
            self._running = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def close(self) -> None:
        self._stop.set()


@contextmanager
def watched(
    folder: JobFolder, listen: Sequence[Callable[[Progress], None]] = ()
) -> Iterator[Watch]:
    """A watch over a run, with its log and its thread; listeners with `close` are closed."""
    watch = Watch(folder, listen)
    level = logger.level
    logger.addHandler(watch.log)
    if not logger.isEnabledFor(logging.INFO):
        logger.setLevel(logging.INFO)
    thread = threading.Thread(target=watch.look_after, daemon=True, name="evdist-watch")
    thread.start()
    try:
        yield watch
    finally:
        watch.close()
        thread.join()
        watch.write()
        logger.removeHandler(watch.log)
        logger.setLevel(level)
        for one in listen:
            if hasattr(one, "close"):
                one.close()
