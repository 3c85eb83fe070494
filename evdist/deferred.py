"""Modules that take a while to load, and are loaded when something of them is first used.

`from evdist import EVCLUS` needs scikit-learn's base classes, SciPy's sparse arrays and numba. But
modules that name pandas, SciPy's statistics, zarr and others at their top, ours and those of
scikit-learn, would load these too, more than half of the time, for functions that few programs
call. While `evdist.registry.load` imports a module, `stand_ins` puts forwarders in the places of
these: a module that imports one of them meanwhile holds a forwarder, which loads the real one when
an attribute of it is first read. Afterwards ``sys.modules`` and the packages are as they would be
without; other programs never meet a forwarder there.

SciPy copies all names of NumPy, with its test tools and its compiler of Fortran: these wait, too.
`tests/test_imports.py` counts what is loaded.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

#: What waits for its first use. ``import module`` at the top of another module waits, ``from module
#: import name`` reads an attribute, so that the module is loaded at once.
WAITING = (
    "numpy.f2py",
    "numpy.testing",
    "pandas",
    "pyarrow",
    "scipy.cluster",
    "scipy.optimize",
    "scipy.sparse.csgraph",
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
        self.remove()
        with _uncollected():
            return getattr(import_module(self.__name__), attribute)

    def __dir__(self) -> list[str]:
        return dir(import_module(self.__name__))

    def place(self) -> None:
        sys.modules[self.__name__] = self
        package, _, name = self.__name__.rpartition(".")
        if package == "numpy":
            # Asked for a submodule, NumPy imports it and asks itself again.
            vars(import_module(package)).setdefault(name, self)

    def remove(self) -> None:
        if sys.modules.get(self.__name__) is self:
            sys.modules.pop(self.__name__, None)
        package, _, name = self.__name__.rpartition(".")
        inside = vars(sys.modules[package]) if package in sys.modules else {}
        if inside.get(name) is self:
            inside.pop(name, None)


@contextmanager
def stand_ins(names: Iterable[str] = WAITING) -> Iterator[None]:
    """Imports in this context find forwarders for those of these modules that are not loaded."""
    placed = [_StandIn(name) for name in names if name not in sys.modules]
    for one in placed:
        one.place()
    try:
        with _uncollected():
            yield
    finally:
        for one in placed:
            one.remove()


@contextmanager
def _uncollected() -> Iterator[None]:
    """What modules make while they load stays: nothing to collect, and looked through in vain."""
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()
