"""The CUDA source, run on the CPU."""

from __future__ import annotations

import pytest
from gpu.host_kernels import COMPILER, host_modules

from evdist.evclus.gpu.cuda_rows import CudaRows


@pytest.fixture(scope="session")
def cuda_source(tmp_path_factory) -> CudaRows:
    """The kernels of rows.cu, compiled for this CPU."""
    if COMPILER is None:
        pytest.skip("needs a C++ compiler to run the CUDA source on the CPU")
    return CudaRows(host_modules(tmp_path_factory.mktemp("rows")))
