"""Whether this installation can work: versions, storage, servers, clocks."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from evdist import __version__
from evdist.engine.connect import connected
from evdist.kernels.threads import thread_count
from evdist.service.jobs.doctor_prefect import Check, clock, prefect_checks
from evdist.stores.paths import address, join, modified, read_bytes, remove, replace_bytes

_NEEDED = ("numpy", "scipy", "scikit-learn", "numba", "dask", "distributed", "zarr")
_OPTIONAL = ("torch", "prefect", "s3fs")


def examine(
    storage: str | None = None,
    api_url: str | None = None,
    scheduler: str | None = None,
    deployment: str | None = None,
) -> list[Check]:
    """Look at everything; what is not configured is not asked."""
    checks = [Check("evdist", True, __version__), *_versions(), _machine(), *_storage(storage)]
    if api_url:
        wanted = deployment or os.environ.get("EVDIST_DEPLOYMENT") or "cluster/evdist"
        checks += prefect_checks(api_url, wanted)
    if scheduler:
        checks += _scheduler(scheduler)
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


def _storage(storage: str | None) -> list[Check]:
    """Write, read and remove a small file."""
    where = storage or os.environ.get("EVDIST_STORAGE") or str(Path.home() / ".evdist")
    url = address(where)
    path = join(url, f"doctor-{uuid.uuid4().hex}")
    try:
        if "://" not in url:
            os.makedirs(url, exist_ok=True)
        replace_bytes(path, b"evdist")
        written = modified(path)
        ahead = written - time.time()
        same = read_bytes(path) == b"evdist"
        remove(path)
    except Exception as error:  # any library may stand behind a URL
        return [Check("storage", False, f"{url}: {type(error).__name__}: {error}")]
    if "://" in url:
        found = Check("storage", same, f"{url}: can be written and read")
    else:
        free = shutil.disk_usage(url).free / 2**30
        found = Check("storage", same, f"{url}: can be written and read, {free:.1f} GiB free")
    return [found, clock("the storage", ahead)] if written else [found]


def _scheduler(scheduler: str) -> list[Check]:
    files = {name: os.environ.get(f"EVDIST_TLS_{name.upper()}") for name in ("ca", "cert", "key")}
    tls = files if scheduler.startswith("tls://") else {}
    try:
        with connected(scheduler, **tls) as client:
            workers = client.scheduler_info(n_workers=-1)["workers"]
            found = f"{scheduler}: {len(workers)} workers, dashboard {client.dashboard_link}"
            checks = [Check("Dask", bool(workers), found)]
            began = time.time()
            there = client.run_on_scheduler(lambda: time.time())  # whatever is installed there
            checks.append(clock("Dask's scheduler", there - (began + time.time()) / 2))
            began = time.time()
            clocks = client.run(lambda: time.time(), on_error="ignore") if workers else {}
            middle = (began + time.time()) / 2
            if clocks:
                worst = max((when - middle for when in clocks.values()), key=abs)
                checks.append(clock("Dask's workers", worst))
            return checks
    except ConnectionError as error:
        return [Check("Dask", False, str(error))]
