"""Whether this installation can work: versions, storage, servers."""

from __future__ import annotations

import os
import shutil
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from evdist import __version__
from evdist.engine.connect import connected
from evdist.kernels.threads import thread_count
from evdist.stores.paths import address, join, read_bytes, remove, replace_bytes

_NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "dask", "distributed", "zarr")
_OPTIONAL = ("torch", "prefect", "s3fs")
_TIMEOUT = 5.0


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    what: str
    good: bool
    found: str


def examine(
    storage: str | None = None, api_url: str | None = None, scheduler: str | None = None
) -> list[Check]:
    """Look at everything; what is not configured is not asked."""
    checks = [Check("evdist", True, __version__), *_versions(), _machine(), _storage(storage)]
    if api_url:
        checks.append(_prefect(api_url))
    if scheduler:
        checks.append(_scheduler(scheduler))
    return checks


def _versions() -> list[Check]:
    found = []
    for name in (*_NEEDED, *_OPTIONAL):
        try:
            found.append(Check(name, True, version(name)))
        except PackageNotFoundError:
            needed = name in _NEEDED
            found.append(Check(name, not needed, "missing" if needed else "not installed"))
    return found


def _machine() -> Check:
    memory = psutil.virtual_memory()
    words = f"{thread_count(None)} cores, {memory.available / 2**30:.1f} GiB of memory free"
    return Check("machine", True, words)


def _storage(storage: str | None) -> Check:
    """Write, read and remove a small file."""
    where = storage or os.environ.get("EVDIST_STORAGE") or str(Path.home() / ".evdist")
    url = address(where)
    path = join(url, f"doctor-{uuid.uuid4().hex}")
    try:
        if "://" not in url:
            os.makedirs(url, exist_ok=True)
        replace_bytes(path, b"evdist")
        same = read_bytes(path) == b"evdist"
        remove(path)
    except Exception as error:  # any library may stand behind a URL
        return Check("storage", False, f"{url}: {type(error).__name__}: {error}")
    if "://" in url:
        return Check("storage", same, f"{url}: can be written and read")
    free = shutil.disk_usage(url).free / 2**30
    return Check("storage", same, f"{url}: can be written and read, {free:.1f} GiB free")


def _prefect(api_url: str) -> Check:
    try:
        with urllib.request.urlopen(f"{api_url.rstrip('/')}/health", timeout=_TIMEOUT) as answer:
            good = answer.status == 200
        return Check("Prefect", good, f"{api_url} answers")
    except (urllib.error.URLError, OSError, ValueError) as error:
        return Check("Prefect", False, f"{api_url} does not answer: {error}")


def _scheduler(scheduler: str) -> Check:
    files = {name: os.environ.get(f"EVDIST_TLS_{name.upper()}") for name in ("ca", "cert", "key")}
    tls = files if scheduler.startswith("tls://") else {}
    try:
        with connected(scheduler, **tls) as client:
            workers = client.scheduler_info(n_workers=-1)["workers"]
            return Check(
                "Dask", bool(workers),
                f"{scheduler}: {len(workers)} workers, dashboard {client.dashboard_link}",
            )  # fmt: skip
    except ConnectionError as error:
        return Check("Dask", False, str(error))
