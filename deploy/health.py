"""Whether a container is well: ``python health.py [URL]``, EVDIST_HEALTH_URL by default.

Exit code 0 when the URL answers 200, or, without a URL, when evdist can be imported.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from importlib import import_module


def main(arguments: list[str]) -> str | None:
    """None when all is well, else what is wrong."""
    url = arguments[0] if arguments else os.environ.get("EVDIST_HEALTH_URL")
    if not url:
        import_module("evdist")
        return None
    if not url.startswith(("http://", "https://")):
        return f"EVDIST_HEALTH_URL must be an http address, got {url!r}"
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return None if answer.status == 200 else f"{url} answers {answer.status}"
    except (urllib.error.URLError, OSError) as error:
        return f"{url} does not answer: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
