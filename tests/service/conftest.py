"""The whole service, once for the module that asks: S3, Dask, Prefect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import s3fs
from moto.server import ThreadedMotoServer
from service.servers import Dask, Prefect, dask_cluster, prefect_server
from zarr.core.sync import sync

from evdist import Client


@pytest.fixture(scope="session")
def bucket() -> Iterator[str]:
    """A bucket of a server that speaks S3."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("service")
        yield "s3://service"
        # zarr's own connections live in its event loop, where s3fs does not close them.
        for filesystem in s3fs.S3FileSystem._cache.values():
            if filesystem.asynchronous and filesystem._s3 is not None:
                sync(filesystem._s3.__aexit__(None, None, None))
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


@dataclass
class Service:
    """Servers, and a worker that is started again when a test has killed it."""

    dask: Dask
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
def service(bucket, tmp_path_factory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("service")
    with dask_cluster(folder) as dask, prefect_server(folder) as prefect:
        found = Service(dask, prefect, bucket)
        try:
            yield found
        finally:
            found.close()
