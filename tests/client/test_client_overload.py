"""A Prefect server that is overloaded or away for a while: asked again, not given up."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import httpx
import pytest
from prefect.exceptions import PrefectHTTPStatusError

from evdist.service.client import deployment
from evdist.service.client.deployment import Deployment
from evdist.service.jobs import JobError


def refusal(status: int) -> PrefectHTTPStatusError:
    request = httpx.Request("POST", "http://127.0.0.1:4200/api/x")
    reply = httpx.Response(status, request=request, json={"detail": "Service Unavailable"})
    return PrefectHTTPStatusError.from_httpx_error(
        httpx.HTTPStatusError("refused", request=request, response=reply)
    )


@pytest.fixture
def server(monkeypatch) -> Deployment:
    """A deployment whose server answers as the test says."""
    monkeypatch.setattr(deployment, "_connect", lambda *_: nullcontext())
    monkeypatch.setenv("EVDIST_PATIENCE", "5")
    return Deployment("http://127.0.0.1:4200/api")


@pytest.mark.parametrize("error", [refusal(503), refusal(429), httpx.ReadTimeout("late")])
def test_an_overloaded_server_is_asked_again(server, error):
    answers = iter([error, error, "done"])

    def call(client):
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    assert server.asked(call) == "done"


def test_a_refusal_is_told_at_once(server):
    def call(client):
        raise refusal(422)

    with pytest.raises(JobError, match="Prefect refused the job: Service Unavailable"):
        server.asked(call)


def test_a_server_that_goes_away_is_waited_for(server, monkeypatch):
    asked = []

    def connect(*_):
        asked.append(1)
        if len(asked) < 3:
            why = httpx.ConnectError("refused")
            raise JobError("No Prefect server answers") from why
        return nullcontext()

    monkeypatch.setattr(deployment, "_connect", connect)
    with pytest.raises(JobError, match="No Prefect server answers"):
        server.asked(lambda client: 1)  # it was never there
    server._answered = True
    assert server.asked(lambda client: 1) == 1


@pytest.mark.parametrize(
    ("name", "seconds", "lost"),
    [
        ("Submitting", 100, False),
        ("Submitting", 200, True),
        ("Pending", 200, True),
        ("InfrastructurePending", 10_000, False),  # Kubernetes looks for a place
        ("Scheduled", 10_000, False),
    ],
)
def test_a_run_whose_worker_died_before_it_began_is_lost(name, seconds, lost, monkeypatch):
    """Chaos found it: the worker had taken the run, and was killed before it started a process."""
    now = [0.0]
    monkeypatch.setattr("evdist.stores.lease.time", SimpleNamespace(monotonic=lambda: now[0]))
    state = SimpleNamespace(name=name, type=SimpleNamespace(value="PENDING"))
    run = SimpleNamespace(id=f"{name}-{seconds}", state=state)
    folder = SimpleNamespace(url="job", progress=lambda: None)
    assert not deployment._is_lost(run, folder)
    now[0] += seconds
    assert deployment._is_lost(run, folder) is lost
