"""The CUDA kernels of rows.cu and lists.cu, compiled for the CPU: one call per thread.

No kernel of rows.cu talks to another thread, so a loop over the threads is all that a GPU would do.
In lists.cu a warp works on one row; here it has one lane (LANES=1). Only float16 needs a GPU's own
instructions.
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

_PRELUDE = """
#include <cmath>
#define __device__ static
#define __global__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
struct Index { int x, y; };
struct uint2 { unsigned x, y; };
struct float4 { float x, y, z, w; };
static Index blockIdx, threadIdx, blockDim = {1, 1};
"""
_EPILOGUE = """
extern "C" void set_thread(int x, int y) { blockIdx = {x, y}; }
"""


class HostModule:
    """Stands where `evdist.evclus.rows.nvrtc.Module` stands, on a CPU."""

    def __init__(self, macros: tuple[str, ...], folder: Path, file: str):
        name = f"{Path(file).stem}_" + "_".join(macros).replace("=", "")
        source, library = folder / f"{name}.cpp", folder / f"{name}.so"
        text = Path(nvrtc.__file__).with_name(file).read_text()
        source.write_text(_PRELUDE + text + _EPILOGUE)
        assert COMPILER is not None
        # Rows of lists are read as numbers of 16, 32, 64 bits, and as floats.
        subprocess.run(
            [COMPILER, "-O2", "-w", "-fno-strict-aliasing", "-shared", "-fPIC",
             *(f"-D{m}" for m in macros), str(source), "-o", str(library)],
            check=True,
        )  # fmt: skip
        self._library = ctypes.CDLL(str(library))

    def launch(
        self, name: str, rows: int, along: int, args: Sequence[object], shared: int = 0
    ) -> None:
        kernel = getattr(self._library, name)
        values = [nvrtc.c_value(a) for a in args]
        for y in range(along):
            for x in range(rows):
                self._library.set_thread(x, y)
                kernel(*values)


def host_modules(folder: Path, file: str = "rows.cu"):
    """module(macros), each compiled once."""
    return lru_cache(lambda macros: HostModule(macros, folder, file))
