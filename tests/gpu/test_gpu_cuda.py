"""The kernels and the estimator on a GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import (
    assert_on_grid,
    blobs,
    copy_of,
    kkt_residuals,
    make_state,
    one_sweep,
    ready,
)

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.evclus.rows.arrays import Graph, Partners
from evdist.evclus.rows.attributes import sample
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.torch import TorchKernels
from evdist.kernels.distances import METRICS
from evdist.kernels.graph import PairGraph

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
    rows = kernels_on(GPU, len(sets))
    state = make_state(sets, n=5003, k=40, weighted=weighted, dtype=dtype, device=GPU)
    other = copy_of(state)
    rows.update(state, 0)
    TorchKernels().update(other, 0)
    torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=5e-5)
    for _ in range(3):
        change, expected = one_sweep(rows, state), one_sweep(TorchKernels(), other)
        assert float(change) == pytest.approx(float(expected), rel=1e-2)
    assert_on_grid(state)
    objective = float(rows.objective(state))
    assert objective == pytest.approx(float(TorchKernels().objective(state)), rel=1e-12)
    assert objective == pytest.approx(float(TorchKernels().objective(other)), rel=1e-2)


def test_the_objective_never_rises_in_float64():
    state = make_state(FocalSets.simple(5), n=20_001, k=60, device=GPU)
    rows = kernels_on(GPU, state.f)
    before = float(TorchKernels().objective(state))
    for _ in range(40):
        change = float(one_sweep(rows, state))
        after = float(TorchKernels().objective(state))
        assert after <= before
        assert after - before == pytest.approx(2 * change, rel=1e-3, abs=1e-6 * after)
        before = after
    assert kkt_residuals(state, len(state.graph.colours) - 1).max() < 1e-5


def test_chosen_places_links_and_several_problems():
    state = make_state(FocalSets.simple(3), n=2000, k=20, problems=3, device=GPU)
    state.extra = torch.randn(63, state.f, 32, device=GPU)
    other = copy_of(state)
    places = torch.arange(1, 400, 3, device=GPU, dtype=torch.int32)
    kernels_on(GPU, state.f).update(state, 2, places)
    TorchKernels().update(other, 2, places)
    assert float((state.mass - other.mass).abs().max()) < 1e-3
    torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=5e-5)


@pytest.mark.parametrize(
    ("name", "floors"),
    [*((name, False) for name in METRICS), ("euclidean", True), ("cosine", True)],
)
def test_distances_against_torch(name, floors):
    X = blobs(3001, 4, d=13)[0]
    data, code = ready(X.round() if name == "hamming" else X, name, GPU, floors=floors)
    graph = Graph.of(PairGraph.draw(3001, 31, np.random.default_rng(0)), GPU)
    for d0 in (None, 2.0):
        D, right = (sample(kernels, data, graph, code, d0, torch.float32)
                    for kernels in (kernels_on(GPU, 2), TorchKernels()))  # fmt: skip
        atol = 1e-4 if floors else 2e-6  # the root of hardly anything that is left
        torch.testing.assert_close(D, right, rtol=2e-6, atol=atol)


@pytest.mark.parametrize("floors", [False, True])
def test_both_sides_of_a_pair_agree_in_every_bit(floors):
    data, code = ready(blobs(640, 3)[0], device=GPU, floors=floors)
    D = torch.empty(640, 640, device=GPU)
    kernels_on(GPU, 2).distances(
        data, data, D, Partners.landmarks(np.arange(640), 640, GPU), code, 0.3,
        lo=0, first=0, rows=640, place=0, spread=0,
    )  # fmt: skip
    assert torch.equal(D, D.T)


@pytest.mark.parametrize("d0", ["auto", "q0.5"])
def test_a_fit_has_the_same_bits_every_time(d0):
    X, y = blobs(100_003, 8)
    first, second = (
        EVCLUS(8, metric="euclidean", d0=d0, random_state=1, device="cuda").fit(X) for _ in range(2)
    )
    np.testing.assert_array_equal(first.credal_partition_.mass, second.credal_partition_.mass)
    assert first.history_ == second.history_
    assert first.converged_
    assert all(b <= a for a, b in zip(first.history_, first.history_[1:], strict=False))
    if d0 == "auto":
        assert _purity(first.labels_, y) > 0.999
        assert _purity(first.predict(X), y) > 0.99


def _purity(labels: np.ndarray, y: np.ndarray) -> float:
    table = np.zeros((8, 8))
    np.add.at(table, (labels, y), 1)
    return table.max(axis=1).sum() / len(y)


def test_same_optimum_as_on_the_cpu():
    X, _ = blobs(2_000, 3)
    start = np.random.default_rng(0).dirichlet(np.ones(5), 2_000)
    given = {"n_dissimilarities": 30, "d0": 8.0, "init": start, "tol": 1e-8, "random_state": 0}
    there, here = (
        EVCLUS(3, metric="euclidean", device=device, **given).fit(X) for device in ("cuda", "cpu")
    )
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
    np.testing.assert_array_equal(there.labels_, here.labels_)
