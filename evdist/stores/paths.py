"""Places on disk and in object storage, named by one kind of address: a path or an fsspec URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import fsspec
from filelock import FileLock, Timeout
from fsspec.implementations.local import LocalFileSystem

__all__ = ["Url", "address", "alone", "children", "exists", "join", "read_bytes", "remove"]
__all__ += ["replace_bytes", "sync"]

Url = str | os.PathLike[str]


def address(url: Url) -> str:
    """The address as text: an absolute path where it is local, so that other processes find it."""
    filesystem, path = _open(url)
    return path if isinstance(filesystem, LocalFileSystem) else os.fspath(url)


def exists(url: Url) -> bool:
    """Whether anything is there, a file or a folder."""
    filesystem, path = _open(url)
    return filesystem.exists(path)


def join(url: str, name: str) -> str:
    return f"{url.rstrip('/')}/{name}"


def children(url: Url) -> list[str]:
    """Names of what lies directly under the address; none when nothing is there."""
    filesystem, path = _open(url)
    try:
        found = filesystem.ls(path, detail=False)
    except FileNotFoundError:
        return []
    return sorted(name.rstrip("/").rpartition("/")[2] for name in found)


def remove(url: Url) -> None:
    """Remove a folder and all in it; another process may have done so."""
    filesystem, path = _open(url)
    with suppress(FileNotFoundError):
        filesystem.rm(path, recursive=True)


def read_bytes(url: Url) -> bytes | None:
    """The content of a small file; None when it is not there."""
    filesystem, path = _open(url)
    try:
        return filesystem.cat_file(path)
    except FileNotFoundError:
        return None


def replace_bytes(url: Url, content: bytes) -> None:
    """Put a small file in place, at once: who reads it sees the old content or the new."""
    filesystem, path = _open(url)
    if not isinstance(filesystem, LocalFileSystem):
        filesystem.pipe_file(path, content)  # object storage shows an object when it is whole
        return
    draft = Path(f"{path}.{os.getpid()}.part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)  # there only when the disk is full
    _flush(os.path.dirname(path))


def sync(url: Url) -> None:
    """Wait until a local folder and all in it would survive a power cut."""
    filesystem, path = _open(url)
    if isinstance(filesystem, LocalFileSystem):
        for item in [Path(path), *Path(path).rglob("*")]:
            _flush(item)


@contextmanager
def alone(url: Url, patience: float = 0.0) -> Iterator[None]:
    """Hold a local file; a BlockingIOError when another holder keeps it for `patience` seconds.

    The system releases it when the process dies. Object storage knows no such lock.
    """
    filesystem, path = _open(url)
    if not isinstance(filesystem, LocalFileSystem):
        yield
        return
    lock = FileLock(path, timeout=patience)
    try:
        lock.acquire()
    except Timeout as error:
        raise BlockingIOError(f"{path} is held by another process.") from error
    try:
        yield
    finally:
        lock.release()


def _flush(path: Url) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open(url: Url) -> tuple[fsspec.AbstractFileSystem, str]:
    filesystem, path = fsspec.core.url_to_fs(os.fspath(url))
    # Others write to the same place: a listing that was kept may be out of date.
    filesystem.invalidate_cache()
    return filesystem, path
