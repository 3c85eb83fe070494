"""Housekeeping of a storage: what jobs and uploads take, and what may go.

A job is removed by the process that holds it, its manifest first: what is left of a removal that
was cut off is no job, and the next collection takes it. Nothing outside the storage is touched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from evdist.service.config import ConfigError, JobConfig
from evdist.service.jobs.folder import JobFolder, JobState
from evdist.stores.encoding import StoreError, StoreNotFoundError
from evdist.stores.lease import Lease
from evdist.stores.paths import (
    address,
    alone,
    children,
    exists,
    is_local,
    join,
    modified,
    remove,
    size,
)

#: Seconds for which data that no job names are kept: a client may be about to submit one.
GRACE = 24 * 3600.0
_UNDER_WAY = (JobState.QUEUED, JobState.RUNNING)
_WORDS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def folders(storage: str) -> Iterator[JobFolder]:
    """All jobs of a storage; what is none, or half removed, is passed over."""
    for name in children(join(storage, "jobs")):
        try:
            yield JobFolder.open(join(storage, f"jobs/{name}"))
        except (StoreError, NotADirectoryError, IsADirectoryError):
            continue


def check_bucket(storage: str) -> None:
    """Refuse a storage whose bucket is not there: it is misspelt, or belongs to another server."""
    if "://" not in storage:
        return
    scheme, _, rest = storage.partition("://")
    bucket = f"{scheme}://{rest.split('/')[0]}"
    if scheme not in ("file", "memory") and not exists(bucket):
        raise StoreNotFoundError(f"There is no bucket {bucket}. Is the name right, and the server?")


def delete(folder: JobFolder, *, storage: str | None = None) -> int:
    """Remove a job and everything in its folder; the bytes that are free now.

    Refused while a process runs it, and while an unfinished job of the storage needs it.
    """
    if storage is not None:
        needed = [one.id for one in used_by(storage, folder)]
        if needed:
            raise StoreError(
                f"Job {folder.id} is needed by {', '.join(needed)}, which is not finished. Cancel "
                "and remove that one first."
            )
    freed = size(folder.url)
    with folder.held():  # refuses where another process works
        remove(folder.path("manifest.json"))
        for name in children(folder.url):
            if name not in ("lock", "lease"):
                remove(folder.path(name))
    remove(folder.url)
    return freed


def used_by(storage: str, folder: JobFolder) -> list[JobFolder]:
    """Unfinished jobs that start from this one, or combine it."""
    return [
        one
        for one in folders(storage)
        if one.url != folder.url
        and one.state is not JobState.DONE
        and folder.url in map(address, _needs(_config(one)))
    ]


def _config(folder: JobFolder) -> JobConfig | None:
    """What the job was asked for; None where this evdist does not understand it."""
    try:
        return folder.config
    except ConfigError:
        return None


def _needs(config: JobConfig | None) -> list[str]:
    if config is None:
        return []
    named = [config.model, config.start, *(config.inputs or [])]
    return [url for url in named if url]


@dataclass
class Collected:
    """What a collection has removed, or would: names, and bytes."""

    jobs: list[str] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    bytes: int = 0
    #: Jobs whose manifest cannot be read: while there is one, no data go, as it may need them.
    unread: list[str] = field(default_factory=list)


def collect(
    storage: str,
    *,
    days: float | None = None,
    grace: float = GRACE,
    dry_run: bool = False,
) -> Collected:
    """Remove jobs that ended more than `days` ago, remains of jobs, and data that no job names.

    Ages are taken in days, so clocks that differ by minutes do not matter.
    """
    storage, found = address(storage), Collected()
    kept: set[str] = set()
    there = [folder for folder in folders(storage) if _config(folder) is not None]
    found.unread = _unread(storage, there)
    for folder in there:
        old = days is not None and _ended(folder) and _age(folder) > days * 24 * 3600.0
        if old and not folder.is_alive() and not used_by(storage, folder):
            found.jobs.append(folder.id)
            found.bytes += size(folder.url) if dry_run else delete(folder)
        else:
            kept |= _data_of(folder)
    for url in _remains(storage, grace):
        found.jobs.append(url.rpartition("/")[2])
        found.bytes += _gone(url, dry_run)
    for name in children(join(storage, "data")) if not found.unread else []:
        url = join(storage, f"data/{name}")
        if not name.endswith(".zarr") or url in kept or _is_written(url):
            continue
        if time.time() - modified(join(url, "zarr.json")) > grace:
            found.uploads.append(name)
            found.bytes += _gone(url, dry_run)
            for beside in (f"{url}.lock", f"{url}.lease"):
                _gone(beside, dry_run or not exists(beside))
    return found


def _gone(url: str, dry_run: bool) -> int:
    freed = size(url)
    if not dry_run:
        remove(url)
    return freed


def _ended(folder: JobFolder) -> bool:
    return folder.state not in _UNDER_WAY or not folder.is_alive()


def _age(folder: JobFolder) -> float:
    """Seconds since the last sign of a job."""
    last = max((stage.finished for stage in folder.stages.values()), default=folder.created)
    news = folder.progress() or {}
    return time.time() - max(last, folder.created, float(news.get("updated") or 0.0))


def _data_of(folder: JobFolder) -> set[str]:
    """Addresses of the data that a job was given, and of those that it has loaded."""
    config, load = folder.config, folder.stages.get("load")
    named = [config.data.url if config.data is not None else "", config.links.url or ""]
    if load is not None:
        named.append(str(load.outputs.get("data", "")))
    return {address(url) for url in named if url}


def _remains(storage: str, grace: float) -> Iterator[str]:
    """Folders under jobs/ without a manifest: of jobs whose removal was cut off."""
    for name in children(join(storage, "jobs")):
        url = join(storage, f"jobs/{name}")
        if exists(join(url, "manifest.json")) or not children(url):
            continue
        if time.time() - modified(url) > grace:
            yield url


def _unread(storage: str, there: list[JobFolder]) -> list[str]:
    """Names of jobs whose manifest is damaged, or of another version."""
    known = {folder.url for folder in there}
    urls = {name: join(storage, f"jobs/{name}") for name in children(join(storage, "jobs"))}
    return [
        name for name, url in urls.items()
        if url not in known and exists(join(url, "manifest.json"))
    ]  # fmt: skip


def _is_written(url: str) -> bool:
    """Whether a client uploads there now."""
    if not is_local(url):
        return Lease(f"{url}.lease").is_alive()
    try:
        with alone(f"{url}.lock"):
            return False
    except BlockingIOError:
        return True


def total(storage: str) -> int:
    """Bytes of all jobs and data of a storage."""
    return size(join(address(storage), "jobs")) + size(join(address(storage), "data"))


def quota() -> int | None:
    """Bytes that a storage may hold: EVDIST_QUOTA, such as 200G; None without a limit."""
    return _bytes(os.environ.get("EVDIST_QUOTA", ""))


def check_quota(storage: str, more: int = 0) -> None:
    """Refuse new data where EVDIST_QUOTA, such as 200G, would be exceeded."""
    limit = quota()
    if limit is None:
        return
    held = total(storage)
    if held + more > limit:
        raise StoreError(
            f"{storage} holds {_in_words(held)} and would grow by {_in_words(more)}, but its quota "
            f"is {_in_words(limit)} (EVDIST_QUOTA). Remove jobs: evdist jobs rm JOB, or "
            "evdist jobs gc --days 30."
        )


def _in_words(size: int) -> str:
    """Three digits of a number of bytes, in the unit that shows them."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{float(f'{size / unit:.3g}'):g} {name}"
    return f"{size} bytes"


def _bytes(text: str) -> int | None:
    if not text:
        return None
    bare = text.lower().removesuffix("b").removesuffix("i")
    unit = _WORDS.get(bare[-1:], 1)
    try:
        return int(float(bare.rstrip("kmgt")) * unit)
    except ValueError as error:
        raise ConfigError(f"EVDIST_QUOTA must be a size such as 200G, got {text!r}.") from error
