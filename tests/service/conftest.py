"""The whole service, once for all tests that ask: S3, Dask, Prefect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_cluster import FaultCluster, fault_cluster
from s3_bucket import s3_bucket
from service.servers import Prefect, prefect_server

from evdist import Client


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """A bucket of a server that speaks S3."""
    with s3_bucket("service") as url:
        yield url


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


@pytest.fixture(scope="session")
def service(bucket, tmp_path_factory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("service")
    with fault_cluster(folder / "dask") as dask, prefect_server(folder) as prefect:
        found = Service(dask, prefect, bucket)
        try:
            yield found
        finally:
            found.close()
