"""The GPU, reached for only by those who ask for it: torch takes seconds to import."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["bootclus_on_device", "find_device", "on_device"]

_SOLVER = "evdist.solvers.device"


def on_device() -> ModuleType:
    """`evdist.solvers.device`."""
    return import_module(_SOLVER)


def bootclus_on_device() -> ModuleType:
    """`evdist.solvers.device_bootclus`."""
    return import_module(f"{_SOLVER}_bootclus")


def find_device(name: Any, client: Any = None) -> Any:
    """The torch.device that `device=name` means; None is the CPU, without torch.

    With a client, that of each of its workers.
    """
    if name == "cpu":
        return None
    if not isinstance(name, str) or not (name in ("auto", "cuda") or _numbered(name)):
        raise ValueError(
            f'device must be "cpu", "cuda", "cuda:0", "cuda:1", ..., or "auto", got {name!r}.'
        )
    if find_spec("torch") is None:
        if name == "auto":
            return None
        raise ValueError(
            f"device={name!r} needs torch with CUDA, which is not installed: pip install torch."
        )
    return on_device().find_device(name, client)


def _numbered(name: str) -> bool:
    return name.startswith("cuda:") and name[5:].isdecimal()
