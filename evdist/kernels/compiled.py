"""Whether compiled functions are there already, or will be compiled by the call that comes.

numba compiles a function when it is first called and keeps the result on disk: beside the module,
or in NUMBA_CACHE_DIR. The first fit on a machine therefore takes seconds longer than all others,
and says so.
"""

from __future__ import annotations

from typing import Any

from evdist.kernels.jit import KernelCache


def is_loaded(function: Any) -> bool:
    """Whether a function compiled by numba is in the memory of this process."""
    return bool(getattr(function, "overloads", None))


def is_compiled(function: Any) -> bool:
    """Whether a function is in memory, or on disk for these sources.

    What `evdist.kernels.jit` did not compile counts as compiled: nothing is said of it.
    """
    kept = getattr(function, "_cache", None)
    return is_loaded(function) or not isinstance(kept, KernelCache) or kept.holds_any()
