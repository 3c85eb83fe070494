"""``python tests/kept_s3.py PORT FILE``: an S3 server on loopback that can be killed.

moto keeps its objects in memory. Here every request that changes something is written to a file
before it is carried out, one at a time, and a server that starts carries the file out again: what
was answered before a kill is there after it, as with a real storage. An upload in parts is kept
when it is complete; one that is under way is lost.
"""

from __future__ import annotations

import base64
import json
import sys
import threading
from io import BytesIO
from pathlib import Path

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
from werkzeug.test import Client

_NAMES = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING")
_HEADS = ("HTTP_", "RAW_URI", "REQUEST_URI", "CONTENT_TYPE")


class Kept:
    """A WSGI application around moto's."""

    def __init__(self, file: Path):
        self._app = DomainDispatcherApplication(create_backend_app)
        self._lock = threading.Lock()
        lines = file.read_text().splitlines() if file.exists() else []
        for line in _shortened(lines):
            self._again(line)
        self._file = file.open("a")

    def _again(self, kept: dict) -> None:
        environ = kept["environ"]
        path = environ["PATH_INFO"].encode("latin1").decode()
        Client(self._app).open(
            path=path, query_string=environ["QUERY_STRING"],
            method=environ["REQUEST_METHOD"], data=base64.b64decode(kept["body"]),
            environ_overrides={k: v for k, v in environ.items() if k.startswith(_HEADS)},
        ).close()  # fmt: skip

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return self._app(environ, start_response)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = BytesIO(body)
        words = {
            key: value for key, value in environ.items()
            if isinstance(value, str) and (key in _NAMES or key.startswith(_HEADS))
        }  # fmt: skip
        with self._lock:
            if "upload" in environ["QUERY_STRING"]:  # parts, whose numbers are drawn anew
                reply = list(self._app(environ, start_response))
                if environ["REQUEST_METHOD"] == "POST" and "uploadId" in environ["QUERY_STRING"]:
                    whole = Client(self._app).get(environ["PATH_INFO"])
                    words |= {"REQUEST_METHOD": "PUT", "QUERY_STRING": ""}
                    self._keep(words, whole.data)
                return reply
            self._keep(words, body)
            return list(self._app(environ, start_response))

    def _keep(self, words: dict[str, str], body: bytes) -> None:
        line = json.dumps({"environ": words, "body": base64.b64encode(body).decode()})
        self._file.write(line + "\n")
        self._file.flush()


def _shortened(lines: list[str]) -> list[dict]:
    """Without what was written over later: hearts beat every two seconds."""
    found, last = [], {}
    for number, line in enumerate(lines):
        try:
            kept = json.loads(line)
        except ValueError:
            continue  # cut off by the kill: it was never carried out
        about = kept["environ"]
        plain = about["REQUEST_METHOD"] == "PUT" and not about["QUERY_STRING"]
        if plain and "HTTP_IF_NONE_MATCH" not in about:
            last[about["PATH_INFO"]] = number
        found.append((number, plain and "HTTP_IF_NONE_MATCH" not in about, kept))
    return [
        kept for number, plain, kept in found
        if not plain or last[kept["environ"]["PATH_INFO"]] == number
    ]  # fmt: skip


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), Kept(Path(sys.argv[2])), threaded=True)
