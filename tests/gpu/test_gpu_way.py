"""The way of a fit from `EVCLUS.fit` to the kernel that updates rows: the same few modules."""

from __future__ import annotations

import inspect
import sys
from itertools import groupby
from typing import Any

import numpy as np
import pytest
from gpu.gpu_cases import blobs

import evdist.evclus.rows.device_state as device_state
import evdist.evclus.rows.numba as numba_rows
from evdist import EVCLUS
from evdist.evclus.rows.torch import TorchKernels

#: Modules entered on the way, at most, the kernel's own included.
MOST_HOPS = 6
#: Modules that X enters again after it has left them, at most.
MOST_RETURNS = 4
SHARED = ["evclus.estimator", "evclus.solver", "engine.loop", "evclus.irqp"]


def modules_below_fit() -> list[str]:
    """Modules of the present call stack from `EVCLUS.fit` on, neighbours that are equal once."""
    names = [frame.frame.f_globals.get("__name__", "") for frame in reversed(inspect.stack(0))]
    ours = [name.removeprefix("evdist.") for name in names if name.startswith("evdist.evclus")
            or name.startswith("evdist.engine")]  # fmt: skip
    return [name for name, _ in groupby(ours)]


@pytest.fixture
def ways(monkeypatch) -> list[list[str]]:
    """The modules on the way to each update of rows; a start on landmarks has its own."""
    found: list[list[str]] = []

    def note(kernel):
        def noted(*args):
            way = modules_below_fit()
            if way[:2] == SHARED[:2] and "evclus.start" not in way and way not in found:
                found.append(way)
            return kernel(*args)

        return noted

    monkeypatch.setattr(numba_rows, "update_rows", note(numba_rows.update_rows))
    monkeypatch.setattr(TorchKernels, "update", note(TorchKernels.update))
    return found


def fitted(device: str) -> EVCLUS:
    X, _ = blobs(200, 3)
    options = {"n_dissimilarities": 12, "d0": "q0.9", "init": "random", "tol": 0.5}
    return EVCLUS(3, metric="euclidean", n_jobs=1, device=device, random_state=0, **options).fit(X)


def test_threads(ways):
    fitted("cpu")
    assert ways == [[*SHARED, "evclus.rows.numba"]]
    assert len(ways[0]) <= MOST_HOPS  # the kernel, evclus.rows.sweep, is compiled: one hop more


def test_torch(ways, on_torch):
    fitted("cuda")
    assert ways == [[*SHARED, "evclus.rows.device_state"]]  # then evclus.rows.torch
    assert len(ways[0]) <= MOST_HOPS


def test_cuda(ways, on_torch, cuda_source, monkeypatch):
    module = cuda_source._module

    class Noted:
        def __init__(self, macros):
            self._module = module(macros)

        def launch(self, name, *args):
            way = modules_below_fit()
            if name == "update" and "evclus.start" not in way and way not in ways:
                ways.append(way)
            self._module.launch(name, *args)

    monkeypatch.setattr(device_state, "kernels_on", lambda device, f: type(cuda_source)(Noted))
    fitted("cuda")
    assert ways == [[*SHARED, "evclus.rows.device_state", "evclus.rows.cuda"]]  # then rows.cu
    assert len(ways[0]) <= MOST_HOPS


def modules_entered_by(X: np.ndarray, fit: Any) -> list[str]:
    """Modules of evdist that are called, by another module, with the memory of X."""
    entered: list[str] = []

    def carries(value: Any) -> bool:
        return isinstance(value, np.ndarray) and np.shares_memory(value, X)

    def note(frame: Any, event: str, _: Any) -> None:
        name = frame.f_globals.get("__name__", "")
        caller = frame.f_back and frame.f_back.f_globals.get("__name__", "")
        if event != "call" or not name.startswith("evdist.") or caller == name:
            return
        given = [
            frame.f_locals.get(v) for v in frame.f_code.co_varnames[: frame.f_code.co_argcount]
        ]
        held = [v for one in given if hasattr(one, "__dict__") for v in vars(one).values()]
        if any(map(carries, given + held)):
            entered.append(name.removeprefix("evdist."))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(before)
    return [name for name, _ in groupby(entered)]


@pytest.mark.parametrize("order", ["C", "F"])
def test_x_returns_to_few_modules(order):
    X = np.asarray(blobs(200, 3)[0], order=order)
    model = EVCLUS(3, metric="euclidean", n_jobs=1, n_dissimilarities=12, d0="q0.9", random_state=0)
    model.fit(X)  # what is imported on first use is not on the way
    way = modules_entered_by(X, lambda: model.fit(X))
    assert way[0] == "evclus.estimator"
    assert "data.sources" in way, "there X becomes dissimilarities on demand"
    assert len(way) - len(set(way)) <= MOST_RETURNS, way
