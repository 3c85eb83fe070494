"""The decorator of functions that only compiled functions call.

numba writes two doors for every function, one for Python and one for C. A function that is called
from compiled code alone needs neither, and is compiled faster without: the first fit on a machine
waits for all of them.

Nor do such functions count references to the arrays that they are given: their caller holds these.
numba would count them with atomic instructions, row by row, 7 to 9 % of a fit. So they cannot make
arrays; a function that can makes them and hands them down.
"""

from __future__ import annotations

from typing import Any

from numba import njit

# numba's type stubs do not know the last three.
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

#: As ``@njit(cache=True, nogil=True, error_model="numpy")``, but not to be called from Python, and
#: without arrays of its own.
njit_inner = njit(**_OPTIONS)
