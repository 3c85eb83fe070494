"""Which part of a service does not answer: named within seconds, in one sentence.

A library that calls a server asks again and again for a minute, and then says what it met at the
last attempt. Who waits wants to know before that whose turn it is: the storage's, Prefect's, or
that of Prefect's database.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger("evdist.job")

#: Seconds that a server has for a first answer. All questions of one sentence take 8 s at most.
_TIMEOUT = 4.0
_TRIES, _PAUSE = 2, 0.5
#: Seconds after which a call that has not returned is said to be late, and why.
_LATE = 6.0
_PORTS = {"http": 80, "https": 443}


def storage_away(url: str) -> str | None:
    """Why the server of an S3 address does not answer; None when it does, or is not known.

    Any answer will do: whether the keys are right is another question.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not url.startswith(("s3://", "s3a://")) or not endpoint:
        return None
    why = ""
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_PAUSE)  # a server that is started again
        try:
            _greet(endpoint)
        except OSError as error:
            why = str(error) or type(error).__name__
        else:
            return None
    return f"The storage {url} does not answer: nothing at {endpoint} (AWS_ENDPOINT_URL): {why}."


def _greet(endpoint: str) -> None:
    """Connect; where the server speaks plain HTTP, wait for its first byte."""
    parts = urllib.parse.urlsplit(endpoint)
    where = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 443))
    with socket.create_connection(where, timeout=_TIMEOUT) as line:
        if parts.scheme == "http":
            line.sendall(f"HEAD / HTTP/1.0\r\nHost: {where[0]}\r\n\r\n".encode())
            if not line.recv(1):
                raise ConnectionResetError("the connection was closed")


def prefect_away(api_url: str) -> str | None:
    """Why Prefect's server cannot take jobs: it or its database does not answer; None if they do.

    A server that wants to know who asks has answered.
    """
    url = api_url.rstrip("/")
    try:
        if _status(f"{url}/health") >= 500:
            return f"The Prefect server at {api_url} answers that it is not well."
    except (OSError, ValueError) as error:
        return f"No Prefect server answers at {api_url}: {_reason(error)}."
    why = "it is not ready"
    try:
        if _status(f"{url}/ready") < 500:
            return None
    except (OSError, ValueError) as error:
        why = _reason(error)
    return (
        f"The Prefect server at {api_url} answers, but its database does not ({why}). Jobs cannot "
        "be queued until it is back."
    )


def _status(url: str) -> int:
    if not url.startswith(("http://", "https://")):
        raise ValueError("the address must begin with http:// or https://")
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def _reason(error: Exception) -> str:
    why = error.reason if isinstance(error, urllib.error.URLError) else error
    return "timed out" if isinstance(why, TimeoutError) else str(why)


@contextmanager
def told_when_late(why: Callable[[], str | None]) -> Iterator[None]:
    """Say which part does not answer while the block still waits for it."""
    done = threading.Event()

    def tell() -> None:
        if not done.is_set() and (said := why()) and not done.is_set():
            logger.warning("%s Asking again.", said)

    timer = threading.Timer(_LATE, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()
