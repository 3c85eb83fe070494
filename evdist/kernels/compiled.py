"""Whether compiled functions are there already, or will be compiled by the call that comes.

numba compiles a function when it is first called and keeps the result on disk: beside the module,
or in NUMBA_CACHE_DIR. The first fit on a machine therefore takes seconds longer than all others,
and says so.
"""

from __future__ import annotations

from typing import Any


def is_loaded(function: Any) -> bool:
    """Whether a function compiled by numba is in the memory of this process."""
    return bool(getattr(function, "overloads", None))


def is_compiled(function: Any) -> bool:
    """Whether a function compiled by numba is in memory or on disk for this source and processor.

    Where numba does not tell (its index is no public interface), the answer is yes: nothing is said
    rather than something wrong.
    """
    if is_loaded(function):
        return True
    try:
        return bool(function._cache._cache_file._load_index())
    except (AttributeError, OSError, ValueError):
        return True
