"""Intervals and pairs with two residuals on a GPU; like test_gpu_cuda, for a bare machine."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import assert_on_grid, copy_of, kkt_residuals, make_state, one_sweep

from evdist.belief import FocalSets
from evdist.bootclus.device_intervals import gaussian_posteriors, interval_targets
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.torch import TorchKernels
from evdist.kernels.graph import PairGraph

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU, CPU = torch.device("cuda"), torch.device("cpu")
SETS = {
    "pairs, c=3": FocalSets.pairs(3, omega=False),
    "pairs, c=5": FocalSets.pairs(5, omega=False),
    "simple, c=10": FocalSets.simple(10),
    "pairs, c=10": FocalSets.pairs(10, omega=False),
    "pairs, c=11": FocalSets.pairs(11, omega=False),  # by torch
}


@pytest.mark.parametrize("name", SETS)
def test_sweeps_against_torch(name):
    sets = SETS[name]
    state = make_state(sets, n=3003, k=40, intervals=True, device=GPU)
    rows, other = kernels_on(GPU, state.f), copy_of(state)
    rows.update(state, 0)
    TorchKernels().update(other, 0)
    torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=5e-5)
    for _ in range(3):
        change, expected = one_sweep(rows, state), one_sweep(TorchKernels(), other)
        assert float(change) == pytest.approx(float(expected), rel=1e-2)
    assert_on_grid(state)
    objective = float(rows.objective(state))
    assert objective == pytest.approx(float(TorchKernels().objective(state)), rel=1e-12)


def test_the_objective_never_rises_in_float64_and_ends_where_torch_ends():
    state = make_state(SETS["pairs, c=3"], n=2001, k=40, intervals=True, device=GPU)
    rows, other, again = kernels_on(GPU, state.f), copy_of(state), copy_of(state)
    before = float(TorchKernels().objective(state))
    for _ in range(40):
        change = float(one_sweep(rows, state))
        after = float(TorchKernels().objective(state))
        assert after <= before
        assert after - before == pytest.approx(2 * change, rel=1e-3, abs=1e-7 * after)
        before = after
        one_sweep(TorchKernels(), other)
        one_sweep(rows, again)
    assert torch.equal(state.mass, again.mass)
    assert after == pytest.approx(float(TorchKernels().objective(other)), rel=1e-5)
    assert kkt_residuals(state, len(state.graph.colours) - 1).max() < 1e-6


@pytest.mark.parametrize(("c", "B"), [(3, 100), (7, 500), (70, 20), (2, 2100)])
def test_intervals_against_torch_on_the_cpu(c, B):
    n = 2003
    rng = np.random.default_rng(1)
    graph = PairGraph.band(n, 12, 30, rng)
    post = rng.dirichlet(np.full(c, 0.1), (n, B)).transpose(0, 2, 1).astype("f")
    low, high = 0.05 * (B - 1), 0.95 * (B - 1)
    places = int(low), low - int(low), int(high), high - int(high)
    found = []
    for device, room in ((CPU, 1 << 30), (GPU, 1 << 30), (GPU, 1)):
        held = torch.as_tensor(post.copy(), device=device)
        found.append(
            interval_targets(
                graph, lambda at, held=held: held[at], (c, B), places, device=device, room=room
            ).cpu()
        )
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=3e-7)
    assert torch.equal(found[1], found[2])


def test_gaussian_posteriors_against_the_cpu():
    rng = np.random.default_rng(0)
    B, c, d = 50, 4, 5
    U = np.tril(rng.normal(size=(B, c, d, d))) + 2 * np.eye(d)
    arrays = (rng.normal(size=(3000, d)), U, rng.normal(size=(B, c, d)), rng.normal(size=(B, c)))
    here, there = (
        gaussian_posteriors(*(torch.as_tensor(a, device=device) for a in arrays)).cpu()
        for device in (CPU, GPU)
    )
    torch.testing.assert_close(there, here, rtol=1e-5, atol=1e-7)
    assert float((here.sum(1) - 1).abs().max()) < 1e-6
