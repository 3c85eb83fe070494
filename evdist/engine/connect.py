"""A Dask client for a while: to a cluster that runs, or to worker processes of this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

#: Seconds until a scheduler must have answered.
_TIMEOUT = 20.0


@contextmanager
def connected(
    address: str, *, ca: str | None = None, cert: str | None = None, key: str | None = None
) -> Iterator[Any]:
    """A client of the scheduler at `address`; with files `ca`, `cert`, `key` over TLS.

    An address file://PATH names a file of Dask's (``dask scheduler --scheduler-file PATH``) that
    says where the scheduler is now.
    """
    from distributed import Client  # 0.7 s that only those pay who use it
    from distributed.security import Security

    class _Patient(Client):
        """A client that waits so long and no longer, and closes where it cannot start.

        Left to the garbage collector it would be closed from any thread at any time: from the event
        loop of the next client too, which then waits for a lock that its maker holds.
        """

        def start(self, **kwargs: Any) -> None:
            try:
                super().start(**kwargs)
            except BaseException:
                self.close()
                self._loop_runner.stop()  # which close leaves running where _start has closed
                raise

        async def _start(self, **kwargs: Any) -> None:  # type: ignore[override]
            # Its own time limit does not cover a server that accepts and then says nothing.
            await asyncio.wait_for(super()._start(**kwargs), 1.5 * _TIMEOUT)

    security = None
    if ca is not None:
        security = Security(
            tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key, require_encryption=True
        )
    try:
        address = _found(address)
        client = _Patient(address, security=security, timeout=_TIMEOUT, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError, KeyError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {address} ({type(error).__name__}: {error}). Is it "
            "running, is the address right, and does it want TLS (cluster.tls_ca, tls_cert, "
            "tls_key)?"
        ) from error
    try:
        yield client
    finally:
        client.close()


def _found(address: str) -> str:
    path = address.removeprefix("file://")
    if path == address:
        return address
    with open(path, encoding="utf-8") as file:
        return str(json.load(file)["address"])


@contextmanager
def local_workers(n_workers: int, threads: int, settings: Mapping[str, Any]) -> Iterator[Any]:
    """A client of `n_workers` new processes on loopback, which end with the block.

    `settings` are Dask's, for the scheduler and the workers.
    """
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=n_workers, threads_per_worker=threads, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client
