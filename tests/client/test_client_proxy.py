"""A Prefect server behind an authenticating proxy: the client shows its token, strangers learn
nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from prefect.settings import PREFECT_API_KEY, temporary_settings

from evdist.service.client.deployment import Deployment
from evdist.service.jobs import JobError


class Proxy(BaseHTTPRequestHandler):
    """Lets requests with the right token through, to a server that is always well."""

    def do_GET(self) -> None:
        known = self.headers.get("Authorization") == "Bearer token-of-anna"
        self.send_response(200 if known else 401)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b"true" if known else b'{"detail": "sign in"}')

    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/api"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_token_opens_the_proxy(api):
    with temporary_settings({PREFECT_API_KEY: "token-of-anna"}):
        assert Deployment(api).asked(lambda client: client.api_healthcheck()) is None


@pytest.mark.parametrize("token", [None, "token-of-bert"])
def test_a_stranger_learns_nothing_and_is_told_at_once(api, token):
    with temporary_settings({PREFECT_API_KEY: token}):
        with pytest.raises(JobError, match="401 Unauthorized"):
            Deployment(api).asked(lambda client: client.read_flow_runs())
