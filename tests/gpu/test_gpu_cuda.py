"""The kernels on a GPU. Needs NumPy, torch and pytest alone, so that a bare machine can run it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import assert_on_grid, blobs, copy_of, kkt_residuals, make_state, one_sweep

from evdist.belief import FocalSets
from evdist.evclus.gpu.arrays import Graph, Partners
from evdist.evclus.gpu.cuda_rows import rows_on
from evdist.evclus.gpu.data import CODES, DeviceMetric, sample, tiles_of
from evdist.evclus.gpu.fit import fit_on_device, labels_of, predict_on_device
from evdist.evclus.gpu.torch_rows import TorchRows
from evdist.kernels.circulant import Circulant

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU = torch.device("cuda")
SETS = {
    "simple, c=2": FocalSets.simple(2),
    "simple, c=10": FocalSets.simple(10),
    "full, c=4": FocalSets.full(4),
    "pairs, c=7": FocalSets.pairs(7),  # in a thread's own memory
    "pairs, c=11": FocalSets.pairs(11),
    "pairs, c=16": FocalSets.pairs(16),  # by torch
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SETS)
def test_sweeps_against_torch(name, weighted, dtype):
    sets = SETS[name]
    rows = rows_on(GPU, len(sets))
    state = make_state(sets, n=5003, k=40, weighted=weighted, dtype=dtype, device=GPU)
    other = copy_of(state)
    rows.update(state, 0)
    TorchRows().update(other, 0)
    torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=5e-5)
    for _ in range(3):
        change, expected = one_sweep(rows, state), one_sweep(TorchRows(), other)
        assert float(change) == pytest.approx(float(expected), rel=1e-2)
    assert_on_grid(state)
    objective = float(rows.objective(state))
    assert objective == pytest.approx(float(TorchRows().objective(state)), rel=1e-12)
    assert objective == pytest.approx(float(TorchRows().objective(other)), rel=1e-2)


def test_the_objective_never_rises_in_float64():
    state = make_state(FocalSets.simple(5), n=20_001, k=60, device=GPU)
    rows = rows_on(GPU, state.f)
    before = float(TorchRows().objective(state))
    for _ in range(40):
        change = float(one_sweep(rows, state))
        after = float(TorchRows().objective(state))
        assert after <= before
        assert after - before == pytest.approx(2 * change, rel=1e-3, abs=1e-6 * after)
        before = after
    assert kkt_residuals(state, len(state.graph.colours) - 1).max() < 1e-5


def test_chosen_places_links_and_several_problems():
    state = make_state(FocalSets.simple(3), n=2000, k=20, problems=3, device=GPU)
    state.extra = torch.randn(63, state.f, 32, device=GPU)
    other = copy_of(state)
    places = torch.arange(1, 400, 3, device=GPU, dtype=torch.int32)
    rows_on(GPU, state.f).update(state, 2, places)
    TorchRows().update(other, 2, places)
    assert float((state.mass - other.mass).abs().max()) < 1e-3
    torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize("name", CODES)
def test_distances_against_torch(name):
    X = torch.as_tensor(blobs(3001, 4, d=13)[0], device=GPU)
    metric = DeviceMetric.of(X.round() if name == "hamming" else X, name)
    data = tiles_of(X, metric, torch.randperm(3001, device=GPU))
    graph = Graph.of(Circulant.draw(3001, 31, np.random.default_rng(0)), GPU)
    for d0 in (None, 2.0):
        D, right = (sample(rows, data, graph, metric.code, d0, torch.float32)
                    for rows in (rows_on(GPU, 2), TorchRows()))  # fmt: skip
        torch.testing.assert_close(D, right, rtol=2e-6, atol=2e-6)


def test_both_sides_of_a_pair_agree_in_every_bit():
    X = torch.as_tensor(blobs(640, 3)[0], device=GPU)
    metric = DeviceMetric.of(X, "euclidean")
    data = tiles_of(X, metric, torch.arange(640, device=GPU))
    D = torch.empty(640, 640, device=GPU)
    rows_on(GPU, 2).distances(
        data, data, D, Partners.landmarks(np.arange(640), 640, GPU), metric.code, 0.3,
        lo=0, first=0, rows=640, place=0, spread=0,
    )  # fmt: skip
    assert torch.equal(D, D.T)


@pytest.mark.parametrize("half", [False, True])
def test_a_fit_has_the_same_bits_every_time(half):
    X, y = blobs(100_003, 8)
    X = torch.as_tensor(X, device=GPU)
    first, second = (fit_on_device(X, 8, half=half, seed=1) for _ in range(2))
    assert torch.equal(first.mass, second.mass)
    assert first.history == second.history
    assert first.converged
    assert all(b <= a for a, b in zip(first.history, first.history[1:], strict=False))
    labels = labels_of(first.mass, first.focal_sets).cpu().numpy()
    assert _purity(labels, y) > 0.999
    assert _purity(labels_of(predict_on_device(first, X), first.focal_sets).cpu().numpy(), y) > 0.99


def _purity(labels: np.ndarray, y: np.ndarray) -> float:
    table = np.zeros((8, 8))
    np.add.at(table, (labels, y), 1)
    return table.max(axis=1).sum() / len(y)


def test_data_in_the_memory_of_the_host_give_the_same_bits():
    X, _ = blobs(30_000, 4)
    order = np.random.default_rng(0).permutation(30_000)
    here = fit_on_device(X.astype(np.float64), 4, order=order, d0=8.0)
    there = fit_on_device(torch.as_tensor(X.astype(np.float64), device=GPU), 4, order=order, d0=8.0)
    assert (here.mass - there.mass).abs().max() < 1e-3
    assert here.objective == pytest.approx(there.objective, rel=1e-6)


def test_same_optimum_as_torch_on_the_cpu():
    X, _ = blobs(2_000, 3)
    start = np.random.default_rng(0).dirichlet(np.ones(5), 2_000).astype(np.float32)
    order = np.random.default_rng(1).permutation(2_000)
    fits = [
        fit_on_device(X, 3, n_dissimilarities=30, d0=8.0, init=torch.as_tensor(start), tol=1e-8,
                      order=order, device=device)
        for device in ("cuda", "cpu")
    ]  # fmt: skip
    assert fits[0].objective == pytest.approx(fits[1].objective, rel=1e-5)
    labels = [labels_of(f.mass, f.focal_sets).cpu() for f in fits]
    assert torch.equal(*labels)
