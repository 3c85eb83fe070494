"""Whether a Prefect server can run jobs: its deployment, its work pool, its workers, its clock."""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

_TIMEOUT = 5.0
#: Seconds between two clocks from which on certificates and signed requests may be refused.
APART = 300.0


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    what: str
    good: bool
    found: str


def prefect_checks(api_url: str, deployment: str) -> list[Check]:
    """What is said of the server at `api_url`, and of FLOW/DEPLOYMENT there."""
    url = api_url.rstrip("/")
    try:
        began = time.time()
        with urllib.request.urlopen(f"{url}/health", timeout=_TIMEOUT) as answer:
            good, said = answer.status == 200, answer.headers.get("Date")
        middle = (began + time.time()) / 2
    except (urllib.error.URLError, OSError, ValueError) as error:
        return [Check("Prefect", False, f"{api_url} does not answer: {error}")]
    checks = [Check("Prefect", good, f"{api_url} answers")]
    if said:
        checks.append(clock("Prefect", parsedate_to_datetime(said).timestamp() - middle))
    return [*checks, *_deployment(url, deployment)]


def clock(whose: str, ahead: float) -> Check:
    """A clock beside that of this machine; jobs compare none, certificates and S3 do."""
    where = "ahead of" if ahead >= 0 else "behind"
    words = f"{abs(ahead):.0f} s {where} this machine's" if abs(ahead) >= 1.5 else "as here"
    return Check(f"clock of {whose}", abs(ahead) < APART, words)


def _deployment(url: str, deployment: str) -> list[Check]:
    flow, _, name = deployment.partition("/")
    try:
        found = _asked(f"{url}/deployments/name/{_part(flow)}/{_part(name)}")
    except urllib.error.HTTPError as error:
        return [Check("deployment", False, _refused(error, f"there is no {deployment}"))]
    except (urllib.error.URLError, OSError, ValueError) as error:
        return [Check("deployment", False, f"{deployment}: {error}")]
    checks = [Check("deployment", not found.get("paused"), deployment + _paused(found, "paused"))]
    pool = found.get("work_pool_name")
    if not pool:
        return [*checks, Check("work pool", False, f"{deployment} has none")]
    return [*checks, _pool(url, pool)]


def _pool(url: str, name: str) -> Check:
    try:
        pool = _asked(f"{url}/work_pools/{_part(name)}")
        workers = _asked(f"{url}/work_pools/{_part(name)}/workers/filter", {})
    except urllib.error.HTTPError as error:
        return Check("work pool", False, _refused(error, f"there is no {name}"))
    except (urllib.error.URLError, OSError, ValueError) as error:
        return Check("work pool", False, f"{name}: {error}")
    alive = sum(one.get("status") == "ONLINE" for one in workers)
    words = f"{name}: {alive} workers alive{_paused(pool, 'is_paused')}"
    return Check("work pool", bool(alive) and not pool.get("is_paused"), words)


def _paused(found: dict[str, Any], key: str) -> str:
    return ", paused" if found.get(key) else ""


def _refused(error: urllib.error.HTTPError, missing: str) -> str:
    if error.code in (401, 403):
        return "the server requires PREFECT_API_AUTH_STRING, or PREFECT_API_KEY with a proxy"
    return missing if error.code == 404 else f"the server says {error.code}"


def _part(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _asked(url: str, body: Any = None) -> Any:
    """The answer to a request with the rights that the environment gives."""
    headers = {"Content-Type": "application/json"}
    if auth := os.environ.get("PREFECT_API_AUTH_STRING"):
        headers["Authorization"] = f"Basic {base64.b64encode(auth.encode()).decode()}"
    elif key := os.environ.get("PREFECT_API_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    content = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, content, headers)
    with urllib.request.urlopen(asked, timeout=_TIMEOUT) as answer:
        return json.load(answer)
