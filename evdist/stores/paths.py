"""Places on disk and in object storage, named by one kind of address: a path or an fsspec URL."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import fsspec
from filelock import FileLock, Timeout
from fsspec.implementations.local import LocalFileSystem

from evdist.registry import missing
from evdist.stores.transient import is_transient, steady

Url = str | os.PathLike[str]

#: Pauses grow by 1.7 from 0.1 s: half a minute in all.
_S3_TRIES = 10
#: s3fs asks for the size of an object first, to read a large one in parts, and lists the folder
#: where there is no such object: one request instead of two or three for small ones.
_WHOLE = {"max_concurrency": 1}


def address(url: Url) -> str:
    """The address as text: an absolute path where it is local, so that other processes find it."""
    filesystem, path = _open(url)
    return path if isinstance(filesystem, LocalFileSystem) else os.fspath(url)


def exists(url: Url) -> bool:
    """Whether anything is there, a file or a folder."""
    filesystem, path = _open(url)
    return steady(lambda: filesystem.exists(path))


def storage_options(url: Url) -> dict[str, Any] | None:
    """Options for a library that opens the address itself by fsspec, as zarr does."""
    return dict(_WHOLE) if os.fspath(url).startswith(("s3://", "s3a://")) else None


def is_local(url: Url) -> bool:
    """Whether the address is a path of this machine's file system."""
    return "://" not in address(url)


def join(url: str, name: str) -> str:
    return f"{url.rstrip('/')}/{name}"


def children(url: Url) -> list[str]:
    """Names of what lies directly under the address; none when nothing is there."""
    filesystem, path = _open(url)
    try:
        found = steady(lambda: filesystem.ls(path, detail=False))
    except FileNotFoundError:
        return []
    return sorted(name.rstrip("/").rpartition("/")[2] for name in found)


def remove(url: Url) -> None:
    """Remove a folder and all in it; another process may have done so."""
    filesystem, path = _open(url)
    with suppress(FileNotFoundError):
        steady(lambda: filesystem.rm(path, recursive=True))


def remove_file(url: Url) -> None:
    """Remove one file, in one request; another process may have done so."""
    filesystem, path = _open(url)
    with suppress(FileNotFoundError):
        steady(lambda: filesystem.rm_file(path))


def modified(url: Url) -> float:
    """When the file, or the newest file of the folder, was written, in seconds; 0 for none."""
    filesystem, path = _open(url)
    found = steady(lambda: filesystem.find(path, detail=True))
    times = (one.get("mtime") or one.get("LastModified") or 0.0 for one in found.values())
    return max((t.timestamp() if hasattr(t, "timestamp") else float(t) for t in times), default=0.0)


def size(url: Url) -> int:
    """Bytes of a file, or of all files of a folder; 0 when nothing is there."""
    filesystem, path = _open(url)
    return int(steady(lambda: filesystem.du(path)) or 0) if exists(url) else 0


def read_bytes(url: Url) -> bytes | None:
    """The content of a small file; None when it is not there."""
    filesystem, path = _open(url)
    options = _WHOLE if _is_s3(filesystem) else {}
    try:
        return steady(lambda: filesystem.cat_file(path, **options))
    except (FileNotFoundError, NotADirectoryError):
        return None


def replace_bytes(url: Url, content: bytes) -> None:
    """Put a small file in place, at once: who reads it sees the old content or the new."""
    filesystem, path = _open(url)
    if not isinstance(filesystem, LocalFileSystem):
        # Object storage shows an object when it is whole.
        steady(lambda: filesystem.pipe_file(path, content))
        return
    with _draft(path, content) as draft:
        os.replace(draft, path)
    _flush(os.path.dirname(path))


@contextmanager
def _draft(path: str, content: bytes) -> Iterator[Path]:
    """The content in a file beside `path`, to be moved there; threads may write at once."""
    draft = Path(f"{path}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _create_local(path: str, content: bytes) -> None:
    """A link appears whole or, where the name is taken, not at all."""
    with _draft(path, content) as draft:
        try:
            os.link(draft, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            with Path(path).open("xb") as file:
                file.write(content)


def create_bytes(url: Url, content: bytes) -> bool:
    """Put a small file in place unless one is there, and say whether it is ours.

    Object storage does so in one step (If-None-Match), so of several callers one succeeds.
    """
    filesystem, path = _open(url)
    try:
        if isinstance(filesystem, LocalFileSystem):
            _create_local(path, content)
        else:
            steady(lambda: filesystem.pipe_file(path, content, mode="create"))
    except FileExistsError:
        pass  # another's; or our own, whose answer was lost before a second try
    # Read back: there are servers that ignore the condition and keep the last one.
    return read_bytes(url) == content


def sync(url: Url) -> None:
    """Wait until a local folder and all in it would survive a power cut."""
    filesystem, path = _open(url)
    if isinstance(filesystem, LocalFileSystem):
        for item in [Path(path), *Path(path).rglob("*")]:
            # Another thread may have put a draft in its place meanwhile: it flushes its own.
            with suppress(FileNotFoundError):
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
    how = os.O_RDONLY
    if os.name == "nt":  # Windows opens no folders, and flushes what was opened for writing
        if os.path.isdir(path):
            return
        how = os.O_RDWR
    handle = os.open(path, how)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open(url: Url) -> tuple[fsspec.AbstractFileSystem, str]:
    try:
        filesystem, path = fsspec.core.url_to_fs(os.fspath(url))
    except ImportError as error:
        if "s3fs" not in str(error):
            raise
        raise ImportError(missing("s3fs"), name="s3fs") from error
    _make_patient(filesystem)
    # Others write to the same place: a listing that was kept may be out of date.
    filesystem.invalidate_cache()
    return filesystem, path


def _make_patient(filesystem: Any) -> None:
    """Let s3fs wait out an outage of half a minute, of chunks that zarr reads and writes too.

    As it comes it gives up after two seconds, and at once where the server refuses connections.
    """
    if _is_s3(filesystem):
        module = sys.modules["s3fs.core"]
        if module.S3FileSystem.retries < _S3_TRIES:
            module.S3FileSystem.retries = _S3_TRIES
            module.set_custom_error_handler(is_transient)


def _is_s3(filesystem: Any) -> bool:
    module = sys.modules.get("s3fs.core")
    return module is not None and isinstance(filesystem, module.S3FileSystem)
