"""A PostgreSQL server of its own, as a process on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.servers import free_port, process, wait_for


def postgres_binaries() -> Path | None:
    """Where PostgreSQL's programs are, if they are installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return found[-1].parent if found else None


@contextmanager
def postgres() -> Iterator[str]:
    """The URL of an empty PostgreSQL database on loopback."""
    binaries = postgres_binaries()
    assert binaries is not None, "PostgreSQL is not installed"
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
