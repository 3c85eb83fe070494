"""Pairs with two residuals, as in Bootclus, on a device: torch against numba, the CUDA source."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import CPU, assert_on_grid, copy_of, kkt_residuals, make_state, one_sweep

from evdist.belief import FocalSets
from evdist.bootclus.device_intervals import interval_targets
from evdist.bootclus.interval_kernel import interval_rows, mark_live, ranks
from evdist.evclus.rows.arrays import untile
from evdist.evclus.rows.torch import TorchKernels
from evdist.kernels.graph import draw_graph

SETS = {
    "pairs, c=3": FocalSets.pairs(3, omega=False),
    "pairs, c=5": FocalSets.pairs(5, omega=False),
    "pairs, c=6": FocalSets.pairs(6, omega=False),  # in a thread's own memory
    "simple, c=10": FocalSets.simple(10),
}


class TestTwoResiduals:
    def test_the_objective_is_the_papers(self):
        """J(M) over kept pairs of (Bel - P^l)^2 + (Pl - P^u)^2, eqs. (6) and (13)."""
        sets = SETS["pairs, c=3"]
        state = make_state(sets, n=70, k=10, intervals=True)
        M = untile(state.mass[0], 70).double().numpy()
        bel, pl = M @ sets.S[1:, 1:] @ M.T, 1 - M @ sets.C[1:, 1:] @ M.T
        total = 0.0
        for colour, partners in enumerate(state.graph.colours):
            lo, hi = state.graph.bounds[colour : colour + 2]
            at, there = partners.positions(torch.arange(hi - lo))
            for h in range(10):
                for i in np.flatnonzero(there[h]):
                    j = int(at[h, i])
                    lower, upper = state.delta[0, h, lo + i], 1 - state.delta[0, 10 + h, lo + i]
                    total += (bel[lo + i, j] - lower) ** 2 + (pl[lo + i, j] - upper) ** 2
        assert float(TorchKernels().objective(state)) == pytest.approx(float(total), rel=1e-6)

    @pytest.mark.parametrize("name", SETS)
    def test_sweeps_of_the_cuda_source_against_torch(self, cuda_source, name):
        state = make_state(SETS[name], intervals=True)
        other = copy_of(state)
        cuda_source.update(state, 0)
        TorchKernels().update(other, 0)
        torch.testing.assert_close(state.change, other.change, rtol=1e-4, atol=2e-5)
        for _ in range(3):
            change, expected = one_sweep(cuda_source, state), one_sweep(TorchKernels(), other)
            assert float(change) == pytest.approx(float(expected), rel=1e-2)
        assert_on_grid(state)
        assert_on_grid(other)
        objective = float(cuda_source.objective(state))
        assert objective == pytest.approx(float(TorchKernels().objective(state)), rel=1e-12)
        assert objective == pytest.approx(float(TorchKernels().objective(other)), rel=1e-2)

    @pytest.mark.parametrize("name", ["pairs, c=3", "pairs, c=6"])
    def test_never_rises_and_ends_optimal(self, cuda_source, name):
        state = make_state(SETS[name], n=150, k=30, intervals=True)
        before = float(TorchKernels().objective(state))
        for _ in range(60):
            change = float(one_sweep(cuda_source, state))
            after = float(TorchKernels().objective(state))
            assert after <= before
            assert after - before == pytest.approx(2 * change, rel=1e-3, abs=1e-7)
            before = after
        assert kkt_residuals(state, len(state.graph.colours) - 1).max() < 1e-6

    def test_several_problems_do_not_disturb_each_other(self, cuda_source):
        state = make_state(SETS["pairs, c=3"], n=70, k=10, problems=3, intervals=True)
        other = copy_of(state)
        one_sweep(cuda_source, state)
        one_sweep(TorchKernels(), other)
        assert float((state.mass - other.mass).abs().max()) < 1e-3
        assert not torch.equal(state.mass[0], state.mass[1])


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("c", [1, 3, 70])
class TestIntervals:
    """Percentiles of random posteriors; a small spread gives many zeros, ones and ties."""

    n, B = 61, 11

    def posteriors(self, c):
        rng = np.random.default_rng(0)
        return rng.dirichlet(np.full(c, 0.1), (self.n, self.B)).transpose(0, 2, 1).astype("f")

    def on_a_device(self, c, confidence):
        graph = draw_graph(self.n, 12, np.random.default_rng(1))
        post = torch.as_tensor(self.posteriors(c).copy())
        return graph, interval_targets(
            graph, lambda at: post[at], (c, self.B), ranks(self.B, confidence), device=CPU
        )

    def test_torch_against_numba(self, c, confidence):
        graph, found = self.on_a_device(c, confidence)
        post, live = np.ascontiguousarray(self.posteriors(c)), np.empty((self.n, c), bool)
        mark_live(post, live)
        partner, degree = graph.partners(0, self.n)
        expected = np.empty((self.n, 24), np.float32)
        interval_rows(
            post, live, np.arange(self.n), partner.astype(int), degree,
            *ranks(self.B, confidence), expected,
        )  # fmt: skip
        there = np.tile(graph.there(0, self.n), (1, 2))
        used = np.arange(24) < 2 * degree[:, None]
        np.testing.assert_allclose(found.numpy().T[there], expected[used], atol=3e-7)
        assert not found.numpy().T[~there].any()

    def test_the_cuda_source_against_torch(self, cuda_source, monkeypatch, c, confidence):
        _, expected = self.on_a_device(c, confidence)
        monkeypatch.setattr(
            "evdist.bootclus.device_intervals.kernels_on", lambda device, f: cuda_source
        )
        _, found = self.on_a_device(c, confidence)
        torch.testing.assert_close(found, expected, rtol=0, atol=3e-7)
