"""A client of a scheduler: what is left of it where no scheduler answers."""

from __future__ import annotations

import socket
import threading

import pytest

from evdist.engine import connect
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
