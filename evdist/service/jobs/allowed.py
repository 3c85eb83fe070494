"""Addresses that a job may name where it runs: those below the prefixes of EVDIST_ALLOWED.

A job is a stranger's wish that is carried out with the rights of the machine it runs on. Where the
operator has set EVDIST_ALLOWED, such as ``s3://bucket/evdist/anna,/data/public``, a job that names
anything else, to read or to write, is refused before anything is touched.
"""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from evdist.service.config import ConfigError, JobConfig
from evdist.stores.paths import address


def check_allowed(config: JobConfig) -> None:
    """Refuse a configuration with an address outside of EVDIST_ALLOWED; all are allowed unset."""
    check_address(config.folder, "folder")
    check_address(config.data.url if config.data is not None else None, "data.url")
    check_address(config.links.url, "links.url")
    check_address(config.model, "model")
    check_address(config.start, "start")
    for url in config.inputs or ():
        check_address(url, "inputs")


def check_address(url: str | None, key: str) -> None:
    """Refuse one address, which stands under `key`."""
    allowed = [word for word in re.split(r"[\s,]+", os.environ.get("EVDIST_ALLOWED", "")) if word]
    if url is None or not allowed:
        return
    place = _plain(url)
    for prefix in map(_plain, allowed):
        if place is not None and prefix is not None:
            if place == prefix or place.startswith(f"{prefix.rstrip('/')}/"):
                return
    # Nothing is said of what is there, nor of what other jobs may use.
    raise ConfigError(
        f"{key} names an address that jobs may not use here (EVDIST_ALLOWED). Copy the data to "
        "your storage, or ask the operator."
    )


def _plain(url: str) -> str | None:
    """The address without detours; None where it has some that cannot be seen through.

    A chain of file systems (``zip::``), a step up, and an escape that hides one are such.
    """
    if "::" in url or "\0" in url:
        return None
    if "://" not in url or url.lower().startswith(("file://", "local://")):
        return os.path.realpath(address(url))  # through links, too
    parts = urlsplit(url)
    path = unquote(parts.path)
    if "@" in parts.netloc or {"..", "."} & set(path.split("/")) or unquote(path) != path:
        return None
    return f"{parts.scheme.lower()}://{parts.netloc}{path}".rstrip("/")
