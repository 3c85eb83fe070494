"""The decorators of functions that numba compiles, and the cache of what it made of them.

numba keeps compiled functions on disk and takes one for fresh while the file that it stands in is
the same. But what a function calls is compiled into it, from whatever file: after an update of
evdist a function whose own file did not change would go on with what it called before. Here a
function is fresh while the files of all kernels are the same.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

#: All modules that numba compiles, and those that these take constants from.
KERNELS = (
    "kernels/*.py",
    "*/*kernel.py",
    "evclus/rows/entrants.py",
    "evclus/rows/sparse_loss.py",
    "evclus/rows/sparse_sweep.py",
    "evclus/rows/sweep.py",
)
#: What reading an index raises if an update moved a class that it names, or if it was cut short.
_UNREADABLE = (AttributeError, ImportError, EOFError, pickle.UnpicklingError)


def njit(function: Callable | None = None, **options: Any) -> Any:
    """As `numba.njit(cache=True, nogil=True)`, with a `KernelCache`."""
    if function is None:
        return partial(njit, **options)
    made = numba.njit(nogil=True, **options)(function)
    if hasattr(made, "enable_caching"):  # else numba is switched off: it is the function itself
        made._cache = KernelCache(function)
    return made


#: As ``@njit(error_model="numpy")``, for functions that only compiled functions call.
#:
#: numba writes two doors for every function, one for Python and one for C. A function that is
#: called from compiled code alone needs neither, and is compiled faster without: the first fit on
#: a machine waits for all of them.
#:
#: Nor do such functions count references to the arrays that they are given: their caller holds
#: these. numba would count them with atomic instructions, row by row, 7 to 9 % of a fit. So they
#: cannot make arrays; a function that can makes them and hands them down.
njit_inner = njit(error_model="numpy", _nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


class KernelCache(FunctionCache):
    """Compiled forms of one function, fresh while the files of all kernels are the same."""

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        # Not the times of files, which numba takes: a layer of an image keeps them to the second.
        self._cache_file._source_stamp = kernels_stamp()

    def holds_any(self) -> bool:
        """Whether there is a fresh form on disk, for whatever arguments."""
        try:
            return bool(self._cache_file._load_index())
        except _UNREADABLE:
            return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        # numba's own fills the compiler's tables first, half a second with SciPy's linear algebra.
        # Code that is compiled needs the memory of arrays alone; who compiles fills the tables.
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except _UNREADABLE:
            self.flush()
            return None


@cache
def kernels_stamp() -> str:
    """A hash of the files of all kernels."""
    root = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted({path for pattern in KERNELS for path in root.glob(pattern)}):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
