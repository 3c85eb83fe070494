"""``python -m evdist.service.jobs.wait_for_prefect SECONDS``: wait until the server is ready."""

from __future__ import annotations

import os
import sys
import time
import urllib.error
import urllib.request

_LOOK = 2.0


def wait(api_url: str, seconds: float) -> bool:
    """Whether the server at `api_url`, and its database, answer in time."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(f"{api_url.rstrip('/')}/ready", timeout=5) as answer:
                if answer.status == 200:
                    return True
        except (urllib.error.URLError, OSError, ValueError):
            pass
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK)


def main(arguments: list[str]) -> int:
    """Entry point; PREFECT_API_URL names the server."""
    api_url = os.environ.get("PREFECT_API_URL", "")
    seconds = float(arguments[0]) if arguments else 60.0
    if wait(api_url, seconds):
        return 0
    sys.stderr.write(f"No Prefect server answers at {api_url} after {seconds:g} s.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
