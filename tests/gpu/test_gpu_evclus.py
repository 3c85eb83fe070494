"""EVCLUS with device=...: the same stages, with the sweeps on a torch device (here the CPU)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import blobs
from sklearn.metrics import adjusted_rand_score

import evdist.evclus.device_start as device_start
import evdist.evclus.estimator as estimator
from evdist import EVCLUS
from evdist.evclus.gpu import start


@pytest.fixture
def on_torch(monkeypatch):
    """device="cuda" is torch on the CPU, with few landmarks."""
    monkeypatch.setattr(
        estimator,
        "find_device",
        lambda name, client=None: None if name == "cpu" else torch.device("cpu"),
    )
    monkeypatch.setattr(device_start, "MIN_LANDMARKS", 120)
    monkeypatch.setattr(device_start, "LANDMARKS_PER_CLUSTER", 10)
    monkeypatch.setattr(device_start, "MIN_TRIAL", 60)
    monkeypatch.setattr(device_start, "TRIAL_PER_CLUSTER", 10)
    monkeypatch.setattr(device_start, "STARTS", 4)
    monkeypatch.setattr(start, "QUANTILES", (0.1, 0.3, 0.9))


@pytest.fixture(scope="module")
def data():
    return blobs(301, 3)


def models(X, fit=None, **parameters):
    """The same model on the CPU and on the device."""
    parameters = {"n_dissimilarities": 20, "d0": 8.0, "random_state": 0, **parameters}
    return [EVCLUS(3, device=d, **parameters).fit(X, **(fit or {})) for d in ("cpu", "cuda")]


@pytest.fixture(scope="module")
def masses():
    return np.random.default_rng(1).dirichlet(np.ones(5), 301)


class TestAgainstTheCPU:
    def test_same_optimum_from_the_same_start(self, on_torch, data, masses):
        here, there = models(data[0], init=masses, tol=1e-9)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
        np.testing.assert_array_equal(here.labels_, there.labels_)
        delta, kappa = there.shepard_pairs()
        assert np.mean((delta - kappa) ** 2) == pytest.approx(there.objective_, rel=1e-6)

    def test_weights(self, on_torch, data, masses):
        weight = np.random.default_rng(2).uniform(0.5, 2, 301)
        here, there = models(data[0], {"sample_weight": weight}, init=masses, tol=1e-9)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)

    def test_constraints(self, on_torch, data, masses):
        links = {"must_link": [[0, 1], [2, 3], [4, 9]], "cannot_link": [[5, 6], [0, 7], [1, 8]]}
        here, there = models(data[0], links, init=masses, tol=1e-9)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
        assert all(b <= a for a, b in zip(there.history_, there.history_[1:], strict=False))

    def test_a_square_matrix(self, on_torch, data, masses):
        D = np.linalg.norm(data[0][:, None] - data[0], axis=2)
        here, there = models(D, metric="precomputed", init=masses, tol=1e-9)
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-5)
        np.testing.assert_allclose(here.predict_mass(D[:5]), there.predict_mass(D[:5]), atol=0.02)


class TestFit:
    def test_starts_on_the_device(self, on_torch, data):
        X, y = data
        _, there = models(X, d0="auto")
        assert adjusted_rand_score(y, there.labels_) > 0.98
        assert len(there.d0_curve_) == 3
        assert there.converged_
        expected = there.predict(X[:40])
        there.set_params(device="cpu")
        np.testing.assert_array_equal(there.predict(X[:40]), expected)

    def test_selected_pairs(self, on_torch, data):
        here, there = models(data[0], focal_sets="select", tol=1e-7)
        assert there.credal_partition_.focal_sets == here.credal_partition_.focal_sets
        assert there.objective_ == pytest.approx(here.objective_, rel=2e-2)

    def test_goes_on_from_a_checkpoint(self, on_torch, data, tmp_path):
        parameters = {"n_dissimilarities": 20, "d0": 8.0, "random_state": 0, "device": "cuda"}
        whole = EVCLUS(3, **parameters).fit(data[0])
        with pytest.warns(UserWarning, match="did not converge"):
            EVCLUS(3, checkpoint=tmp_path, checkpoint_every=4, max_iter=8, **parameters).fit(
                data[0]
            )
        rest = EVCLUS(3, checkpoint=tmp_path, checkpoint_every=4, **parameters).fit(data[0])
        np.testing.assert_array_equal(rest.credal_partition_.mass, whole.credal_partition_.mass)

    def test_what_it_cannot_do(self, on_torch, data):
        pairs = np.array([[0, 1, 0.5], [1, 2, 0.3], [0, 2, 1.0]])
        with pytest.raises(ValueError, match="list of pairs has a graph of its own"):
            EVCLUS(2, metric="pairs", device="cuda").fit(pairs)


class TestFindingTheDevice:
    @pytest.mark.parametrize("device", ["gpu", "cuda:x", 0, None])
    def test_no_device(self, data, device):
        with pytest.raises(ValueError, match='device must be "cpu", "cuda"'):
            EVCLUS(2, device=device).fit(data[0])

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_without_a_gpu(self, data):
        with pytest.raises(ValueError, match="needs a GPU that torch can use"):
            EVCLUS(2, device="cuda").fit(data[0])
        auto, cpu = (
            EVCLUS(3, d0=8.0, n_dissimilarities=20, device=d, random_state=0).fit(data[0])
            for d in ("auto", "cpu")
        )
        np.testing.assert_array_equal(auto.credal_partition_.mass, cpu.credal_partition_.mass)
