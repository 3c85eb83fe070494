"""The way of a fit from `EVCLUS.fit` to the kernel that updates rows: the same few modules."""

from __future__ import annotations

import inspect
from itertools import groupby

import pytest
from gpu.gpu_cases import blobs

import evdist.evclus.rows.device_state as device_state
import evdist.evclus.rows.numba as numba_rows
from evdist import EVCLUS
from evdist.evclus.rows.torch import TorchKernels

#: Modules entered on the way, at most, the kernel's own included.
MOST_HOPS = 6
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
    return EVCLUS(3, n_jobs=1, device=device, random_state=0, **options).fit(X)


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
