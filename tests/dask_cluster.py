"""Dask workers in processes of their own, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dask
from distributed import Client, LocalCluster
from distributed.utils import get_mp_context

from evdist.engine.workers import wait_for_workers

# Workers are forks of a process that has imported what all of them need: three seconds of CPU less
# for each. They are processes of their own as they would be without, and can be killed.
dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
get_mp_context().set_forkserver_preload(
    ["distributed", "evdist.engine.worker_state", "evdist.evclus.rows.numba"]
)


def started(n_workers: int, folder: Path) -> LocalCluster:
    """A cluster of processes with one thread each, on ports that are free."""
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", local_directory=str(folder), memory_limit="2GiB",
    )  # fmt: skip


@contextmanager
def workers(n_workers: int, folder: Path) -> Iterator[Client]:
    """A client of a cluster of its own; not Dask's default one, which other tests would use."""
    with started(n_workers, folder) as cluster, Client(cluster, set_as_default=False) as client:
        wait_for_workers(client, n_workers)
        yield client
