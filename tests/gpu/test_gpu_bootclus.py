"""Bootclus with device=...: intervals and sweeps on a torch device (here the CPU)."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from bootclus.bootclus_cases import three_gaussians

import evdist.bootclus.device as device_solver
import evdist.bootclus.device_intervals as device_intervals
import evdist.bootclus.estimator as estimator
import evdist.evclus.rows.device_state as device_state
from evdist import Bootclus
from evdist.bootclus.intervals import IntervalPairs, draw_band, some_intervals
from evdist.bootclus.replicates import GaussianReplicates, bootstrap_gaussian
from evdist.mixture import GaussianMixture

CPU = torch.device("cpu")


@pytest.fixture
def on_torch(monkeypatch):
    """device="cuda" is torch on the CPU."""
    monkeypatch.setattr(estimator, "find_device", lambda name, _: None if name == "cpu" else CPU)


@pytest.fixture
def on_cuda_source(on_torch, cuda_source, monkeypatch):
    """device="cuda" is the CUDA source, thread after thread on the CPU."""
    monkeypatch.setattr(device_state, "kernels_on", lambda device, f: cuda_source)
    monkeypatch.setattr(device_intervals, "kernels_on", lambda device, f: cuda_source)


@pytest.fixture(scope="module")
def data():
    return three_gaussians(303)[0]


def models(X, **parameters):
    """The same model on the CPU and on the device."""
    parameters = {
        "n_bootstrap": 20, "covariance_models": "EEE", "n_dissimilarities": 20, "tol": 1e-8,
        "random_state": 0, **parameters,
    }  # fmt: skip
    return [Bootclus(3, device=d, **parameters).fit(X) for d in ("cpu", "cuda")]


def assert_same(here, there):
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-6)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    np.testing.assert_array_equal(here.intervals_.i, there.intervals_.i)
    np.testing.assert_array_equal(here.intervals_.j, there.intervals_.j)
    np.testing.assert_allclose(here.intervals_.lower, there.intervals_.lower, atol=1e-6)
    np.testing.assert_allclose(here.intervals_.upper, there.intervals_.upper, atol=1e-6)
    assert (np.diff(there.history_) <= 0).all()


class TestAgainstTheCPU:
    @pytest.mark.parametrize("sets", ["pairs", "simple", "select"])
    def test_by_torch(self, on_torch, data, sets):
        here, there = models(data, focal_sets=sets)
        assert here.credal_partition_.focal_sets == there.credal_partition_.focal_sets
        assert_same(here, there)
        np.testing.assert_allclose(
            here.predict_mass(data[:5]), there.predict_mass(data[:5]), atol=1e-5
        )

    def test_by_the_cuda_source(self, on_cuda_source, data):
        assert_same(*models(data))

    def test_the_mean_square_of_many_objects_is_tiny_and_still_the_same(self, on_cuda_source):
        """Narrow intervals leave residuals that float32 could not tell from nothing."""
        here, there = models(three_gaussians(9000)[0], n_dissimilarities=10, max_iter=40)
        assert here.objective_ < 1e-5
        assert_same(here, there)

    def test_another_mixture(self, on_torch, data):
        mixture = GaussianMixture(3, covariance_models="EEE", random_state=0)
        assert_same(*models(data, mixture=mixture, n_bootstrap=5))

    def test_goes_on_from_a_checkpoint(self, on_torch, data, tmp_path):
        parameters = {"n_bootstrap": 5, "covariance_models": "EEE", "n_dissimilarities": 10,
                      "device": "cuda", "random_state": 0, "tol": 1e-7}  # fmt: skip
        whole = Bootclus(3, **parameters).fit(data)
        with pytest.warns(UserWarning, match="did not converge"):
            Bootclus(3, checkpoint=tmp_path, checkpoint_every=4, max_iter=8, **parameters).fit(data)
        rest = Bootclus(3, checkpoint=tmp_path, checkpoint_every=4, **parameters).fit(data)
        np.testing.assert_array_equal(rest.credal_partition_.mass, whole.credal_partition_.mass)


@pytest.fixture(scope="module")
def made():
    """Intervals in a band; the colours are not of equal size."""
    X, _ = three_gaussians(8301)
    start = GaussianMixture(3, covariance_models="VVV", random_state=0).fit(X).parameters_
    replicates = bootstrap_gaussian(X, start, 7, 0).replicates
    layout = draw_band(len(X), 5, 0)
    pairs = IntervalPairs(X[layout.order], layout.graph, replicates, 0.8)
    assert pairs.banded
    return pairs


class TestIntervals:
    @pytest.mark.parametrize("room", [1, 10**6, 10**9])
    def test_windows_do_not_matter(self, made, monkeypatch, room):
        make = partial(device_intervals.interval_targets, room=room)
        monkeypatch.setattr(device_solver, "interval_targets", make)
        found = device_solver.intervals_on(CPU, made)
        expected = made.in_memory()
        assert found.entries == expected.entries
        for lo, hi in ((0, 60), (2050, 2110), (8200, 8301)):
            mine, other = found.block(lo, hi), expected.block(lo, hi)
            np.testing.assert_array_equal(mine.degree, other.degree)
            used = np.arange(10) < mine.degree[:, None]
            for name, atol in (("partner", 0), ("delta", 1e-6)):
                a, b = (getattr(block, name).reshape(-1, 10)[used] for block in (mine, other))
                np.testing.assert_allclose(a, b, rtol=0, atol=atol)

    def test_a_worker_makes_those_of_its_pieces(self, made):
        bounds = made.graph.bounds.tolist()
        pieces = [(bounds[1] + 3, bounds[1] + 40), (bounds[2], bounds[2] + 7)]
        whole = device_solver.intervals_on(CPU, made).targets
        some = device_solver.intervals_on(CPU, made, pieces).targets
        for lo, hi in pieces:
            np.testing.assert_array_equal(some[:, lo:hi], whole[:, lo:hi])

    def test_what_people_see(self, made):
        order = np.arange(made.n, dtype=np.uint32)
        here = some_intervals(made, order)
        there = some_intervals(device_solver.intervals_on(CPU, made), order)
        np.testing.assert_array_equal(here.j, there.j)
        np.testing.assert_allclose(here.upper, there.upper, atol=1e-6)

    def test_gaussian_posteriors_are_those_of_the_cpu(self, made):
        replicates = made.replicates
        assert isinstance(replicates, GaussianReplicates)
        expected = np.empty((50, 3, 7), np.float32)
        replicates.posteriors(made.X[:50], expected)
        factors = [torch.as_tensor(a) for a in replicates.factors]
        found = device_intervals.gaussian_posteriors(torch.as_tensor(made.X[:50].copy()), *factors)
        np.testing.assert_allclose(found, expected, atol=1e-7)


class TestBeforeItStarts:
    @pytest.mark.parametrize("device", ["gpu", "cuda:x", 0, None])
    def test_no_device(self, data, device):
        with pytest.raises(ValueError, match='device must be "cpu", "cuda"'):
            Bootclus(2, device=device).fit(data)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_without_a_gpu(self, data):
        with pytest.raises(ValueError, match="needs a GPU that torch can use"):
            Bootclus(2, device="cuda").fit(data)
        few = {"n_bootstrap": 5, "covariance_models": "EEE", "random_state": 0}
        auto, cpu = (Bootclus(3, device=d, **few).fit(data) for d in ("auto", "cpu"))
        np.testing.assert_array_equal(auto.credal_partition_.mass, cpu.credal_partition_.mass)

    def test_memory(self, monkeypatch):
        gpu = torch.device("cuda")
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (4 * 10**9, 8 * 10**9))
        monkeypatch.setattr(
            torch.cuda, "get_device_properties",
            lambda device: type("GPU", (), {"multi_processor_count": 132}),
        )  # fmt: skip
        device_solver.check_memory_on(gpu, (10**6, 4), 100, 100, 3)
        with pytest.raises(
            MemoryError, match=r"needs about 1\d\.\d GB \(.* 4\.0 GB are free on the GPU"
        ):
            device_solver.check_memory_on(gpu, (10**7, 4), 100, 100, 3)
