"""The same end-to-end job with Prefect on PostgreSQL."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from service.servers import free_port, prefect_server, process, wait_for

from evdist import EVCLUS, Client

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]


def _binaries() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The URL of an empty PostgreSQL database on loopback."""
    binaries = _binaries()
    if binaries is None:
        pytest.skip("needs PostgreSQL (Debian: apt-get install postgresql), which is absent")
    # PostgreSQL does not run as root; its data must lie where its own user may go.
    root, name = os.getuid() == 0, "postgres"
    account: dict[str, Any] = {"user": name, "group": name, "extra_groups": []} if root else {}
    folder = Path(tempfile.mkdtemp(prefix="evdist-postgres-"))
    try:
        if account:
            shutil.chown(folder, name)
        subprocess.run(
            [str(binaries / "initdb"), "-D", str(folder / "data"), "-A", "trust",
             "-U", "evdist", "--no-sync"],
            check=True, capture_output=True, cwd=folder, **account,
        )  # fmt: skip
        port = free_port()
        server = [
            str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port),
            "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}",
            "-c", "fsync=off",
        ]  # fmt: skip
        log = Path(tempfile.mkdtemp(prefix="evdist-postgres-log-")) / "postgres.log"
        ready = [str(binaries / "pg_isready"), "-h", "127.0.0.1", "-p", str(port), "-q"]
        with process(server, log, cwd=folder, **account) as child:
            wait_for(
                "PostgreSQL", lambda: subprocess.run(ready, check=False).returncode == 0,
                process=child,
            )  # fmt: skip
            yield f"postgresql+asyncpg://evdist@127.0.0.1:{port}/postgres"
        shutil.rmtree(log.parent)
    finally:
        shutil.rmtree(folder)


def test_a_job_through_prefect_on_postgresql(database, tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 2)) + 6 * np.repeat([[0], [1], [2]], 100, 0)
    given = {"n_clusters": 3, "random_state": 0}
    with prefect_server(tmp_path, database) as prefect, prefect.worker({}):
        job = Client(tmp_path / "storage", prefect.api_url).submit(X, **given)
        job.wait(300, bar=False)
        expected = EVCLUS(**given).fit(X).credal_partition_.mass
        np.testing.assert_array_equal(np.asarray(job.result().mass), expected)
