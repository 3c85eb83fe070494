"""`evdist doctor` and a Prefect server: deployment, work pool, workers and clocks."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from s3_bucket import s3_bucket

from evdist.service.jobs.doctor import examine
from evdist.service.jobs.doctor_prefect import Check

AUTH = "operator:secret"


class Server:
    """What a Prefect server says; the attributes are what a test changes."""

    def __init__(self) -> None:
        self.paused = self.pool_paused = False
        self.workers = ["ONLINE", "OFFLINE"]
        self.ahead = 0.0
        self.auth = ""
        self.name = "evdist"

    def answer(self, path: str, auth: str | None) -> tuple[int, object]:
        if path == "/api/health":
            return 200, True
        if self.auth and auth != f"Basic {base64.b64encode(self.auth.encode()).decode()}":
            return 401, {}
        known = {
            f"/api/deployments/name/cluster/{self.name}": {
                "paused": self.paused, "work_pool_name": "pool one",
            },
            "/api/work_pools/pool%20one": {"is_paused": self.pool_paused},
            "/api/work_pools/pool%20one/workers/filter": [{"status": s} for s in self.workers],
        }  # fmt: skip
        return (200, known[path]) if path in known else (404, {})


@pytest.fixture
def server() -> Iterator[tuple[Server, str]]:
    said = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = said.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(content).encode())

        do_POST = do_GET

        def date_time_string(self, timestamp: float | None = None) -> str:
            return formatdate(time.time() + said.ahead, usegmt=True)

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield said, f"http://127.0.0.1:{found.server_address[1]}/api"
        found.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _no_rights(monkeypatch):
    for name in ("PREFECT_API_AUTH_STRING", "PREFECT_API_KEY", "EVDIST_DEPLOYMENT"):
        monkeypatch.delenv(name, raising=False)


def looked(tmp_path, url: str, **more) -> dict[str, Check]:
    return {check.what: check for check in examine(str(tmp_path), url, **more)}


def test_a_service_in_order(server, tmp_path):
    found = looked(tmp_path, server[1])
    assert all(check.good for check in found.values())
    assert found["deployment"].found == "cluster/evdist"
    assert found["work pool"].found == "pool one: 1 workers alive"
    assert found["clock of Prefect"].good


@pytest.mark.parametrize(
    ("change", "what", "words"),
    [
        ({"name": "evdist-k8s"}, "deployment", "there is no cluster/evdist"),
        ({"paused": True}, "deployment", "cluster/evdist, paused"),
        ({"auth": AUTH}, "deployment", "the server requires PREFECT_API_AUTH_STRING"),
        ({"workers": ["OFFLINE"]}, "work pool", "pool one: 0 workers alive"),
        ({"pool_paused": True}, "work pool", "1 workers alive, paused"),
        ({"ahead": 3600.0}, "clock of Prefect", "s ahead of this machine's"),
        ({"ahead": -3600.0}, "clock of Prefect", "s behind this machine's"),
    ],
)
def test_what_is_not_in_order_is_named(server, tmp_path, change, what, words):
    for name, value in change.items():
        setattr(server[0], name, value)
    found = looked(tmp_path, server[1])
    assert [check.what for check in found.values() if not check.good] == [what]
    assert words in found[what].found


def test_the_deployment_of_the_environment_and_its_rights(server, tmp_path, monkeypatch):
    server[0].name, server[0].auth = "evdist-k8s", AUTH
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", AUTH)
    monkeypatch.setenv("EVDIST_DEPLOYMENT", "cluster/evdist-k8s")
    assert all(check.good for check in looked(tmp_path, server[1]).values())
    other = looked(tmp_path, server[1], deployment="cluster/mine")
    assert other["deployment"].found == "there is no cluster/mine"


def test_a_server_that_does_not_answer(tmp_path):
    found = looked(tmp_path, "http://127.0.0.1:9/api")
    assert not found["Prefect"].good and "deployment" not in found


def test_the_clock_of_the_storage(tmp_path, monkeypatch):
    with s3_bucket("doctor") as url:
        found = {check.what: check for check in examine(url)}
        assert found["clock of the storage"].good
        fast = SimpleNamespace(time=lambda: time.time() + 1200)
        monkeypatch.setattr("evdist.service.jobs.doctor.time", fast)
        found = {check.what: check for check in examine(url)}
    assert not found["clock of the storage"].good
    assert found["storage"].good
