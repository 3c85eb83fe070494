"""The right of one process to write to a place in object storage, which knows no locks.

```
URL/000007   {"owner", "beat", "host", "pid", "released"}
```
The lease with the highest number is the one that counts. It is taken by creating the next number
under the condition that it is not there, so of several processes one succeeds. Its holder raises
`beat` every second or two. Others count: a lease whose beat has not moved for LEASE_SECONDS of
their own clock is dead and may be followed. No two machines' clocks are compared.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from evdist.stores.encoding import StoreError
from evdist.stores.paths import (
    address,
    children,
    create_bytes,
    join,
    read_bytes,
    remove_file,
    replace_bytes,
)

logger = logging.getLogger("evdist.job")

#: Seconds without a beat, seen by another process, after which a holder counts as dead.
LEASE_SECONDS = 20.0
#: Seconds between two looks at a lease that may be dead.
_LOOK = 0.5


class LeaseLostError(StoreError):
    """Another process has taken over: this one was silent for too long."""


class Lease:
    """One lease at an address: `acquire`, then `beat` until `release`."""

    def __init__(self, url: str):
        self.url = address(url)
        self._owner = uuid.uuid4().hex
        self._number = 0
        self._beat = 0

    def acquire(self, wait: float = 0.0) -> None:
        """Take the lease; a BlockingIOError when a living process keeps it for `wait` seconds.

        That a holder is dead is known after LEASE_SECONDS.
        """
        end = time.monotonic() + wait
        now = first = self._latest()
        seen = Pulse(first)
        while True:
            number, held = now
            if held is None or held.get("released") or seen.silence >= LEASE_SECONDS:
                if self._create(number + 1):
                    return
                seen = Pulse(self._latest())
            elif now != first and time.monotonic() >= end:
                where = f"{held.get('host')}, process {held.get('pid')}"
                raise BlockingIOError(f"{self.url} is held by another process ({where}).")
            time.sleep(_LOOK)
            now = self._latest()
            seen.look(now)

    @contextmanager
    def held(self, wait: float = 0.0) -> Iterator[None]:
        """Take the lease for the block."""
        self.acquire(wait)
        try:
            yield
        finally:
            with suppress(Exception):  # left alone, it is dead after LEASE_SECONDS
                self.release()

    def beat(self) -> None:
        """Show that the holder lives; LeaseLostError when another has followed it."""
        self.check()
        self._beat += 1
        self._write()

    def check(self) -> None:
        """Refuse to go on without the lease."""
        if self._newest() != self._number:
            raise LeaseLostError(
                f"Another process has taken over {self.url}: this one gave no sign of life for "
                f"{LEASE_SECONDS:.0f} s. It stops; what it has done is kept."
            )

    def release(self) -> None:
        """Let the next one in at once."""
        if self._newest() == self._number:
            self._write(released=True)

    def is_alive(self) -> bool:
        """Whether a process holds it, as far as this process has watched."""
        found = self._latest()
        held = found[1]
        if held is None or held.get("released"):
            return False
        return pulse(self.url, found).silence < LEASE_SECONDS

    # ------------------------------------------------------------------ the objects
    def _numbers(self) -> list[int]:
        return [int(name) for name in children(self.url) if name.isdigit()]

    def _newest(self) -> int:
        """The number that counts; 0 where there is no lease."""
        return max(self._numbers(), default=0)

    def _latest(self) -> tuple[int, dict[str, Any] | None]:
        number = self._newest()
        if not number:
            return 0, None
        try:
            found = json.loads(read_bytes(self._path(number)) or b"{}")
        except ValueError:
            found = {}
        return number, found if isinstance(found, dict) else {}

    def _create(self, number: int) -> bool:
        self._number, self._beat = number, 0
        if not create_bytes(self._path(number), self._content()):
            return False
        numbers = self._numbers()
        if max(numbers, default=0) != number:
            return False  # a slow one: others have gone past this number
        for old in numbers:
            if old < number:
                remove_file(self._path(old))
        return True

    def _write(self, released: bool = False) -> None:
        replace_bytes(self._path(self._number), self._content(released))

    def _content(self, released: bool = False) -> bytes:
        values = {
            "owner": self._owner, "beat": self._beat, "host": socket.gethostname(),
            "pid": os.getpid(), "released": released,
        }  # fmt: skip
        return json.dumps(values).encode()

    def _path(self, number: int) -> str:
        return join(self.url, f"{number:06d}")


@contextmanager
def beating(lease: Lease, every: float = 2.0) -> Iterator[None]:
    """Show signs of life from a thread for the block; `lease.check` tells when that went wrong."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(every):
            try:
                lease.beat()
            except LeaseLostError:
                return
            except Exception as error:  # any library may stand behind a URL
                logger.warning("cannot write to %s: %s", lease.url, error)

    thread = threading.Thread(target=beat, daemon=True, name="evdist-lease")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# ---------------------------------------------------------------------- counted signs of life
@dataclass
class Pulse:
    """Something that moves while its maker lives, watched by this process's own clock."""

    mark: Any
    since: float = 0.0
    #: Whether it has moved under the eyes of this process.
    moved: bool = False

    def __post_init__(self) -> None:
        self.since = time.monotonic()

    def look(self, mark: Any) -> None:
        """Compare with what was seen before."""
        if mark != self.mark:
            self.mark, self.since, self.moved = mark, time.monotonic(), True

    @property
    def silence(self) -> float:
        """Seconds since it last moved, or since it was first looked at."""
        return time.monotonic() - self.since


_pulses: dict[str, Pulse] = {}


def pulse(name: str, mark: Any) -> Pulse:
    """The pulse of `name`, which shows `mark` now; the first look counts as a sign of life."""
    found = _pulses.setdefault(name, Pulse(mark))
    found.look(mark)
    return found
