"""A bucket of a server that speaks S3, on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import s3fs
from moto.server import ThreadedMotoServer
from zarr.core.sync import sync


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
        # zarr's own connections live in its event loop, where s3fs does not close them.
        for filesystem in s3fs.S3FileSystem._cache.values():
            if filesystem.asynchronous and filesystem._s3 is not None:
                sync(filesystem._s3.__aexit__(None, None, None))
        s3fs.S3FileSystem.clear_instance_cache()
    server.stop()
