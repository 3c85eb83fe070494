"""A part of the service that does not answer is named within seconds."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from evdist import Client
from evdist.service.jobs import JobError
from evdist.service.jobs.reach import prefect_away, storage_away, told_when_late


@pytest.fixture
def silent() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def without_database() -> Iterator[str]:
    """A server that says what Prefect's says when its database is away."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/api/health" else 503)
            self.end_headers()

        def log_message(self, *words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/api"
        server.shutdown()


@pytest.mark.parametrize("kind", ["silent", "closed"])
def test_a_storage_that_does_not_answer_is_told_within_15_seconds(kind, request, monkeypatch):
    port = request.getfixturevalue(kind)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    client = Client("s3://bucket/evdist")
    for call in (client.jobs, lambda: client.job("a"),
                 lambda: client.submit(np.eye(3), n_clusters=2)):  # fmt: skip
        began = time.monotonic()
        with pytest.raises(JobError, match=f"The storage .*nothing at http://127.0.0.1:{port}"):
            call()
        assert time.monotonic() - began < 15


def test_a_storage_of_unknown_address_is_not_asked(monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    assert storage_away("s3://bucket") is None
    assert storage_away("/data") is None


def test_each_part_of_prefect_is_named(silent, closed, without_database):
    assert "No Prefect server answers" in str(prefect_away(f"http://127.0.0.1:{closed}/api"))
    began = time.monotonic()
    assert "timed out" in str(prefect_away(f"http://127.0.0.1:{silent}/api"))
    assert time.monotonic() - began < 10
    assert "answers, but its database does not" in str(prefect_away(without_database))
    assert "must begin with http" in str(prefect_away("ftp://127.0.0.1/api"))


def test_a_late_answer_is_explained_while_it_is_waited_for(caplog, monkeypatch):
    monkeypatch.setattr("evdist.service.jobs.reach._LATE", 0.05)
    with caplog.at_level(logging.WARNING, "evdist.job"):
        with told_when_late(lambda: "The storage does not answer."):
            time.sleep(0.3)
        assert caplog.messages == ["The storage does not answer. Asking again."]
        with told_when_late(lambda: "too early"):
            pass
        time.sleep(0.1)
    assert len(caplog.messages) == 1
