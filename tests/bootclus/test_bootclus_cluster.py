"""Bootclus on the processes of a Dask cluster: the same bits, and lost workers cost only time."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from bootclus.bootclus_cases import three_gaussians
from dask_cluster import workers

from evdist import Bootclus
from evdist.bootclus.replicates import bootstrap_gaussian
from evdist.engine import workers as tasks
from evdist.engine.workers import map_tasks

pytestmark = pytest.mark.process

#: More than ALL_PAIRS, so that pairs are sampled and coloured.
N = 1100
FAST = {"n_bootstrap": 12, "covariance_models": "EEE", "n_dissimilarities": 20, "random_state": 0}


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return three_gaussians(N)[0]


@pytest.fixture(scope="module")
def alone(X) -> Bootclus:
    return Bootclus(3, **FAST, n_jobs=1).fit(X)


def test_two_processes_give_the_bits_of_one(two_workers, X, alone):
    model = Bootclus(3, **FAST).fit(X, client=two_workers)
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)
    np.testing.assert_array_equal(model.intervals_.lower, alone.intervals_.lower)
    assert model.history_ == alone.history_


def test_a_checkpoint_of_one_kind_is_taken_up_by_the_other(two_workers, X, alone, tmp_path):
    options = {**FAST, "checkpoint": tmp_path / "folder"}
    Bootclus(3, **options).fit(X)
    model = Bootclus(3, **options).fit(X, client=two_workers)
    np.testing.assert_array_equal(model.credal_partition_.mass, alone.credal_partition_.mass)


def test_a_worker_that_dies_during_the_bootstrap_costs_nothing_but_time(X, alone, tmp_path):
    with workers(2, tmp_path) as client:
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


def test_a_table_is_sent_in_parts_and_every_item_is_done_once(two_workers, monkeypatch):
    monkeypatch.setattr(tasks, "_PART_BYTES", 100)
    table = np.arange(60.0).reshape(20, 3)
    found = list(map_tasks(two_workers, row_sum, table, range(20)))
    assert sorted(found) == [(i, float(table[i].sum())) for i in range(20)]


def test_what_a_task_raises_is_raised_here(two_workers):
    with pytest.raises(ValueError, match="item 3 is refused"):
        list(map_tasks(two_workers, refuse, np.zeros((4, 1)), [3]))
