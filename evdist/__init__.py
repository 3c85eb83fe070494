"""evdist: evidential clustering of very many objects.

The public names are imported on first use, so that ``import evdist`` costs next to nothing and
asks for no optional dependency. evdist/registry.py says where each comes from.
"""

from __future__ import annotations

from typing import Any

from evdist.registry import PUBLIC, installed, load

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "__all__":  # asked for by `from evdist import *` alone
        return installed()
    if name not in PUBLIC:
        raise AttributeError(f"module 'evdist' has no attribute {name!r}.")
    home = PUBLIC[name]
    value = load(home if home == f"evdist.{name}" else f"{home}:{name}")
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
