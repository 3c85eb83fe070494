"""CUDA source to running kernels: NVIDIA's run-time compiler and driver, through ctypes.

Both libraries come with every torch that knows CUDA. Triton was tried first: a program of one row
per thread, with a triangle of sums in registers, takes it minutes to compile; this takes seconds.
The compiled code is kept in a folder of the user's cache for the next process.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch

#: Threads of a block; the kernels are bounded to it.
THREADS = 128
#: Bytes of shared memory that a block has without asking; CUDA's name for asking.
_SHARED, _MOST_SHARED = 48 << 10, 8


@lru_cache(maxsize=1)
def _nvrtc() -> ctypes.CDLL:
    version = str(torch.version.cuda).split(".")[0]
    name = f"libnvrtc.so.{version}"
    packages = Path(torch.__file__).parents[1] / "nvidia"
    for place in (name, *map(str, sorted(packages.glob(f"*/lib/{name}")))):
        try:
            return ctypes.CDLL(place)
        except OSError:
            continue
    raise OSError(
        f"{name}, NVIDIA's run-time compiler, was not found beside torch {torch.__version__}. "
        f"Install nvidia-cuda-nvrtc of CUDA {version}, or use device='cpu'."
    )


@lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(status: int, what: str) -> None:
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        reason = text.value.decode() if text.value else f"error {status}"
        raise RuntimeError(f"CUDA could not {what}: {reason}.")


def _compile(source: str, options: Sequence[str]) -> bytes:
    lib, program = _nvrtc(), ctypes.c_void_p()
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = lib.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"rows.cu", 0, None, None
    )
    status = status or lib.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    if status:
        lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"rows.cu did not compile with {options}:\n{log.value.decode()}")
    lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
    code = ctypes.create_string_buffer(size.value)
    lib.nvrtcGetCUBIN(program, code)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def _cached(source: str, options: Sequence[str]) -> bytes:
    """Compiled code, from the cache folder where it is there."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    key = hashlib.sha256("\0".join([source, str(torch.version.cuda), *options]).encode())
    path = Path(base) / "evdist" / f"{key.hexdigest()[:32]}.cubin"
    if path.is_file():
        return path.read_bytes()
    code = _compile(source, options)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(code)
        part.replace(path)
    except OSError:
        pass  # a read-only home costs the next process the compilation, nothing else
    return code


class Module:
    """The kernels of one source file, compiled with some macros for one GPU."""

    def __init__(self, source: str, macros: tuple[str, ...], device: int):
        with torch.cuda.device(device):
            torch.cuda.current_stream()
            torch.zeros(1, device="cuda")  # makes the context that the driver loads into
            major, minor = torch.cuda.get_device_capability(device)
            options = [f"--gpu-architecture=sm_{major}{minor}", *(f"-D{m}" for m in macros)]
            self._code = _cached(source, options)
            self._handle = ctypes.c_void_p()
            _check(
                _driver().cuModuleLoadData(ctypes.byref(self._handle), self._code), "load rows.cu"
            )
        self._device = device
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._shared: dict[str, int] = {}

    def launch(
        self, name: str, rows: int, along: int, args: Sequence[object], shared: int = 0
    ) -> None:
        """Run kernel `name` on `rows` threads, `along` times; arguments in C types or tensors.

        A block has `shared` bytes of shared memory for the kernel to divide.
        """
        if name not in self._functions:
            function = ctypes.c_void_p()
            found = _driver().cuModuleGetFunction(
                ctypes.byref(function), self._handle, name.encode()
            )
            _check(found, f"find kernel {name}")
            self._functions[name] = function
        if shared > self._shared.get(name, _SHARED):
            _check(
                _driver().cuFuncSetAttribute(self._functions[name], _MOST_SHARED, shared),
                f"give kernel {name} {shared} bytes of shared memory",
            )
            self._shared[name] = shared
        values = [c_value(a) for a in args]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        with torch.cuda.device(self._device):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            started = _driver().cuLaunchKernel(
                self._functions[name], -(-rows // THREADS), along, 1, THREADS, 1, 1, shared,
                stream, pointers, None,
            )  # fmt: skip
        _check(started, f"start kernel {name}")


def c_value(argument: object) -> ctypes._SimpleCData:
    """A tensor as its address, None as a null pointer, C values as they are."""
    if argument is None:
        return ctypes.c_void_p(0)
    if isinstance(argument, torch.Tensor):
        return ctypes.c_void_p(argument.data_ptr())
    assert isinstance(argument, ctypes._SimpleCData)
    return argument


@lru_cache(maxsize=64)
def compiled(macros: tuple[str, ...], device: int, file: str = "rows.cu") -> Module:
    """The module of a source file beside this one with these macros."""
    source = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return Module(source, macros, device)
