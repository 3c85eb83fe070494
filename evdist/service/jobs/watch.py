"""A run as others see it: its log, its news, and whether it was asked to stop.

A thread looks after the folder every second or so, so that a stage without news of its own still
shows that it lives, and stops when it is asked to. When the thread itself can no longer do so, the
run ends with an error that says why: a run without signs of life would be taken for dead.
"""

from __future__ import annotations

import _thread
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
from evdist.service.jobs.logs import formatter
from evdist.stores.lease import LEASE_SECONDS, LeaseLostError
from evdist.stores.paths import read_bytes, replace_bytes
from evdist.stores.transient import is_transient, patience

logger = logging.getLogger("evdist.job")

#: Seconds between two looks at the folder: on disk, in object storage.
_LOOK_LOCAL, _LOOK_REMOTE = 0.5, 2.0
#: Seconds after which work that was interrupted and goes on is interrupted again.
_INSIST = 10.0
#: Objectives kept for those who draw the curve.
_KEPT = 500


class JobCancelled(Exception):
    """The job was asked to stop. The same call goes on where it was."""


class _FolderLog(logging.Handler):
    """Lines kept in the job folder; object storage cannot append, so all are written again."""

    def __init__(self, folder: JobFolder):
        super().__init__()
        self.setFormatter(formatter(folder.id))
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
        #: Sweeps of the stage that has most: grows while the run gets on.
        self.most_sweeps = 0
        self._stop = threading.Event()
        self._cancelled = False
        self._failed: Exception | None = None
        self._interrupted = -math.inf
        self._beaten = time.monotonic()
        self._running, self._lock = True, threading.Lock()
        self._thread = threading.current_thread()
        self._every = _LOOK_REMOTE if "://" in folder.url else _LOOK_LOCAL
        self._said: tuple[str, float] = ("", 0.0)
        self._before: Any = None

    def also(self, listen: Callable[[Progress], None]) -> None:
        """One more listener."""
        self._listen.append(listen)

    def without(self, listen: Callable[[Progress], None]) -> None:
        """One listener less."""
        self._listen.remove(listen)

    def __call__(self, news: Progress) -> None:
        """One piece of news; the thread writes the last one to the folder."""
        self.check()
        if not math.isnan(news.objective):
            if self._last.get("stage") != news.stage:
                self._curve = []
            self._curve = [*self._curve, news.objective][-_KEPT:]
        self._last = {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(news).items()
        }
        self._last["history"] = self._curve
        self.most_sweeps = max(self.most_sweeps, news.sweep)
        self._log(news)
        for listen in self._listen:
            listen(news)

    def _log(self, news: Progress) -> None:
        stage, when = self._said
        now = time.monotonic()
        if news.max_sweeps and (stage != news.stage or now - when >= 5.0):
            self._said = (news.stage, now)
            logger.info("%s", one_line(news))

    def check(self) -> None:
        """JobCancelled when the run was asked to stop; what the thread met, when it failed."""
        if self._cancelled:
            raise JobCancelled(f"Job {self.folder.id} was cancelled.")
        if self._failed is not None:
            raise self._failed

    def pause(self, seconds: float) -> None:
        """Wait, but no longer than until the run is asked to stop."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            time.sleep(min(0.2, seconds))

    # ------------------------------------------------------------------ the thread
    def look_after(self) -> None:
        while not self._stop.wait(self._every):
            try:
                asked = self._beat() or self._cancelled
            except Exception as error:  # any library may stand behind a URL
                self._failed = self._failed or error
                asked = False
            with self._lock:
                if self._running and asked and not self._cancelled:
                    self._cancelled = True
                    logger.info("asked to stop")
                if self._running and (self._cancelled or self._failed is not None):
                    self._interrupt()

    def _beat(self) -> bool:
        """Write the news, and say whether the run was asked to stop.

        A storage that is away is forgiven for as long as the lease lasts.
        """
        try:
            self.folder.tell(self._last)
            self.log.write()
            self._beaten = time.monotonic()
            return self.folder.is_cancelled()
        except LeaseLostError:
            raise
        except Exception as error:
            silent = time.monotonic() - self._beaten
            logger.warning("cannot look after %s: %s", self.folder.url, error)
            if silent > max(patience(), LEASE_SECONDS) and is_transient(error):
                raise ConnectionError(
                    f"{self.folder.url} has not answered for {silent:.0f} s ({error}). Run the job "
                    "again when it does: finished work is kept."
                ) from error
            return False

    def _interrupt(self) -> None:
        """A long stage has no news: interrupt it as Ctrl-C would, again if it was to no effect.

        The signal goes to the thread that works, or it would not wake it from a lock; a run in
        another thread than the main one stops at its next news.
        """
        now = time.monotonic()
        if self._thread is threading.main_thread() and now - self._interrupted > _INSIST:
            self._interrupted = now
            interrupt(self._thread)

    def write(self) -> None:
        """Put the last news and the log into the folder."""
        try:
            # "beat" must move even when nothing else does.
            self.folder.tell(self._last)
            self.log.write()
        except Exception as error:  # news are not worth a job
            logger.warning("cannot write news to %s: %s", self.folder.url, error)

    def on_signal(self, number: int, frame: Any) -> None:
        """SIGINT: our own, when the run was asked to stop; else what it meant before."""
        if self._cancelled or self._failed is not None:
            raise KeyboardInterrupt
        if callable(self._before):
            self._before(number, frame)

    def calm(self) -> None:
        """The work is over: interrupt it no more. A signal that was sent before arrives here."""
        with self._lock:
            self._running = False

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    @property
    def failed(self) -> Exception | None:
        """Why the run was stopped, where it was by the thread and not by a wish."""
        return self._failed

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Take SIGINT also where it is ignored, as in a process that a script has started."""
        if self._thread is not threading.main_thread():
            yield
            return
        self._before = signal.signal(signal.SIGINT, self.on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, self._before or signal.default_int_handler)

    def end(self) -> None:
        """No more looks. Not called close: an estimator closes its callbacks after each call."""
        self._stop.set()


def interrupt(thread: threading.Thread) -> None:
    """Have the main thread stop: a SIGINT, which also ends a call that waits.

    Windows cannot send one to a thread; there the main thread stops when its call is over.
    """
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(thread.ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


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
        with watch.interruptible():
            yield watch
    finally:
        watch.end()
        thread.join()
        watch.write()
        logger.removeHandler(watch.log)
        logger.setLevel(level)
        for one in listen:
            if hasattr(one, "close"):
                one.close()
