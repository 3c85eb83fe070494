"""Values as JSON knows them: what any file, flow or program hands over, made harmless first.

A configuration travels: into a manifest, through Prefect, into a fingerprint. So it holds numbers,
words, lists and sections only, and is no deeper and no larger than a person would write it. Checked
before anything else looks at it, a value that refers to itself, or that a few lines of aliases
multiply a billionfold, costs nothing. Pydantic's JsonValue has no such limits, and refuses NumPy's
numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from evdist.service.config.errors import ConfigError, short

#: Sections within sections at most.
_DEEPEST = 32
#: Values at most: some 100,000 links.
_MOST = 400_000


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy made of dict, list, str, int, float, bool and None; NumPy's scalars become Python's.

    Anything else is a ConfigError that says where it stands.
    """
    return _Copy().section(values, "")


class _Copy:
    def __init__(self) -> None:
        self._count = 0

    def section(self, values: Mapping[Any, Any], where: str, depth: int = 0) -> dict[str, Any]:
        for key in values:
            if not isinstance(key, str):
                raise ConfigError(
                    f"Keys must be words, got {short(key)} in "
                    f"{where or 'the configuration'}. Put it in quotes."
                )
            _check_text(key, "A key")
        return {
            key: self.value(value, f"{where}.{key}" if where else key, depth + 1)
            for key, value in values.items()
        }

    def value(self, value: Any, where: str, depth: int) -> Any:
        self._count += 1
        if self._count > _MOST or depth > _DEEPEST:
            raise ConfigError(
                f"{where[:80]} is too deep or too large for a configuration. Many links go into a "
                "file: links.url."
            )
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Mapping):
            return self.section(value, where, depth)
        if isinstance(value, list | tuple):
            return [
                self.value(item, f"{where}.{place}", depth + 1) for place, item in enumerate(value)
            ]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise ConfigError(f"{where} is too large a number: 64 bits at most.")
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise ConfigError(f"{where} must be a finite number, got {value}.")
            return float(value)
        if isinstance(value, str):
            _check_text(value, where)
            return str(value)
        raise ConfigError(
            f"{where} must be a number, a word, a list or a section, got "
            f"{type(value).__name__}. Put dates and the like in quotes."
        )


def _check_text(text: str, where: str) -> None:
    """No file name and no manifest can hold the rest."""
    if "\0" in text or (not text.isprintable() and not _encodes(text)):
        raise ConfigError(
            f"{where} holds a character that no text has (NUL, or half of a surrogate pair): "
            f"{short(text)}."
        )


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
