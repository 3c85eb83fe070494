"""What a fuzzed call may do: write below its own folders; start nothing, connect to nothing.

Python tells an audit hook of every file that is opened, renamed or removed, of every process and
every connection; a hook cannot be taken away, so there is one, which looks at the guard at work.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = frozenset(
    {"os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link", "os.symlink", "os.truncate",
     "os.chmod", "os.chown", "shutil.rmtree", "shutil.move"}
)  # fmt: skip
_NEVER = frozenset({"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "socket.connect"})
#: Modules that no data may name in a pickle.
_POWERS = frozenset({"os", "posix", "nt", "subprocess", "shutil"})


class Guard:
    """Notes what goes beyond what is allowed."""

    def __init__(self, *allowed: Path):
        self.allowed = tuple(os.path.realpath(path) for path in allowed)
        self.breaches: list[str] = []
        # Threads of before, such as those of a Dask client, do what they did before.
        self._others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        if threading.get_ident() in self._others:
            return
        if event == "open":
            path, _, flags = given
            if isinstance(flags, int) and flags & _WRITES and isinstance(path, str | bytes):
                self._look(event, path)
        elif event in _PATHS:
            pairs = ((0, 2), (1, 3)) if event in ("os.rename", "os.link") else ((0, -1),)
            for path, folder in pairs:
                if isinstance(given[path], str | bytes | os.PathLike):
                    self._look(event, _absolute(given[path], given[folder]))
        elif event in _NEVER:
            self.breaches.append(f"{event} {given!r:.200}")
        elif event == "pickle.find_class" and given[0] in _POWERS:
            self.breaches.append(f"{event} {given!r:.200}")

    def _look(self, event: str, path: Any) -> None:
        folder, last = os.path.split(os.path.abspath(os.fsdecode(path)))
        where = os.path.join(os.path.realpath(folder), last)
        known = any(where == root or where.startswith(f"{root}/") for root in self.allowed)
        # Compiled code, of Python and of numba, is kept beside its source.
        if not known and "__pycache__" not in where and where != "/dev/null":
            self.breaches.append(f"{event} {where}")


def _absolute(path: Any, folder: Any) -> str:
    """A path that may be relative to an open folder, as where a tree is removed."""
    name = os.fsdecode(path)
    if isinstance(folder, int) and folder >= 0 and not os.path.isabs(name):
        name = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), name)
    return name


_at_work: list[Guard] = []


def _hook(event: str, given: tuple[Any, ...]) -> None:
    if _at_work:
        _at_work[-1].hear(event, given)


sys.addaudithook(_hook)


@contextmanager
def guarded(*allowed: Path) -> Iterator[Guard]:
    """A guard for the block: what was written elsewhere, started or connected to is in it."""
    guard = Guard(*allowed)
    _at_work.append(guard)
    try:
        yield guard
    finally:
        _at_work.remove(guard)


def content(*roots: Path) -> str:
    """A hash of all files and folders there; locks, which come and go, are left out."""
    digest = hashlib.sha256()
    for root in roots:
        for path in sorted([root, *root.rglob("*")]):
            if path.suffix == ".lock" or path.name == "lock":
                continue
            digest.update(f"{path}\0{path.is_dir()}\0".encode("utf-8", "surrogateescape"))
            if path.is_file():
                digest.update(path.read_bytes())
    return digest.hexdigest()
