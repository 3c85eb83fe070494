"""Partitions owned by Dask workers: same bits, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import dask.array as da
import dask.config
import numpy as np
import pytest
from dask_cluster import started
from distributed import Client
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.engine.ownership import received, shared_out
from evdist.engine.workers import wait_for_workers
from evdist.evclus.partitions import door as door_module
from evdist.evclus.partitions.graph import View, draw_partition_graph
from evdist.kernels.shuffle import Shuffle

pytestmark = pytest.mark.process

N = 6007


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(N, 3, centers=3, cluster_std=1.5, random_state=6)[0].astype(np.float32)


def model(**options) -> EVCLUS:
    known = {"d0": "q0.5", "n_dissimilarities": 20, "random_state": 1, "partitions": 8}
    return EVCLUS(
        **{
            "metric": "euclidean",
            "n_clusters": 3,
            **known,
            "tol": 1e-4,
            "n_jobs": 1,
            "checkpoint_every": 4,
            **options,
        },
    )


@pytest.fixture(scope="module")
def here(X) -> EVCLUS:
    return model().fit(X)


def same(a: EVCLUS, b: EVCLUS) -> bool:
    return a.credal_partition_ == b.credal_partition_ and a.history_ == b.history_


def test_workers_get_runs_of_as_many_even_as_odd_partitions():
    assert shared_out(8, [1, 1]) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert shared_out(8, [3, 1]) == [[0, 1, 2, 3, 4, 5], [6, 7]]
    assert shared_out(4, [1, 1, 1]) == [[0, 1], [], [2, 3]]
    assert [b for own in shared_out(76, [1] * 16) for b in own] == list(range(76))


@pytest.mark.parametrize(
    ("parts", "workers", "most"), [(64, 16, 10), (256, 16, 26), (1024, 64, 26), (3816, 64, 50)]
)
def test_many_workers_get_blocks_with_few_partners_outside(parts, workers, most):
    graph = draw_partition_graph(Shuffle.of(4 * parts, parts), 8, 0)
    columns = max(o for o in graph.offsets if o <= parts // 2)
    owned = shared_out(parts, [1] * workers, lambda b: View(graph, b).partners, columns)
    assert sorted(b for own in owned for b in own) == list(range(parts))
    assert max(map(len, owned)) <= parts // workers + 2
    assert received(owned, lambda b: View(graph, b).partners) <= most
    assert all(abs(sum(1 if b % 2 else -1 for b in own)) <= len(own) / 16 for own in owned)


def test_two_workers_give_the_bits_of_one_process(two_workers, X, here, tmp_path):
    np.save(tmp_path / "X.npy", X)
    there = model().fit(tmp_path / "X.npy", client=two_workers)
    assert same(there, here)
    assert isinstance(there.labels_, da.Array)


def test_a_dask_array_never_comes_to_the_client(two_workers, X, here, monkeypatch):
    monkeypatch.setattr(door_module, "PARTITION_ROWS", 5000)
    gathered: list[int] = []
    gather = Client.gather

    def measured(self, futures, *args, **options):
        found = gather(self, futures, *args, **options)
        gathered.append(_largest(found))
        return found

    monkeypatch.setattr(Client, "gather", measured)
    lazy = da.from_array(X, chunks=(1001, 3))
    with dask.config.set({"distributed.comm.compression": None}):
        there = model(partitions="auto").fit(lazy, client=two_workers)
    assert isinstance(there.labels_, da.Array)
    # The landmarks, a sample, are the largest that came here: fewer than the objects.
    assert max(gathered) < X.nbytes // 2


def _largest(found) -> int:
    if isinstance(found, np.ndarray):
        return found.nbytes
    if isinstance(found, dict):
        return max(map(_largest, found.values()), default=0)
    if isinstance(found, list | tuple):
        return max(map(_largest, found), default=0)
    return 0


def test_a_folder_that_workers_do_not_see_is_told(two_workers, X, monkeypatch):
    monkeypatch.setattr(door_module, "exists", _never)
    with pytest.raises(ValueError, match="does not see the folder"):
        model().fit(X, client=two_workers)


def _never(url) -> bool:
    return False


# ---------------------------------------------------------------------- lost workers
@pytest.fixture(scope="module")
def mortal(tmp_path_factory) -> Iterator[Client]:
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        started(2, tmp_path_factory.mktemp("dask")) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.parametrize("stage", ["shuffle", "lay out", "place", "fit"])
def test_a_worker_killed_in_any_stage_changes_no_bit(mortal, X, here, stage):
    killed: list[int] = []
    lazy = da.from_array(X, chunks=(301, 3))
    there = model(callbacks=[_killing(mortal, stage, killed)]).fit(lazy, client=mortal)
    assert killed and same(there, here)


@pytest.mark.parametrize("stage", ["place", "fit"])
def test_near_partners_survive_a_killed_worker(mortal, stage):
    X = make_blobs(3000, 4, centers=30, random_state=2)[0].astype(np.float32)
    options = {"n_clusters": 30, "d0": "auto", "n_dissimilarities": 40}
    killed: list[int] = []
    there = model(**options, callbacks=[_killing(mortal, stage, killed)]).fit(X, client=mortal)
    assert killed and same(there, model(**options).fit(X))


def _killing(mortal: Client, stage: str, killed: list[int]):
    """A callback that kills a worker once, in a stage."""
    wait_for_workers(mortal, 2)

    def kill(progress) -> None:
        if (
            progress.stage == stage
            and progress.sweep >= (6 if stage == "fit" else 1)
            and not killed
        ):
            pid = min(mortal.run(os.getpid).values())
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    return kill


def test_a_worker_that_joins_gets_partitions(mortal, X, here):
    wait_for_workers(mortal, 2)
    joined: list[int] = []

    def grow(progress) -> None:
        if progress.stage == "fit" and progress.sweep == 2:
            mortal.cluster.scale(3)
            joined.append(len(wait_for_workers(mortal, 3)))

    there = model(callbacks=[grow]).fit(X, client=mortal)
    assert joined == [3] and same(there, here)
    mortal.cluster.scale(2)
