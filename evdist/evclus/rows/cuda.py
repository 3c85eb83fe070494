"""Row programs on a GPU: launches of the kernels in rows.cu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import c_double, c_int, c_longlong
from typing import Protocol

import torch
from torch import Tensor

from evdist.evclus.rows.arrays import Partners, Posteriors, State
from evdist.evclus.rows.nvrtc import compiled
from evdist.evclus.rows.torch import SummedKernels, TorchKernels

#: Up to this many focal sets a thread keeps its program in registers, as rows.cu has it; up to the
#: second number in its own memory; beyond, torch does the work.
MAX_IN_REGISTERS, MAX_FOCAL_SETS = 16, 128
#: Probabilities of a pair that a thread keeps in its own memory; more are sorted by torch.
MAX_REPLICATES = 2048


class Launcher(Protocol):
    def launch(
        self, name: str, rows: int, along: int, args: Sequence[object], shared: int = 0
    ) -> None: ...


class Kernels(Protocol):
    """What a device does to rows; `TorchKernels` documents each operation."""

    def update(self, state: State, colour: int, places: Tensor | None = None) -> None: ...

    def losses(self, state: State, colour: int, place: int, rows: int) -> Tensor: ...

    def objective(self, state: State) -> Tensor: ...

    def assign(
        self, mass: Tensor, table: Tensor, delta: Tensor, partners: Partners,
        lo: int, rows: int, place: int, spread: int,
    ) -> None: ...  # fmt: skip

    def distances(
        self, mine: Tensor, others: Tensor, out: Tensor, partners: Partners,
        code: tuple[int, int], gamma: float, *, lo: int, first: int, rows: int,
        place: int, spread: int,
    ) -> None: ...  # fmt: skip

    def intervals(
        self, held: Posteriors, out: Tensor, partners: Partners,
        quantiles: tuple[int, float, int, float], *, own: int, lo: int, place: int, rows: int,
    ) -> None: ...  # fmt: skip


class CudaKernels(SummedKernels):
    """`module(macros)` gives the kernels compiled with them."""

    def __init__(self, module: Callable[[tuple[str, ...]], Launcher]):
        self._module = module

    def update(self, state: State, colour: int, places: Tensor | None = None) -> None:
        graph, partners = state.graph, state.graph.colours[colour]
        lo, hi = graph.bounds[colour : colour + 2]
        rows = hi - lo if places is None else len(places)
        macros = _macros(state)
        if state.extra is not None:
            macros += ("LINKED",)
        self._module(macros).launch(
            "update", rows, len(state.mass),
            [state.mass, state.table, state.delta, state.weight, state.extra, state.change,
             state.projections, partners.base, partners.lim, partners.shift, places,
             c_longlong(graph.n), c_longlong(state.first), c_longlong(state.delta.stride(1)),
             c_int(lo), c_int(rows), c_int(partners.size), c_int(graph.k), _rounds(state.f)],
        )  # fmt: skip

    def losses(self, state: State, colour: int, place: int, rows: int) -> Tensor:
        graph, partners, problems = state.graph, state.graph.colours[colour], len(state.mass)
        out = torch.empty(problems, rows, dtype=torch.float64, device=state.mass.device)
        self._module(_macros(state)).launch(
            "objective", rows, problems,
            [state.mass, state.table, state.delta, state.weight, out, partners.base,
             partners.lim, partners.shift, c_longlong(graph.n), c_longlong(state.first),
             c_longlong(state.delta.stride(1)), c_int(graph.bounds[colour]), c_int(place),
             c_int(rows), c_int(partners.size), c_int(graph.k)],
        )  # fmt: skip
        return out

    def assign(
        self, mass: Tensor, table: Tensor, delta: Tensor, partners: Partners,
        lo: int, rows: int, place: int, spread: int,
    ) -> None:  # fmt: skip
        self._module((f"F={mass.shape[1]}", *_half(delta))).launch(
            "assign", rows, 1,
            [mass, table, delta, partners.base, partners.lim, partners.shift,
             c_longlong(delta.stride(0)), c_int(lo), c_int(rows), c_longlong(place),
             c_int(spread), c_int(partners.size), c_int(partners.k), _rounds(mass.shape[1])],
        )  # fmt: skip

    def distances(
        self, mine: Tensor, others: Tensor, out: Tensor, partners: Partners,
        code: tuple[int, int], gamma: float, *, lo: int, first: int, rows: int,
        place: int, spread: int,
    ) -> None:  # fmt: skip
        how, placed = _placed(partners)
        self._module(("F=2", *_half(out), *how)).launch(
            "distances", rows, -(-partners.k // 8),
            [mine, others, out, partners.base, partners.lim, partners.shift,
             c_longlong(out.stride(0)), c_longlong(lo), c_longlong(first), c_int(rows),
             c_longlong(place), c_int(spread), c_int(partners.size), c_int(partners.k),
             c_int(mine.shape[1]), c_int(code[0]), c_int(code[1]), c_double(gamma), *placed],
        )  # fmt: skip

    def intervals(
        self, held: Posteriors, out: Tensor, partners: Partners,
        quantiles: tuple[int, float, int, float], *, own: int, lo: int, place: int, rows: int,
    ) -> None:  # fmt: skip
        low, low_part, high, high_part = quantiles
        self._module(("F=2", f"REPLICATES={held.B}")).launch(
            "intervals", rows, partners.k,
            [held.values, held.live, out, partners.base, partners.lim, partners.shift,
             c_longlong(out.shape[1]), c_int(lo), c_int(own), c_int(place),
             c_int(held.first), c_int(rows), c_int(partners.size), c_int(partners.k),
             c_int(held.c), c_int(low), c_int(high), c_double(low_part), c_double(high_part)],
        )  # fmt: skip


def _rounds(f: int) -> c_int:
    """Rounds of a row program at most: entering and leaving of every focal set, with room."""
    return c_int(32 + 4 * f)


def _placed(partners: Partners) -> tuple[tuple[str, ...], tuple[object, ...]]:
    """Macros and arguments of `distances` for partners that are not a shift away."""
    if partners.listed is not None:
        return ("LISTED",), (partners.listed,)
    if partners.near:
        return ("NEAR",), (partners.order, partners.inverse, c_int(partners.near))
    return (), ()


def _half(delta: Tensor) -> tuple[str, ...]:
    return ("HALF",) if delta.dtype == torch.float16 else ()


def _macros(state: State) -> tuple[str, ...]:
    weighted = ("WEIGHTED",) if state.weight is not None else ()
    views = len(state.projections)
    several = (f"VIEWS={views}",) if views > 1 else ()
    return (f"F={state.f}", *_half(state.delta), *weighted, *several)


class _Mixed(CudaKernels):
    """Distances by CUDA, row programs by torch: for many focal sets."""

    def __init__(self, module: Callable[[tuple[str, ...]], Launcher]):
        super().__init__(module)
        plain = TorchKernels()
        self.update = plain.update  # type: ignore[method-assign]
        self.losses = plain.losses  # type: ignore[method-assign]
        self.assign = plain.assign  # type: ignore[method-assign]


def kernels_on(device: torch.device, f: int) -> Kernels:
    """The fastest way to solve row programs with f focal sets on a device."""
    if device.type != "cuda":
        return TorchKernels()
    number = torch.cuda.current_device() if device.index is None else device.index

    def module(macros: tuple[str, ...]) -> Launcher:
        return compiled(macros, number)

    return CudaKernels(module) if f <= MAX_FOCAL_SETS else _Mixed(module)
