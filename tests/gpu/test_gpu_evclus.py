"""EVCLUS with device=...: the same stages, with the sweeps on a torch device (here the CPU)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gpu.gpu_cases import blobs
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, FocalSets
from evdist.evclus.rows import numba as numba_rows


@pytest.fixture(scope="module")
def data():
    return blobs(301, 3)


def models(X, fit=None, **parameters):
    """The same model on the CPU and on the device."""
    parameters = {"n_dissimilarities": 20, "d0": 8.0, "random_state": 0, **parameters}
    return [
        EVCLUS(3, device=d, **{"metric": "euclidean", **parameters}).fit(X, **(fit or {}))
        for d in ("cpu", "cuda")
    ]


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

    @pytest.mark.parametrize(
        ("d0", "metric"), [(8.0, "euclidean"), ("q0.5", "euclidean"), ("auto", "precomputed")]
    )
    def test_threads_neither_start_nor_place(self, on_torch, data, monkeypatch, d0, metric):
        X, y = data
        X = X if metric == "euclidean" else np.linalg.norm(X[:, None] - X, axis=2)
        options = {"n_dissimilarities": 20, "d0": d0, "metric": metric, "random_state": 0}
        here = EVCLUS(3, **options).fit(X)
        for name in ("update_rows", "assign_rows", "block_objective"):
            monkeypatch.setattr(numba_rows, name, None)
        there = EVCLUS(3, device="cuda", **options).fit(X)
        assert there.d0_ == here.d0_
        assert there.objective_ == pytest.approx(here.objective_, rel=1e-2)
        assert adjusted_rand_score(y, there.predict(X)) > 0.98

    def test_same_seed_same_bits(self, on_torch, data):
        first, second = (models(data[0])[1] for _ in range(2))
        np.testing.assert_array_equal(first.credal_partition_.mass, second.credal_partition_.mass)
        assert first.history_ == second.history_
        assert (np.diff(first.history_) <= 0).all()
        # Each object is predicted by itself.
        alone = first.predict_mass(data[0][7:8])
        np.testing.assert_array_equal(alone, first.predict_mass(data[0][:20])[7:8])

    @pytest.mark.parametrize("init", ["random", "k-means++"])
    def test_other_starts(self, on_torch, data, init):
        _, there = models(data[0], init=init, d0="q0.3")
        assert adjusted_rand_score(data[1], there.labels_) == 1

    def test_all_objects_are_landmarks_when_they_are_few(self, on_torch):
        X, y = blobs(90, 3)
        _, there = models(X)
        assert adjusted_rand_score(y, there.labels_) == 1

    def test_equal_weights_change_nothing(self, on_torch, data):
        plain, weighted = (
            models(data[0], {"sample_weight": w})[1] for w in (None, np.full(301, 3.0))
        )
        assert weighted.objective_ == pytest.approx(plain.objective_, rel=1e-12)

    def test_more_focal_sets_than_a_thread_can_hold(self, on_torch, data):
        _, more = models(data[0])
        _, found = models(data[0], focal_sets=FocalSets.full(3), init="random")
        assert found.credal_partition_.mass.shape == (301, 8)
        assert found.objective_ < more.objective_ * 1.01

    def test_equal_objects_are_refused(self, on_torch):
        with pytest.raises(ValueError, match="All dissimilarities are zero"):
            models(np.ones((50, 2), np.float32), d0="auto")[1]

    def test_selected_pairs(self, on_torch, data):
        here, there = models(data[0], focal_sets="select", tol=1e-7)
        assert there.credal_partition_.focal_sets == here.credal_partition_.focal_sets
        assert there.objective_ == pytest.approx(here.objective_, rel=2e-2)

    def test_goes_on_from_a_checkpoint(self, on_torch, data, tmp_path):
        # The sweeps over landmarks end with max_iter too, so that another start would be found.
        parameters = {"n_dissimilarities": 20, "d0": 8.0, "init": "random", "random_state": 0,
                      "device": "cuda"}  # fmt: skip
        whole = EVCLUS(3, **{"metric": "euclidean", **parameters}).fit(data[0])
        with pytest.warns(UserWarning, match="did not converge"):
            EVCLUS(
                3,
                checkpoint=tmp_path,
                checkpoint_every=4,
                max_iter=8,
                **{"metric": "euclidean", **parameters},
            ).fit(data[0])
        rest = EVCLUS(
            3, checkpoint=tmp_path, checkpoint_every=4, **{"metric": "euclidean", **parameters}
        ).fit(data[0])
        np.testing.assert_array_equal(rest.credal_partition_.mass, whole.credal_partition_.mass)

    def test_what_it_cannot_do(self, on_torch, data):
        pairs = np.array([[0, 1, 0.5], [1, 2, 0.3], [0, 2, 1.0]])
        with pytest.raises(ValueError, match="list of pairs has a graph of its own"):
            EVCLUS(2, metric="pairs", device="cuda").fit(pairs)


class TestFindingTheDevice:
    @pytest.mark.parametrize("device", ["gpu", "cuda:x", 0, None])
    def test_no_device(self, data, device):
        with pytest.raises(ValueError, match='device must be "cpu", "cuda"'):
            EVCLUS(2, metric="euclidean", device=device).fit(data[0])

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_without_a_gpu(self, data):
        with pytest.raises(ValueError, match="needs a GPU that torch can use"):
            EVCLUS(2, metric="euclidean", device="cuda").fit(data[0])
        auto, cpu = (
            EVCLUS(
                3, metric="euclidean", d0=8.0, n_dissimilarities=20, device=d, random_state=0
            ).fit(data[0])
            for d in ("auto", "cpu")
        )
        np.testing.assert_array_equal(auto.credal_partition_.mass, cpu.credal_partition_.mass)
