"""A whole fit on a device, here with torch on the CPU: the same code runs on a GPU."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from gpu.gpu_cases import blobs
from sklearn.metrics import adjusted_rand_score

from evdist.belief import FocalSets
from evdist.evclus.gpu import fit as device_fit
from evdist.evclus.gpu import start
from evdist.evclus.gpu.fit import fit_on_device, labels_of, predict_on_device


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few landmarks: torch on a CPU is the slow way."""
    monkeypatch.setattr(device_fit, "MIN_LANDMARKS", 120)
    monkeypatch.setattr(device_fit, "LANDMARKS_PER_CLUSTER", 10)
    monkeypatch.setattr(device_fit, "MIN_TRIAL", 60)
    monkeypatch.setattr(device_fit, "TRIAL_PER_CLUSTER", 10)
    monkeypatch.setattr(device_fit, "STARTS", 4)
    monkeypatch.setattr(start, "QUANTILES", (0.1, 0.3, 0.9))


@pytest.fixture(scope="module")
def data():
    return blobs(301, 4)


def fit(X, c=4, **parameters):
    return fit_on_device(X, c, **{"n_dissimilarities": 25, "device": "cpu", **parameters})


class TestFit:
    def test_finds_clusters_and_says_how(self, data):
        X, y = data
        found = fit(X)
        assert found.converged
        assert found.mass.shape == (301, 6)
        assert adjusted_rand_score(y, labels_of(found.mass, found.focal_sets)) == 1
        assert all(b <= a for a, b in zip(found.history, found.history[1:], strict=False))
        assert [q for q, _ in found.d0_curve] == [0.1, 0.3, 0.9]
        # New objects go where their likes are; the landmarks are the fitted ones.
        assert adjusted_rand_score(
            y, labels_of(predict_on_device(found, X, k=25), found.focal_sets)
        ) == pytest.approx(1, abs=0.02)
        alone = predict_on_device(found, X[7:8], k=25)
        assert torch.equal(alone, predict_on_device(found, X[:20], k=25)[7:8])

    def test_same_seed_same_bits(self, data):
        first, second = (fit(data[0], d0=8.0, seed=3) for _ in range(2))
        assert torch.equal(first.mass, second.mass)
        assert first.history == second.history

    def test_an_order_may_be_given(self, data):
        order = np.random.default_rng(0).permutation(301)
        reports: list[tuple[int, float]] = []
        found = fit(data[0], d0=8.0, order=order, report=lambda *news: reports.append(news))
        assert [sweep for sweep, _ in reports] == list(range(1, len(found.history)))

    @pytest.mark.parametrize("init", ["random", "k-means++", "given"])
    def test_other_starts(self, data, init):
        X, y = data
        if init == "given":
            init = torch.as_tensor(np.random.default_rng(0).dirichlet(np.ones(6), 301))
        found = fit(X, d0="q0.3", init=init)
        assert adjusted_rand_score(y, labels_of(found.mass, found.focal_sets)) == 1

    def test_all_objects_are_landmarks_when_they_are_few(self):
        X, y = blobs(90, 3)
        found = fit(X, 3, d0=8.0)
        assert adjusted_rand_score(y, labels_of(found.mass, found.focal_sets)) == 1

    def test_weights_of_one_change_nothing(self, data):
        plain = fit(data[0], d0=8.0)
        weighted = fit(data[0], d0=8.0, weight=torch.ones(301))
        assert weighted.objective == pytest.approx(plain.objective, rel=1e-12)

    def test_float16_dissimilarities_cost_little(self, data):
        plain, half = fit(data[0], d0=8.0), fit(data[0], d0=8.0, half=True)
        assert half.objective == pytest.approx(plain.objective, rel=1e-3)

    def test_more_focal_sets_than_a_thread_can_hold(self, data):
        found = fit(data[0], d0=8.0, focal_sets=FocalSets.full(4), init="random")
        more = fit(data[0], d0=8.0)
        assert found.mass.shape == (301, 16)
        assert found.objective < more.objective * 1.01

    def test_equal_objects_are_refused(self):
        with pytest.raises(ValueError, match="All dissimilarities are zero"):
            fit(np.ones((50, 2), np.float32), 2)


@pytest.mark.process
def test_needs_numpy_and_torch_alone():
    code = """
import sys
for name in ("numba", "llvmlite", "dask", "distributed", "zarr", "sklearn", "scipy", "pandas",
             "triton", "matplotlib", "psutil", "rich"):
    sys.modules[name] = None
import torch
from evdist.evclus.gpu.fit import fit_on_device
X = torch.cat([torch.randn(40, 2), torch.randn(40, 2) + 9])
assert fit_on_device(X, 2, n_dissimilarities=10, d0=5.0, device="cpu").converged
"""
    subprocess.run([sys.executable, "-c", code], check=True)
