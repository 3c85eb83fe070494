"""evdist: evidential clustering of very many objects.

The public names are imported on first use, so that ``import evdist`` costs next to nothing and
asks for no optional dependency.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in _PUBLIC, for type checkers and editors
    from evdist import metrics as metrics
    from evdist.belief import FocalSets as FocalSets
    from evdist.constraints import expand_constraints as expand_constraints
    from evdist.constraints import propose_links as propose_links
    from evdist.estimators.evclus import EVCLUS as EVCLUS
    from evdist.partition import CredalPartition as CredalPartition

__version__ = "0.1.0"

#: Public name -> the module it is taken from. A submodule stands under its own name.
_PUBLIC = {
    "CredalPartition": "evdist.partition",
    "EVCLUS": "evdist.estimators.evclus",
    "FocalSets": "evdist.belief",
    "expand_constraints": "evdist.constraints",
    "metrics": "evdist.metrics",
    "propose_links": "evdist.constraints",
}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'evdist' has no attribute {name!r}.")
    module = import_module(_PUBLIC[name])
    value = module if module.__name__ == f"evdist.{name}" else getattr(module, name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
