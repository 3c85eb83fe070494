"""Row programs on a device: in torch against numba, and the CUDA source, run on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import (
    CPU,
    assert_on_grid,
    blobs,
    copy_of,
    kkt_residuals,
    make_state,
    one_sweep,
    ready,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.evclus.problem import conflict_projection
from evdist.evclus.rows.arrays import Graph, Partners, on_grid, project, tiles, untile
from evdist.evclus.rows.attributes import sample
from evdist.evclus.rows.device_pairs import device_block
from evdist.evclus.rows.kept import Resident
from evdist.evclus.rows.sweep import block_objective, no_links, update_rows
from evdist.evclus.rows.torch import TorchKernels, minimise_on_simplex
from evdist.kernels.distances import METRICS
from evdist.kernels.graph import PairGraph, draw_graph
from evdist.kernels.grid import project_rows
from evdist.kernels.simplex import solve_simplex
from evdist.kernels.vector import aligned_zeros

SETS = {
    "simple, c=2": FocalSets.simple(2),
    "simple, c=10": FocalSets.simple(10),
    "full, c=4": FocalSets.full(4),
    "pairs, c=5": FocalSets.pairs(5),
}


class TestArrays:
    @given(st.integers(1, 100), st.integers(1, 5))
    def test_tiles_and_back(self, n, w):
        rows = torch.arange(2 * n * w, dtype=torch.float32).reshape(2, n, w)
        laid_out = tiles(rows)
        assert laid_out.shape == (2, n // 32 + 1, w, 32)
        assert torch.equal(untile(laid_out, n), rows)

    @given(st.integers(2, 12), st.integers(0, 100))
    def test_masses_on_the_grid_have_sum_one(self, f, seed):
        m = torch.as_tensor(np.random.default_rng(seed).dirichlet(np.full(f, 0.2), 50))
        q = on_grid(m)
        assert torch.equal(on_grid(q), q)
        assert bool((q.double().sum(1) == 1).all())
        assert float((q - m).abs().max()) <= f * 2.0**-24

    @pytest.mark.parametrize(("n", "k"), [(203, 20), (40, 39), (101, 7), (64, 10)])
    def test_the_graph_is_that_of_the_cpu(self, n, k):
        drawn = draw_graph(n, k, np.random.default_rng(1))
        graph = Graph.of(drawn, CPU)
        partner, degree = drawn.partners(0, n)
        assert graph.entries == degree.sum()
        for colour, partners in enumerate(graph.colours):
            lo, hi = graph.bounds[colour : colour + 2]
            at, there = partners.positions(torch.arange(hi - lo))
            for t in range(hi - lo):
                mine = at[:, t][there[:, t]].tolist()
                assert mine == partner[lo + t, : degree[lo + t]].tolist()


@settings(max_examples=30)
@given(st.integers(2, 20), st.integers(1, 25), st.integers(0, 10_000))
def test_simplex_programs_side_by_side(f, k, seed):
    rng = np.random.default_rng(seed)
    A = rng.random((7, k, f)) * (rng.random((7, k, f)) < 0.7)
    S = A.transpose(0, 2, 1) @ A
    u = (A.transpose(0, 2, 1) @ rng.random((7, k, 1)))[:, :, 0]
    m0 = rng.dirichlet(np.ones(f), 7)
    S_, u_, m_ = (torch.as_tensor(x) for x in (S, u, m0))
    found = minimise_on_simplex(S_, (S_ @ m_[:, :, None])[:, :, 0] - u_, m_).numpy()
    for i in range(7):
        best = solve_simplex(S[i], u[i], m0[i])
        value = 0.5 * found[i] @ S[i] @ found[i] - u[i] @ found[i]
        assert found[i].min() >= 0
        assert value <= 0.5 * best @ S[i] @ best - u[i] @ best + 1e-9


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", SETS)
def test_torch_against_numba(name, weighted):
    sets, n, k = SETS[name], 203, 20
    state = make_state(sets, n, k, weighted=weighted)
    # make_state draws its graph first of all from the same seed.
    graph = draw_graph(n, k, np.random.default_rng(0))
    kept = Resident.whole(state.delta[0], state.graph.bounds)
    block = device_block(graph, kept, 0, n)
    M = untile(state.mass[0], n).numpy().copy()
    P = conflict_projection(sets)
    table = aligned_zeros(n, P.shape[2])
    project_rows(M, P, table, 0, n)
    weight = np.zeros(0, np.float32) if state.weight is None else state.weight.numpy()
    links, change = no_links(len(sets)), np.zeros(n)

    def here(rows) -> float:
        update_rows(M, table, P, block, weight, links, rows, change)
        return float(change[rows].sum())

    # Row by row the same gain; the minimisers need not be unique, and paths part later.
    first = np.arange(*state.graph.bounds[:2])
    here(first)
    TorchKernels().update(state, 0)
    np.testing.assert_allclose(state.change[0, : len(first)], change[first], rtol=1e-4, atol=1e-6)
    for _ in range(3):
        found = float(one_sweep(TorchKernels(), state))
        assert found == pytest.approx(here(np.arange(n)), rel=1e-2)
    objective = block_objective(M, table, block, weight, links, np.array([0, n]))[0, 0]
    assert float(TorchKernels().objective(state)) == pytest.approx(objective, rel=1e-2)


class TestTorchKernels:
    @pytest.mark.parametrize("sets", [*SETS.values(), FocalSets.pairs(7)], ids=str)
    def test_the_objective_falls_by_what_the_rows_say(self, sets):
        state = make_state(sets, n=101, k=12, weighted=True)
        before = TorchKernels().objective(state) / 2
        for _ in range(4):
            change = one_sweep(TorchKernels(), state)
            after = TorchKernels().objective(state) / 2
            assert float(change) <= 0
            assert float(after - before) == pytest.approx(float(change), rel=1e-5, abs=1e-9)
            before = after
        assert_on_grid(state)

    def test_every_row_of_the_last_colour_is_optimal(self):
        state = make_state(FocalSets.simple(4))
        for _ in range(3):
            one_sweep(TorchKernels(), state)
        assert kkt_residuals(state, len(state.graph.colours) - 1).max() < 1e-6

    def test_problems_side_by_side_do_not_disturb_each_other(self):
        state = make_state(FocalSets.simple(3), n=70, k=10, problems=3)
        alone = make_state(FocalSets.simple(3), n=70, k=10)
        alone.mass[0], alone.table[0] = state.mass[1], state.table[1]
        one_sweep(TorchKernels(), state)
        one_sweep(TorchKernels(), alone)
        assert torch.equal(state.mass[1], alone.mass[0])

    def test_places_choose_rows(self):
        state = make_state(FocalSets.simple(3), n=70, k=10)
        before = untile(state.mass[0], 70).clone()
        TorchKernels().update(state, 1, torch.tensor([0, 3], dtype=torch.int32))
        moved = (untile(state.mass[0], 70) != before).any(1).nonzero().flatten().tolist()
        lo = state.graph.bounds[1]
        assert moved == [lo, lo + 3]


class TestCudaSource:
    """The code that runs on a GPU, thread after thread on the CPU, against torch in float64."""

    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("name", SETS)
    def test_sweeps(self, cuda_source, name, weighted):
        state = make_state(SETS[name], weighted=weighted)
        other = copy_of(state)
        cuda_source.update(state, 0)
        TorchKernels().update(other, 0)
        torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=2e-5)
        for _ in range(3):
            change, expected = one_sweep(cuda_source, state), one_sweep(TorchKernels(), other)
            assert float(change) == pytest.approx(float(expected), rel=1e-2)
        assert_on_grid(state)
        objective = float(cuda_source.objective(state))
        assert objective == pytest.approx(float(TorchKernels().objective(state)), rel=1e-12)
        assert objective == pytest.approx(float(TorchKernels().objective(other)), rel=1e-2)

    def test_never_rises_in_float64(self, cuda_source):
        state = make_state(FocalSets.simple(4), n=150, k=30)
        before = float(TorchKernels().objective(state))
        for _ in range(60):
            change = float(one_sweep(cuda_source, state))
            after = float(TorchKernels().objective(state))
            assert after <= before
            assert after - before == pytest.approx(2 * change, rel=1e-3, abs=1e-7)
            before = after
        # Near the end rows stand still: what float32 cannot tell from nothing is left alone.
        assert float(state.change.abs().sum()) < 1e-6 * after

    def test_rows_end_optimal(self, cuda_source):
        state = make_state(FocalSets.simple(6))
        for _ in range(60):
            one_sweep(cuda_source, state)
        assert kkt_residuals(state, len(state.graph.colours) - 1).max() < 1e-5

    def test_links_enter_as_a_gradient(self, cuda_source):
        sets = FocalSets.simple(3)
        state = make_state(sets, n=70, k=10)
        rng = np.random.default_rng(3)
        state.extra = tiles(torch.as_tensor(rng.normal(0, 2, (70, len(sets))).astype(np.float32)))
        other = copy_of(state)
        for _ in range(2):
            change, expected = one_sweep(cuda_source, state), one_sweep(TorchKernels(), other)
            assert float(change) == pytest.approx(float(expected), rel=2e-4)
        assert float((state.mass - other.mass).abs().max()) < 1e-3

    def test_chosen_places_and_several_problems(self, cuda_source):
        state = make_state(FocalSets.simple(3), n=70, k=10, problems=2)
        other = copy_of(state)
        places = torch.tensor([1, 2, 5], dtype=torch.int32)
        cuda_source.update(state, 2, places)
        TorchKernels().update(other, 2, places)
        assert float((state.mass - other.mass).abs().max()) < 1e-4
        assert not torch.equal(state.mass[0], state.mass[1])

    @pytest.mark.parametrize("spread", [0, 1])
    def test_placing(self, cuda_source, spread):
        sets = FocalSets.simple(4)
        X, _ = blobs(300, 4)
        data, code = ready(X)
        rng = np.random.default_rng(0)
        known = on_grid(torch.as_tensor(rng.dirichlet(np.full(len(sets), 0.1), 40)))
        table = project(tiles(known), torch.tensor(sets.C.tolist()))
        partners = Partners.landmarks(np.sort(rng.choice(40, 15, replace=False)), 40, CPU)
        found = []
        for rows in (cuda_source, TorchKernels()):
            delta = torch.empty(15, 260)
            rows.distances(data, data, delta, partners, code, 0.05,
                           lo=40, first=0, rows=260, place=7, spread=spread)  # fmt: skip
            mass = torch.zeros(10, len(sets), 32)
            rows.assign(mass, table, delta, partners, 40, 260, 7, spread)
            found.append((delta, untile(mass, 300)))
        assert float((found[0][0] - found[1][0]).abs().max()) < 1e-6
        assert not found[0][1][:40].any()
        assert float((found[0][1] - found[1][1]).abs().max()) < 1e-3
        assert bool((found[0][1][40:].double().sum(1) == 1).all())


class TestDistances:
    @pytest.mark.parametrize("name", METRICS)
    def test_each_metric_by_torch_and_by_the_cuda_source(self, cuda_source, name):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 4, (66, 5)) + (rng.random((66, 5)) if name != "hamming" else 0.0)
        scale = {"VI": np.linalg.inv(np.cov(X.T))} if name == "mahalanobis" else {}
        expected = cdist(X, X, name, **scale)
        data, code = ready(X, name)
        graph = Graph.of(PairGraph.draw(66, 11, rng), CPU)
        for rows in (cuda_source, TorchKernels()):
            D = sample(rows, data, graph, code, None, torch.float32)
            for colour, partners in enumerate(graph.colours):
                lo, hi = graph.bounds[colour : colour + 2]
                at, there = partners.positions(torch.arange(hi - lo))
                right = np.where(there, expected[at, np.arange(lo, hi)], 0.0)
                np.testing.assert_allclose(D[:, lo:hi], right, atol=2e-6, rtol=2e-6)

    def test_both_sides_of_a_pair_agree_in_every_bit(self, cuda_source):
        data, code = ready(blobs(64, 3)[0])
        partners = Partners.landmarks(np.arange(64), 64, CPU)
        D = torch.empty(64, 64)
        cuda_source.distances(
            data, data, D, partners, code, 0.3, lo=0, first=0, rows=64, place=0, spread=0
        )
        assert torch.equal(D, D.T)

    @pytest.mark.parametrize("name", ["euclidean", "cosine"])
    def test_noise_floors_are_taken_off_as_on_the_cpu(self, cuda_source, name):
        X = np.random.default_rng(0).normal(size=(66, 20))
        source = AttributeSource.of(X, name).less_noise(np.arange(0, 66, 3))
        everyone = np.arange(66, dtype=np.uint32)
        expected = source.distances(everyone, np.tile(everyone, (66, 1)))
        data, code = ready(X, name, floors=True)
        for rows in (cuda_source, TorchKernels()):
            D = torch.empty(66, 66)
            rows.distances(
                data, data, D, Partners.landmarks(np.arange(66), 66, CPU), code, 0.0,
                lo=0, first=0, rows=66, place=0, spread=0,
            )  # fmt: skip
            # Where hardly anything is left, the root is that of a difference.
            np.testing.assert_allclose(D, expected, atol=1e-4, rtol=1e-5)
            assert torch.equal(D, D.T)
