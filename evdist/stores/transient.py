"""Errors that pass by themselves: a server that restarts, a network that was cut for seconds.

Storage and Dask raise them as many kinds of exception. They are told by name, so that this module
imports none of the libraries.
"""

from __future__ import annotations

import errno
import logging
import os
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
logger = logging.getLogger("evdist.job")

#: Numbers of operating-system errors that a later call need not meet.
_NUMBERS = frozenset(
    {
        *(errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET),
        *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETRESET, errno.ENETUNREACH),
        *(errno.EPIPE, errno.ESTALE, errno.ETIMEDOUT, getattr(errno, "EREMOTEIO", errno.ETIMEDOUT)),
    }
)
#: Classes of libraries, of which some are no OSError.
_NAMES = frozenset(
    {
        "aiohttp.client_exceptions.ClientConnectionError",
        "aiohttp.client_exceptions.ClientPayloadError",
        "botocore.exceptions.ConnectionError",
        "botocore.exceptions.HTTPClientError",
        "botocore.exceptions.IncompleteReadError",
        "botocore.parsers.ResponseParserError",
        "distributed.client.FuturesCancelledError",
        "distributed.comm.core.CommClosedError",
        "evdist.engine.deadline.WorkersLostError",
        "httpx.TransportError",
    }
)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


def patience() -> float:
    """Seconds for which a storage that does not answer is asked again: EVDIST_PATIENCE, or 60."""
    return float(os.environ.get("EVDIST_PATIENCE", "60"))


def is_transient(error: BaseException) -> bool:
    """Whether the same call may succeed later with nothing changed."""
    if isinstance(error, ConnectionError | TimeoutError):
        return True
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return True
    if any(f"{kind.__module__}.{kind.__qualname__}" in _NAMES for kind in type(error).__mro__):
        return True
    # botocore.exceptions.ClientError: the server is at fault, or asks for patience.
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return _asks_for_patience(status)
    return _asks_for_patience(getattr(response, "status_code", 0))  # httpx, which Prefect uses


def _asks_for_patience(status: Any) -> bool:
    return isinstance(status, int) and (status >= 500 or status in (408, 429))


def steady(call: Callable[[], T]) -> T:
    """What `call` returns; a transient error is waited out, longer each time."""
    end, pause = time.monotonic() + patience(), _FIRST_PAUSE
    while True:
        try:
            return call()
        except Exception as error:
            if not is_transient(error) or time.monotonic() + pause > end:
                raise
            said = str(error).partition("\n")[0]  # httpx adds a page about status codes
            logger.warning("%s: %s; tried again", type(error).__name__, said)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
