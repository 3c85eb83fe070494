"""A bucket of a server that speaks S3, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import s3fs
from fsspec.asyn import sync as fsspec_sync
from moto.server import ThreadedMotoServer
from zarr.core.sync import sync as zarr_sync


@contextmanager
def s3_bucket(name: str) -> Iterator[str]:
    """The URL of a new bucket; the environment leads this process and its children there."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "test")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir(name)
        yield f"s3://{name}"
        _hang_up()
    server.stop()


def _hang_up() -> None:
    """Close every connection in the event loop it lives in: zarr's, or fsspec's.

    s3fs itself leaves zarr's open, and gives the others a tenth of a second to close.
    """
    for filesystem in s3fs.S3FileSystem._cache.values():
        if filesystem._s3 is None:
            continue
        if filesystem.asynchronous:
            zarr_sync(filesystem._s3.__aexit__(None, None, None))
        else:
            fsspec_sync(filesystem.loop, filesystem._s3.__aexit__, None, None, None)
    s3fs.S3FileSystem.clear_instance_cache()
