"""Real servers for the tests, each a process of its own on loopback, always torn down."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from programs import Program

    Child = subprocess.Popen | Program

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(what: str, ready, seconds: float = 120.0, process: Child | None = None):
    """Call `ready` until it gives something true."""
    late = time.monotonic() + seconds
    while time.monotonic() < late:
        found = ready()
        if found:
            return found
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"{what}: its process ended with code {process.returncode}")
        time.sleep(0.2)
    raise TimeoutError(f"{what} was not ready after {seconds} s")


@contextmanager
def process(
    command: list[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    **account: Any,
) -> Iterator[subprocess.Popen]:
    """A process group of its own, ended with the block: SIGTERM first, SIGKILL if it lives on."""
    with log.open("ab") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})}, cwd=cwd, start_new_session=True, **account,
        )  # fmt: skip
    try:
        yield child
    finally:
        end(child)


def end(child: Child, grace: float = 5.0) -> None:
    """End a process and its children."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, sign)
        except ProcessLookupError:
            break
        try:
            child.wait(grace)
            if sign is signal.SIGKILL:
                break
        except subprocess.TimeoutExpired:
            continue
    child.wait(grace)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


# ---------------------------------------------------------------------- Dask
@dataclass(frozen=True)
class Dask:
    address: str
    dashboard: str
    workers: list[subprocess.Popen]


@contextmanager
def dask_cluster(folder: Path, n_workers: int = 2, env: Mapping[str, str] | None = None):
    """A scheduler with evdist's page and metrics, and worker processes of one thread."""
    port, board = free_port(), free_port()
    routes = (
        '["distributed.http.scheduler.prometheus","distributed.http.scheduler.info",'
        '"distributed.http.scheduler.json","distributed.http.health","distributed.http.proxy",'
        '"distributed.http.statics","evdist.service.monitor.page"]'
    )
    settings = {**(env or {}), "DASK_DISTRIBUTED__SCHEDULER__HTTP__ROUTES": routes}
    address = f"tcp://127.0.0.1:{port}"
    scheduler = [
        str(BIN / "dask"), "scheduler", "--host", "127.0.0.1", "--port", str(port),
        "--dashboard-address", f"127.0.0.1:{board}",
        "--preload", "evdist.service.monitor.scheduler",
    ]  # fmt: skip
    worker = [
        str(BIN / "dask"), "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
        "--host", "127.0.0.1", "--local-directory", str(folder / "dask"),
    ]  # fmt: skip
    with process(scheduler, folder / "scheduler.log", settings) as server:
        dashboard = f"http://127.0.0.1:{board}"
        wait_for("Dask's scheduler", lambda: answers(f"{dashboard}/health"), process=server)
        workers: list[subprocess.Popen] = []
        try:
            for number in range(n_workers):
                log = (folder / f"worker-{number}.log").open("ab")
                workers.append(
                    subprocess.Popen(
                        worker, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                        env={**os.environ, **settings}, start_new_session=True,
                    )
                )  # fmt: skip
                log.close()
            wait_for("Dask's workers", lambda: _count(dashboard) == n_workers)
            yield Dask(address, dashboard, workers)
        finally:
            for one in workers:
                end(one)


def _count(dashboard: str) -> int:
    try:
        with urllib.request.urlopen(f"{dashboard}/json/counts.json", timeout=2) as reply:
            return json.load(reply)["workers"]
    except (urllib.error.URLError, OSError, KeyError, ValueError):
        return -1


# ---------------------------------------------------------------------- Prefect
@dataclass(frozen=True)
class Prefect:
    api_url: str
    env: dict[str, str]
    folder: Path
    #: Kills the server and starts it again.
    restart: Callable[[], None] = lambda: None
    #: The id of the process of the server.
    pid: Callable[[], int] = lambda: 0

    def prefect(self, *arguments: str) -> str:
        """Run a prefect command against this server."""
        done = subprocess.run(
            [str(BIN / "prefect"), *arguments], env={**os.environ, **self.env}, cwd=ROOT,
            capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"prefect {' '.join(arguments)}: {done.stdout}{done.stderr}")
        return done.stdout

    @contextmanager
    def worker(self, env: Mapping[str, str]):
        """A worker of the process pool; its flow runs get `env`."""
        command = [
            str(BIN / "prefect"), "worker", "start", "--pool", "evdist-process",
            "--type", "process", "--prefetch-seconds", "60", "--limit", "4",
        ]  # fmt: skip
        settings = {**self.env, **env, "PREFECT_WORKER_QUERY_SECONDS": "1"}
        log = self.folder / "prefect-worker.log"
        with process(command, log, settings) as child:
            wait_for("Prefect's worker", lambda: b"started" in log.read_bytes(), process=child)
            yield child


@contextmanager
def prefect_server(
    folder: Path,
    database: str | None = None,
    engine: Sequence[str] = (),
    services: bool = True,
):
    """A Prefect server of its own home, with the flows deployed to a process pool.

    `engine` is the command that runs a flow, Prefect's own if it is empty. Without `services` the
    server leaves out what looks after schedules and late runs, and is idle when it is not asked.
    """
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    api = f"http://127.0.0.1:{port}/api"
    env = {
        "PREFECT_HOME": str(folder / "home"),
        "PREFECT_API_URL": api,
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "false",
        "PREFECT_LOGGING_TO_API_BATCH_INTERVAL": "1",
        "PREFECT_CLI_PROMPT": "false",
        "EVDIST_SOURCE": str(ROOT),
        "PYTHONPATH": str(ROOT),
    }
    if database is not None:
        env["PREFECT_SERVER_DATABASE_CONNECTION_URL"] = database
    command = [
        str(BIN / "prefect"), "server", "start", "--host", "127.0.0.1", "--port", str(port),
        "--no-ui", *([] if services else ["--no-services"]),
    ]  # fmt: skip
    with ExitStack() as stack:
        servers: list[subprocess.Popen] = []

        def start() -> None:
            log = folder / "prefect-server.log"
            servers.append(stack.enter_context(process(command, log, env)))
            wait_for("Prefect's server", lambda: answers(f"{api}/health"), process=servers[-1])

        def restart() -> None:
            os.killpg(servers[-1].pid, signal.SIGKILL)
            servers[-1].wait()
            start()

        start()
        found = Prefect(api, env, folder, restart, lambda: servers[-1].pid)
        pool = ["work-pool", "create", "evdist-process", "--type", "process"]
        if engine:
            from prefect.workers.process import ProcessWorker  # Prefect takes seconds to load

            template = ProcessWorker.get_default_base_job_template()
            template["variables"]["properties"]["command"]["default"] = shlex.join(engine)
            (folder / "pool.json").write_text(json.dumps(template))
            pool += ["--base-job-template", str(folder / "pool.json")]
        found.prefect(*pool)
        found.prefect(
            "--no-prompt", "deploy", "--prefect-file", "flows/prefect.yaml", "--name", "evdist"
        )
        yield found
