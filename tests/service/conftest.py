"""The whole service, once for all tests that ask: S3, Dask, Prefect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import programs
import pytest
from fault_cluster import FaultCluster, fault_cluster
from kept import kept
from s3_bucket import s3_bucket
from service.servers import Prefect, prefect_server

from evdist import Client


@pytest.fixture(scope="module")
def bucket() -> str:
    """A bucket of a server that speaks S3."""
    return kept("bucket", lambda: s3_bucket("service"))


@dataclass
class Service:
    """Servers, and a worker that is started again when a test has killed it."""

    dask: FaultCluster
    prefect: Prefect
    storage: str
    _worker: Any = None

    def worker(self) -> Any:
        """A living Prefect worker."""
        if self._worker is None or self._worker[1].poll() is not None:
            self.close()
            context = self.prefect.worker({"EVDIST_SCHEDULER": self.dask.address})
            self._worker = (context, context.__enter__())
        return self._worker[1]

    def close(self) -> None:
        if self._worker is not None:
            self._worker[0].__exit__(None, None, None)
            self._worker = None

    def client(self) -> Client:
        return Client(self.storage, self.prefect.api_url)


@pytest.fixture(scope="module")
def service(bucket, tmp_path_factory) -> Service:
    return kept("service", lambda: running(bucket, tmp_path_factory.mktemp("service")))


@contextmanager
def running(bucket: str, folder: Path) -> Iterator[Service]:
    engine = programs.command("-m", "prefect.engine")
    with (
        fault_cluster(folder / "dask") as dask,
        prefect_server(folder, engine=engine, services=False) as prefect,
    ):
        found = Service(dask, prefect, bucket)
        try:
            yield found
        finally:
            found.close()
