"""One process at a time in object storage, by counted heartbeats; and a storage that is away."""

from __future__ import annotations

import errno
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from s3_bucket import s3_bucket

from evdist.stores import lease as lease_module
from evdist.stores.lease import Lease, LeaseLostError
from evdist.stores.paths import children, create_bytes, read_bytes
from evdist.stores.transient import is_transient, steady


@pytest.fixture(scope="module")
def bucket():
    with s3_bucket("leases") as url:
        yield url


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(lease_module, "LEASE_SECONDS", 1.5)
    monkeypatch.setattr(lease_module, "_LOOK", 0.1)


def beating(lease: Lease, stop: threading.Event) -> None:
    while not stop.wait(0.2):
        lease.beat()


def test_of_many_one_creates(bucket, tmp_path):
    for place in (bucket, str(tmp_path)):
        with ThreadPoolExecutor(8) as pool:
            contents = [str(i).encode() for i in range(8)]
            won = list(pool.map(create_bytes, [f"{place}/one"] * 8, contents))
        assert sum(won) == 1
        assert read_bytes(f"{place}/one") == contents[won.index(True)]


def test_of_many_one_holds_and_the_next_follows_at_once(bucket):
    stop, held = threading.Event(), []

    def take(number: int) -> str:
        lease = Lease(f"{bucket}/many")
        try:
            lease.acquire()
        except BlockingIOError as error:
            return str(error)
        held.append(lease)
        beating(lease, stop)
        return "held"

    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(take, i) for i in range(4)]
        late = time.monotonic() + 30
        while sum(call.done() for call in calls) < 3 and time.monotonic() < late:
            time.sleep(0.1)
        stop.set()
        told = [call.result(30) for call in calls]
    assert sorted(word == "held" for word in told) == [False, False, False, True]
    assert all("is held by another process" in word for word in told if word != "held")
    held[0].release()
    began = time.monotonic()
    with Lease(f"{bucket}/many").held():
        assert time.monotonic() - began < 1.0
    assert len(children(f"{bucket}/many")) == 1


def test_a_dead_holder_is_followed_and_stopped_when_it_wakes(bucket, monkeypatch):
    dead = Lease(f"{bucket}/dead")
    dead.acquire()
    # Clocks of machines are not compared: an hour's difference means nothing.
    monkeypatch.setattr(time, "time", lambda: 0.0)
    began = time.monotonic()
    with Lease(f"{bucket}/dead").held():
        assert time.monotonic() - began >= 1.5
        with pytest.raises(LeaseLostError, match="Another process has taken over"):
            dead.beat()
        dead.release()  # which it no longer can
        assert Lease(f"{bucket}/dead").is_alive()
    assert not Lease(f"{bucket}/dead").is_alive()


class ClosedError(Exception):
    def __init__(self) -> None:
        self.response = {"ResponseMetadata": {"HTTPStatusCode": 503}}


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (OSError(errno.EHOSTUNREACH, "no route"), True),
        (ClosedError(), True),
        (OSError(errno.ENOSPC, "full"), False),
        (PermissionError(), False),
        (FileNotFoundError(), False),
        (ValueError("wrong"), False),
    ],
)
def test_what_passes_by_itself_is_tried_again(error, passes, monkeypatch):
    assert is_transient(error) is passes
    monkeypatch.setenv("EVDIST_PATIENCE", "1")
    left = [error, error]

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    if passes:
        assert steady(call) == "done"
    else:
        with pytest.raises(type(error)):  # whatever it says
            steady(call)
        assert len(left) == 1


def test_patience_has_an_end(monkeypatch):
    monkeypatch.setenv("EVDIST_PATIENCE", "0.5")
    began = time.monotonic()

    def call() -> None:
        raise ConnectionError("away")

    with pytest.raises(ConnectionError, match="away"):
        steady(call)
    assert time.monotonic() - began < 2
