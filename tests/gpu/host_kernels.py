"""The CUDA kernels of rows.cu, compiled for the CPU: one call per thread.

No kernel talks to another thread, so a loop over the threads is all that a GPU would do. Only
float16 needs a GPU's own instructions.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import evdist.evclus.rows.nvrtc as nvrtc

COMPILER = shutil.which("g++") or shutil.which("c++")
SOURCE = Path(nvrtc.__file__).with_name("rows.cu")

_PRELUDE = """
#include <cmath>
#define __device__ static
#define __global__
#define __launch_bounds__(x)
#define __noinline__ __attribute__((noinline))
struct Index { int x, y; };
static Index blockIdx, threadIdx, blockDim = {1, 1};
"""
_EPILOGUE = """
extern "C" void set_thread(int x, int y) { blockIdx = {x, y}; }
"""


class HostModule:
    """Stands where `evdist.evclus.rows.nvrtc.Module` stands, on a CPU."""

    def __init__(self, macros: tuple[str, ...], folder: Path):
        name = "rows_" + "_".join(macros).replace("=", "")
        source, library = folder / f"{name}.cpp", folder / f"{name}.so"
        source.write_text(_PRELUDE + SOURCE.read_text() + _EPILOGUE)
        assert COMPILER is not None
        subprocess.run(
            [COMPILER, "-O2", "-w", "-shared", "-fPIC", *(f"-D{m}" for m in macros),
             str(source), "-o", str(library)],
            check=True,
        )  # fmt: skip
        self._library = ctypes.CDLL(str(library))

    def launch(self, name: str, rows: int, along: int, args: Sequence[object]) -> None:
        kernel = getattr(self._library, name)
        values = [nvrtc.c_value(a) for a in args]
        for y in range(along):
            for x in range(rows):
                self._library.set_thread(x, y)
                kernel(*values)


def host_modules(folder: Path):
    """module(macros), each compiled once."""
    return lru_cache(lambda macros: HostModule(macros, folder))
