"""A user's mistake in a configuration, told in sentences."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

#: Values in a sentence are cut short.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 60
#: Mistakes told at once; more would hide the first.
_MOST = 8


class ConfigError(ValueError):
    """A configuration that cannot be run: which key, what was got, what to do."""


def short(value: object) -> str:
    """A value as it is written, cut short where it would fill the sentence."""
    return _SHORT.repr(value)


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean 'n_clusters'?``, or the names there are when none is near."""
    known = sorted(known)
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"known are {', '.join(known)}."


def sentences(error: ValidationError, keys: dict[str, list[str]]) -> str:
    """The mistakes that pydantic found, one sentence each.

    `keys` maps the path of a section ("" for the whole, "data", ...) to the keys it knows.
    """
    found = error.errors(include_url=False)
    lines = [_sentence(one, keys) for one in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"... and {len(found) - _MOST} more.")
    return " ".join(lines)


def _sentence(one: Mapping[str, Any], keys: dict[str, list[str]]) -> str:
    *section, last = [str(part) for part in one["loc"]] or [""]
    where = ".".join([*section, last])
    if one["type"] == "extra_forbidden":
        known = keys.get(".".join(section), [])
        return f"Unknown key {short(where)}: {nearest(last, known)}"
    if one["type"] == "missing":
        return f"Key {where!r} is missing."
    if one["type"] == "value_error":
        return str(one["ctx"]["error"])
    got = short(one["input"])
    if one["type"] == "model_type":
        there = ", ".join(keys.get(where, []))
        return f"{where or 'The configuration'} must be a section with keys ({there}), got {got}."
    message = one["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
    return f"{where or 'The configuration'} must be {message}, got {got}."
