"""Bootclus on the processes of a Dask cluster: the same bits, and lost workers cost only time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import numpy as np
import pytest
from bootclus.bootclus_cases import three_gaussians
from distributed import Client, LocalCluster

from evdist import Bootclus
from evdist.bootclus.replicates import bootstrap_gaussian
from evdist.engine import workers as tasks
from evdist.engine.workers import map_tasks, wait_for_workers

pytestmark = pytest.mark.process

#: More than ALL_PAIRS, so that pairs are sampled and coloured.
N = 1100
FAST = {"n_bootstrap": 12, "covariance_models": "EEE", "n_dissimilarities": 20, "random_state": 0}


@pytest.fixture(scope="module")
def client(tmp_path_factory) -> Iterator[Client]:
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0",
        host="127.0.0.1", local_directory=str(tmp_path_factory.mktemp("dask")),
        memory_limit="2GiB",
    )  # fmt: skip
    with cluster, Client(cluster) as running:
        yield running


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return three_gaussians(N)[0]


@pytest.fixture(scope="module")
def alone(X) -> Bootclus:
    return Bootclus(3, **FAST, n_jobs=1).fit(X)


def test_two_processes_give_the_bits_of_one(client, X, alone):
    model = Bootclus(3, **FAST).fit(X, client=client)
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)
    np.testing.assert_array_equal(model.intervals_.lower, alone.intervals_.lower)
    assert model.history_ == alone.history_


def test_a_checkpoint_of_one_kind_is_taken_up_by_the_other(client, X, alone, tmp_path):
    options = {**FAST, "checkpoint": tmp_path / "folder"}
    Bootclus(3, **options).fit(X)
    model = Bootclus(3, **options).fit(X, client=client)
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)


def test_a_worker_that_dies_during_the_bootstrap_costs_nothing_but_time(client, X, alone):
    wait_for_workers(client, 2)
    pids = client.run(os.getpid)
    kill = client.submit(os.kill, next(iter(pids.values())), signal.SIGKILL,
                         workers=[next(iter(pids))], allow_other_workers=False)  # fmt: skip
    found = bootstrap_gaussian(X, alone.mixture_.parameters_, 40, 7, client=client)
    kill.cancel()
    here = bootstrap_gaussian(X, alone.mixture_.parameters_, 40, 7)
    np.testing.assert_array_equal(found.replicates.means, here.replicates.means)
    np.testing.assert_array_equal(found.replicates.orientations, here.replicates.orientations)


def row_sum(table: np.ndarray, item: int) -> tuple[int, float]:
    table[item] += 0.0  # it can be written
    return item, float(table[item].sum())


def refuse(table: np.ndarray, item: int) -> None:
    raise ValueError(f"item {item} is refused")


def test_a_table_is_sent_in_parts_and_every_item_is_done_once(client, monkeypatch):
    monkeypatch.setattr(tasks, "_PART_BYTES", 100)
    table = np.arange(60.0).reshape(20, 3)
    found = list(map_tasks(client, row_sum, table, range(20)))
    assert sorted(found) == [(i, float(table[i].sum())) for i in range(20)]


def test_what_a_task_raises_is_raised_here(client):
    with pytest.raises(ValueError, match="item 3 is refused"):
        list(map_tasks(client, refuse, np.zeros((4, 1)), [3]))
