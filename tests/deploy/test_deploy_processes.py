"""The chart's own command lines, run as processes: a job goes through, strangers are refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from chart_processes import Machine
from chart_render import CHART, ROOT, rendered
from distributed.core import rpc
from service.servers import answers, wait_for
from sklearn.datasets import make_blobs

from evdist import EVCLUS, Client
from evdist.engine.connect import connected
from evdist.service.jobs.doctor import examine

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

AUTH = "operator:correct horse battery staple"
PROTOCOL = b"distributed|dask|pickle|msgpack|python"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by the script of the runbook."""
    folder = tmp_path_factory.mktemp("certificates")
    script = ROOT / "deploy" / "certificates.py"
    subprocess.run([sys.executable, script, folder, "localhost"], check=True)
    return folder


@dataclass
class Running:
    """A release on this machine."""

    machine: Machine
    certificates: Path

    def __post_init__(self) -> None:
        ports = self.machine.ports
        self.scheduler = f"tls://127.0.0.1:{ports[8786]}"
        self.dashboard = f"http://127.0.0.1:{ports[8787]}"
        self.api = f"http://127.0.0.1:{ports[4200]}/api"

    def tls(self, who: str = "client") -> dict[str, str]:
        folder = self.certificates / who
        return {"ca": f"{folder}/ca.crt", "cert": f"{folder}/tls.crt", "key": f"{folder}/tls.key"}


@pytest.fixture(scope="module")
def release(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Scheduler, two workers, Prefect's server and worker, the flows deployed."""
    folder = tmp_path_factory.mktemp("release")
    secrets = {
        "dask-certificates": certificates / "dask",
        "prefect-auth": {"auth-string": AUTH},
        # PostgreSQL's place in this test.
        "prefect-database": {
            "connection-url": f"sqlite+aiosqlite:///{folder}/prefect-server-0/tmp/prefect.db"
        },
    }
    (folder / "data").mkdir()
    machine = Machine(rendered("existing-volume-process"), folder, secrets)
    found = Running(machine, certificates)
    with ExitStack() as stack:
        server, _ = stack.enter_context(machine.start("Deployment", "-prefect", None))
        scheduler, _ = stack.enter_context(machine.start("Deployment", "-scheduler"))
        wait_for("scheduler", lambda: answers(f"{found.dashboard}/health"), process=scheduler)
        for index in range(2):
            stack.enter_context(machine.start("Deployment", "clusters-worker", index=index))
        wait_for("server", lambda: answers(f"{found.api}/health"), process=server)
        machine.run("Job", "-deploy-flows", "work-pool")
        machine.run("Job", "-deploy-flows", "flows")
        worker, log = stack.enter_context(machine.start("Deployment", "-prefect-worker"))
        wait_for("workers", lambda: _workers(found) == 2)
        wait_for("Prefect's worker", lambda: "started" in log.read_text(), process=worker)
        yield found


def _workers(release: Running) -> int:
    with urllib.request.urlopen(f"{release.dashboard}/json/counts.json", timeout=5) as reply:
        return json.load(reply)["workers"]


def test_a_job_goes_from_the_client_through_prefect_and_dask_to_its_answer(
    release: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", AUTH)
    X = make_blobs(400, centers=3, random_state=1)[0].astype(np.float32)
    client = Client(release.machine.folder / "data", release.api)
    job = client.submit(X, n_clusters=3, n_dissimilarities=30, random_state=0)
    job.wait(400, bar=False)
    here = EVCLUS(3, n_dissimilarities=30, random_state=0).fit(X).credal_partition_
    assert np.array_equal(np.asarray(job.result().mass), np.asarray(here.mass))
    _nothing_secret(release)


def _nothing_secret(release: Running) -> None:
    """Neither the logs nor anything in the storage holds a secret."""
    key = (release.certificates / "client" / "tls.key").read_text().splitlines()[1]
    folder = release.machine.folder
    kept = [path for path in (folder / "data").rglob("*") if path.is_file()]
    logs = list(folder.glob("*.log"))
    assert logs
    assert any(path.name == "manifest.json" for path in kept)
    for path in [*logs, *kept]:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue  # a draft that has just been put in its place
        assert AUTH.encode() not in content, path
        assert key.encode() not in content, path


def test_the_pod_of_helm_test_passes(release: Running) -> None:
    said = release.machine.run("Pod", "-test", "job")
    assert json.loads(said[said.index("{") :])["n_clusters"] == 2
    assert "evdist-process" in release.machine.run("Pod", "-test", "prefect")


# ----------------------------------------------------------------------- strangers are refused
def test_a_client_with_a_certificate_gets_in_and_one_without_does_not(release: Running) -> None:
    with connected(release.scheduler, **release.tls()) as client:
        assert client.submit(sum, [1, 2]).result() == 3
    with pytest.raises(ConnectionError, match="No Dask scheduler answers at tls://"):
        with connected(release.scheduler):
            pass
    with pytest.raises(ConnectionError, match="No Dask scheduler answers at tcp://"):
        with connected(release.scheduler.replace("tls", "tcp")):
            pass


def test_the_doctor_uses_the_certificates_of_the_environment(
    release: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, file in release.tls().items():
        monkeypatch.setenv(f"EVDIST_TLS_{name.upper()}", file)
    checks = examine(str(tmp_path), None, release.scheduler)
    (dask,) = [check for check in checks if check.what == "Dask"]
    assert dask.good and "2 workers" in dask.found


def test_the_doctor_finds_deployment_pool_and_clocks_of_a_release_in_order(
    release: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, file in release.tls().items():
        monkeypatch.setenv(f"EVDIST_TLS_{name.upper()}", file)
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", AUTH)
    checks = {one.what: one for one in examine(str(tmp_path), release.api, release.scheduler)}
    assert all(check.good for check in checks.values()), checks
    assert "1 workers alive" in checks["work pool"].found
    clocks = [what for what in checks if what.startswith("clock of")]
    assert len(clocks) == 4


def test_a_certificate_of_another_authority_is_refused(release: Running, tmp_path: Path) -> None:
    script = ROOT / "deploy" / "certificates.py"
    subprocess.run([sys.executable, script, tmp_path, "localhost"], check=True)
    mine, theirs = tmp_path / "client", release.certificates / "client"
    with pytest.raises(ConnectionError, match="No Dask scheduler answers"):
        with connected(release.scheduler, ca=f"{theirs}/ca.crt", cert=f"{mine}/tls.crt",
                       key=f"{mine}/tls.key"):  # fmt: skip
            pass
    # And who only pretends to be the scheduler is refused by the client.
    with pytest.raises(ConnectionError, match="No Dask scheduler answers"):
        with connected(release.scheduler, ca=f"{mine}/ca.crt", cert=f"{theirs}/tls.crt",
                       key=f"{theirs}/tls.key"):  # fmt: skip
            pass


def test_no_order_reaches_a_worker_without_a_certificate(release: Running) -> None:
    with connected(release.scheduler, **release.tls()) as client:
        workers = list(client.scheduler_info(n_workers=-1)["workers"])
    assert all(address.startswith("tls://") for address in workers)
    for address in [release.scheduler, *workers]:
        plain = address.replace("tls://", "tcp://")
        with pytest.raises(OSError, match=r"Timed out|before comm was established"):
            asyncio.run(_identity(plain))


async def _identity(address: str) -> None:
    async with rpc(address, timeout=5) as remote:
        await remote.identity()


@pytest.mark.parametrize(
    "probe",
    [b"", b"GET / HTTP/1.0\r\n\r\n", b"\x00" * 64, b"\x80\x04\x95", b"SSH-2.0-scan\r\n",
     os.urandom(99)],
    ids=["silence", "http", "zeros", "pickle", "ssh", "noise"],
)  # fmt: skip
def test_a_plain_scanner_learns_nothing(release: Running, probe: bytes) -> None:
    """An alert of TLS is all that may come back: no banner, no name, no version."""
    with socket.create_connection(("127.0.0.1", release.machine.ports[8786]), timeout=5) as s:
        s.settimeout(3)
        s.sendall(probe)
        heard = b""
        try:
            while chunk := s.recv(4096):
                heard += chunk
        except (TimeoutError, ConnectionError):
            pass
    assert re.search(PROTOCOL, heard, re.I) is None
    assert heard == b"" or (heard[0] == 0x15 and len(heard) <= 7)  # a TLS alert record


def test_a_tls_scanner_without_a_certificate_gets_no_word_of_dask(release: Running) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    heard = b""
    with socket.create_connection(("127.0.0.1", release.machine.ports[8786]), timeout=5) as s:
        try:
            with context.wrap_socket(s) as tls:
                tls.settimeout(3)
                tls.sendall(b"\x00" * 32)
                heard = tls.recv(4096)
        except (OSError, ssl.SSLError):
            pass
    assert heard == b""


def test_old_versions_of_tls_are_refused(release: Running) -> None:
    folder = release.certificates / "client"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", release.machine.ports[8786]), timeout=5) as s:
        with pytest.raises(ssl.SSLError, match=r"(?i)alert|version|protocol"):
            context.wrap_socket(s)


def test_prefect_wants_its_auth_string(release: Running) -> None:
    request = urllib.request.Request(
        f"{release.api}/flow_runs/filter", data=b"{}", headers={"Content-Type": "application/json"}
    )
    with pytest.raises(urllib.error.HTTPError, match="401") as refused:
        urllib.request.urlopen(request, timeout=10)
    refused.value.close()


# ---------------------------------------------------------------------- what the operator sees
def test_the_dashboard_of_grafana_asks_for_metrics_that_exist(release: Running) -> None:
    with urllib.request.urlopen(f"{release.dashboard}/metrics", timeout=10) as reply:
        there = set(re.findall(r"^# TYPE (\S+)", reply.read().decode(), re.M))
    board = json.loads((CHART / "files" / "grafana-dashboard.json").read_text())
    asked = {
        name
        for panel in board["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\b((?:evdist|dask_scheduler)_\w+)", target["expr"])
    }
    assert asked
    assert asked - there == set()


def test_the_page_of_evdist_is_on_the_dashboard(release: Running) -> None:
    assert answers(f"{release.dashboard}/evdist")
    assert answers(f"{release.dashboard}/evdist.json")
