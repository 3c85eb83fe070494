"""The CUDA source, run on the CPU; and EVCLUS on a torch device that every machine has."""

from __future__ import annotations

import pytest
import torch
from gpu.host_kernels import COMPILER, host_modules

from evdist.evclus import d0, sites, start
from evdist.evclus.rows.cuda import CudaKernels
from evdist.evclus.rows.lists import ListKernels


@pytest.fixture(scope="session")
def cuda_source(tmp_path_factory) -> CudaKernels:
    """The kernels of rows.cu, compiled for this CPU."""
    if COMPILER is None:
        pytest.skip("needs a C++ compiler to run the CUDA source on the CPU")
    return CudaKernels(host_modules(tmp_path_factory.mktemp("rows")))


@pytest.fixture(scope="session")
def list_source(tmp_path_factory) -> ListKernels:
    """The kernels of lists.cu, compiled for this CPU: a warp is one thread."""
    if COMPILER is None:
        pytest.skip("needs a C++ compiler to run the CUDA source on the CPU")
    modules = host_modules(tmp_path_factory.mktemp("lists"), "lists.cu")
    return ListKernels(modules, processors=1, shared=0, lanes=1)


@pytest.fixture
def on_torch(monkeypatch):
    """EVCLUS with device="cuda" runs in torch on the CPU, with few landmarks."""
    monkeypatch.setattr(
        sites,
        "find_device",
        lambda name, client=None: None if name == "cpu" else torch.device("cpu"),
    )
    monkeypatch.setattr(start, "MIN_LANDMARKS", 120)
    monkeypatch.setattr(start, "LANDMARKS_PER_CLUSTER", 10)
    monkeypatch.setattr(d0, "MIN_TRIAL", 60)
    monkeypatch.setattr(d0, "TRIAL_PER_CLUSTER", 10)
    monkeypatch.setattr(start, "STARTS", 4)
    monkeypatch.setattr(d0, "QUANTILES", (0.1, 0.3, 0.9))
    monkeypatch.setattr(d0, "QUANTILES_ALONG", (0.9,))
