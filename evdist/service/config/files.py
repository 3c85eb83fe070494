"""Configurations in files: JSON, YAML and TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from evdist.service.config.errors import ConfigError
from evdist.service.config.model import JobConfig

#: A configuration is a page of text; what is larger is something else.
_MOST_BYTES = 1 << 24


def read_config(path: str | Path, **overrides: Any) -> JobConfig:
    """The configuration in a .json, .yaml, .yml or .toml file; `overrides` replace its keys.

    Of a section (data, parameters, ...) the keys given replace those in the file; its others stay.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in _READERS:
        raise ConfigError(
            f"The name of {path} must end in .json, .yaml or .toml, got {kind or 'no ending'}."
        )
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ConfigError(
                f"{path} is larger than {_MOST_BYTES >> 20} MiB: too large for a configuration."
            )
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"Cannot read {path}: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 text: byte {error.start} is wrong.") from error
    try:
        values = _READERS[kind](text)
    except (ValueError, yaml.YAMLError, RecursionError, OverflowError) as error:
        said = " ".join(str(error).split()) or type(error).__name__
        raise ConfigError(f"{path} is not valid {kind[1:].upper()}: {said}.") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold keys and values, got {type(values).__name__}.")
    return JobConfig.of({**values, **{k: _over(values.get(k), v) for k, v in overrides.items()}})


def _over(old: Any, new: Any) -> Any:
    return {**old, **new} if isinstance(old, dict) and isinstance(new, dict) else new


class _SafeLoader(yaml.SafeLoader):
    """Plain values only: no tag can name a Python object, no alias can multiply what is there."""

    def compose_node(self, parent: Any, index: int) -> Any:
        if self.check_event(yaml.AliasEvent):
            alias = self.peek_event()
            raise ConfigError(
                f"Line {alias.start_mark.line + 1} refers to &{alias.anchor}: write the value out "
                "instead."
            )
        return super().compose_node(parent, index)


def _yaml(text: str) -> Any:
    return yaml.load(text, _SafeLoader)  # a SafeLoader


_READERS: dict[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".toml": tomllib.loads,
}
