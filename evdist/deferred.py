"""Modules that take a while to load, and are loaded when something of them is first used.

`from evdist import EVCLUS` needs scikit-learn's base classes, SciPy's sparse arrays and numba. But
modules that name pandas, SciPy's statistics, zarr and others at their top, ours and those of
scikit-learn, would load these too, more than half of the time, for functions that few programs
call. While `evdist.registry.load` imports a module, `stand_ins` puts forwarders in the places of
these: a module that imports one of them meanwhile holds a forwarder, which loads the real one when
an attribute of it is first read. Afterwards ``sys.modules`` is as it would be without; other
programs never meet a forwarder there.

`tests/test_imports.py` counts what is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

#: What waits for its first use. ``import module`` at the top of another module waits; ``from module
#: import name`` reads an attribute, so that the module is loaded at once. A submodule must be one
#: that its package finds when it is asked for: those of SciPy and scikit-learn are.
WAITING = (
    "pandas",
    "pyarrow",
    "scipy.cluster",
    "scipy.optimize",
    "scipy.spatial",
    "scipy.special",
    "scipy.stats",
    "sklearn.cluster",
    "sklearn.discriminant_analysis",
    "sklearn.metrics",
    "sklearn.mixture",
    "sklearn.neighbors",
    "zarr",
)


class _StandIn(ModuleType):
    """Looks like the module; whatever is asked of it, the module answers."""

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        if sys.modules.get(name) is self:
            sys.modules.pop(name, None)
        return getattr(import_module(name), attribute)

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))


@contextmanager
def stand_ins(names: Iterable[str] = WAITING) -> Iterator[None]:
    """Imports in this context find forwarders for those of these modules that are not loaded."""
    placed = {name: _StandIn(name) for name in names if name not in sys.modules}
    sys.modules.update(placed)
    try:
        yield
    finally:
        for name, one in placed.items():
            if sys.modules.get(name) is one:
                del sys.modules[name]
