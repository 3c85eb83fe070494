"""Several devices through Dask workers: the bits of one device alone, whatever happens to them.

The devices are torch on CPUs here; the same code runs on GPUs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from dask_cluster import workers
from distributed import Client
from gpu.gpu_cases import CPU, blobs
from sklearn.metrics import adjusted_rand_score

import evdist.bootclus.estimator as bootclus
import evdist.evclus.sites as sites
from evdist import EVCLUS, Bootclus
from evdist.engine import plan as plan_module
from evdist.engine.progress import Progress
from evdist.evclus import start
from evdist.evclus.rows import device as device_module
from evdist.evclus.rows.device import device_here, visible_devices

pytestmark = pytest.mark.process

N = 360


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Client]:
    with workers(2, tmp_path_factory.mktemp("dask")) as client:
        yield client


def scaled(client: Client, count: int) -> Client:
    """The same cluster with so many workers, be they new or come again after a test."""
    client.cluster.scale(count)
    for _ in range(600):
        if len(client.nthreads()) == count:
            return client
        time.sleep(0.1)
    raise TimeoutError(f"{len(client.nthreads())} workers instead of {count} after a minute")


@pytest.fixture
def client(running) -> Client:
    return scaled(running, 2)


@pytest.fixture(autouse=True)
def on_torch(monkeypatch) -> None:
    """device="cuda" is torch on the CPU; few landmarks, and several pieces in every step."""
    monkeypatch.setattr(sites, "find_device", lambda name, client=None: CPU)
    monkeypatch.setattr(plan_module, "PIECE_ROWS", 30)
    monkeypatch.setattr(start, "MIN_LANDMARKS", 60)
    monkeypatch.setattr(start, "LANDMARKS_PER_CLUSTER", 10)
    monkeypatch.setattr(start, "STARTS", 2)


@pytest.fixture(scope="module")
def data():
    return blobs(N, 3)


def model(**options) -> EVCLUS:
    known = {"n_dissimilarities": 12, "d0": 8.0, "init": "random", "random_state": 1, "tol": 1e-2}
    return EVCLUS(3, **{"metric": "euclidean", **known, "device": "cuda", **options})


def assert_same(a: EVCLUS | Bootclus, b: EVCLUS | Bootclus) -> None:
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)
    assert a.history_ == b.history_


# ---------------------------------------------------------------------- the same bits
def test_a_fit_on_two_workers_is_the_fit_on_one_device(client, data):
    X, y = data
    here = model(init="landmarks").fit(X)
    there = model(init="landmarks").fit(X, client=client)
    assert_same(there, here)
    assert adjusted_rand_score(y, there.labels_) > 0.95
    np.testing.assert_array_equal(there.predict(X[:50]), here.predict(X[:50]))
    delta, kappa = there.shepard_pairs()
    assert np.mean((delta - kappa) ** 2) == pytest.approx(there.objective_, rel=1e-6)


def test_for_any_number_of_workers(client, data):
    here = model().fit(data[0])
    for count in (1, 3):
        assert_same(model().fit(data[0], client=scaled(client, count)), here)


def test_weights_links_and_selected_pairs(client, data):
    given = {
        "must_link": [[0, 1], [2, 3], [4, 9], [10, 11]],
        "cannot_link": [[5, 6], [0, 7], [1, 8], [20, 30]],
        "sample_weight": np.random.default_rng(1).uniform(0.5, 2, N),
    }
    here = model(focal_sets="select").fit(data[0], **given)
    assert_same(model(focal_sets="select").fit(data[0], client=client, **given), here)


def test_a_square_matrix_within_a_limit(client, data):
    X = data[0][:200]
    D = np.linalg.norm(X[:, None] - X, axis=2)
    here = model(metric="precomputed").fit(D)
    seen: list[str] = []
    # Too little for 100 of the 200 rows, and more than enough for their masses.
    options = {"memory_limit": 2**14 + 2**12, "callbacks": [lambda news: seen.append(news.stage)]}
    with pytest.raises(MemoryError, match="Use fewer focal sets"):
        model(metric="precomputed", **options).fit(D, client=client)
    options["memory_limit"] = 10**6
    seen.clear()
    assert_same(model(metric="precomputed", **options).fit(D, client=client), here)
    assert "dissimilarities in host memory" not in seen


def test_a_killed_worker_changes_no_bit(client, data, tmp_path):
    here = model(tol=1e-3).fit(data[0])
    assert here.n_iter_ > 6
    killed = []

    def kill(news: Progress) -> None:
        if news.sweep == 5 and not killed:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)

    options = {"tol": 1e-3, "checkpoint": tmp_path, "checkpoint_every": 4}
    there = model(callbacks=[kill], **options).fit(data[0], client=client)
    assert killed
    assert_same(there, here)
    # What the workers wrote, one process reads.
    assert_same(model(**options).fit(data[0]), here)


# ---------------------------------------------------------------------- Bootclus
def test_bootclus_on_workers_is_bootclus_on_one_device(client, data, monkeypatch, tmp_path):
    monkeypatch.setattr(bootclus, "find_device", lambda name, client=None: CPU)
    options = {
        "n_bootstrap": 10, "covariance_models": "EEE", "n_dissimilarities": 12, "tol": 1e-3,
        "device": "cuda", "random_state": 1,
    }  # fmt: skip
    here = Bootclus(3, **options).fit(data[0])
    there = Bootclus(3, checkpoint=tmp_path, **options).fit(data[0], client=client)
    assert_same(there, here)
    np.testing.assert_allclose(there.intervals_.lower, here.intervals_.lower, atol=1e-6)
    np.testing.assert_array_equal(there.predict(data[0][:50]), here.predict(data[0][:50]))


# ---------------------------------------------------------------------- whose GPU
class TestDevices:
    def test_workers_that_see_the_same_gpus_take_turns(self, monkeypatch):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
        monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
        assert [device_here("cuda", i).index for i in range(6)] == [0, 1, 2, 3, 0, 1]
        assert [device_here("cuda:2", i).index for i in range(3)] == [2, 2, 2]
        with pytest.raises(ValueError, match=r"device='cuda:4' was asked for, but .* has 4 GPUs"):
            device_here("cuda:4")

    def test_those_that_see_one_each_take_that(self, monkeypatch):
        monkeypatch.setattr(device_module.socket, "gethostname", lambda: "here")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        assert visible_devices() == ("here", "3")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
        assert visible_devices() == ("here", None)

    @pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
    def test_workers_without_gpus(self, client, data, monkeypatch):
        monkeypatch.undo()
        with pytest.raises(ValueError, match=r"torch finds none on tcp://127\.0\.0\.1"):
            model().fit(data[0], client=client)
        with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
            model().fit(data[0], client=object())
