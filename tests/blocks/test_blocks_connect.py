"""A client of a scheduler: what is left of it where no scheduler answers."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from evdist.engine import connect
from evdist.engine.admission import admitted
from evdist.engine.connect import connected


@pytest.mark.parametrize("backlog", [None, 1], ids=["nothing listens", "accepts and is silent"])
def test_a_client_without_an_answer_leaves_no_thread(monkeypatch, backlog):
    monkeypatch.setattr(connect, "_TIMEOUT", 1.0)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if backlog:
            server.listen(backlog)
        before = set(threading.enumerate())
        with pytest.raises(ConnectionError, match="No Dask scheduler answers at tcp://") as raised:
            with connected(f"tcp://127.0.0.1:{server.getsockname()[1]}"):
                pass
        # While the error, and with it the client's frame, is still held.
        assert "cluster.tls_ca" in str(raised.value)
        left = set(threading.enumerate()) - before
        assert "IO loop" not in {thread.name for thread in left}


class Closing:
    """A client whose scheduler goes while it is used: it closes itself, and has none any more."""

    status, id = "running", "me"

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        return {"workers": {}}

    def run_on_scheduler(self, function: Any, *args: Any) -> None:
        if function.__name__ == "_leave":
            raise AttributeError("'NoneType' object has no attribute 'run_function'")


def test_what_was_lost_is_told_though_the_client_closes_itself_meanwhile():
    """The job tries again after a lost connection, and after nothing else."""
    with pytest.raises(ConnectionError, match="the scheduler is gone"):
        with admitted(Closing(), 1):
            raise ConnectionError("the scheduler is gone")
