"""NNEVCLUS on Dask workers: one rank each, the same network on all, and what a death costs."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import NNEVCLUS
from evdist.blocks.ranks import Group, RankLostError, Ranks

pytestmark = pytest.mark.process

X, Y = make_blobs(1200, centers=[[0, 0], [8, 0], [0, 8], [8, 8]], random_state=1)
OPTIONS = {
    "hidden": (12,), "d0": "q0.4", "n_init": 1, "device": "cpu", "random_state": 0, "tol": 0.0,
    "max_iter": 30,
}  # fmt: skip


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(2)
        yield client


def fitted(client=None, **options) -> NNEVCLUS:
    with pytest.warns(ConvergenceWarning, match="did not converge"):  # tol = 0: all epochs
        return NNEVCLUS(4, **{**OPTIONS, **options}).fit(X, client=client)


def _mean_of_ranks(group: Group, item: float) -> tuple[int, float]:
    import torch

    values = torch.tensor([item])
    group.average(values)
    return group.rank, float(values)


def _one_fails(group: Group, item: float) -> None:
    raise ValueError(f"rank {group.rank} does not like {item}")


def _one_dies(group: Group, item: float) -> None:
    if group.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    import torch

    for _ in range(1000):
        group.average(torch.zeros(1))
        time.sleep(0.01)


def test_ranks_average(client):
    ranks = Ranks(client, cuda=False)
    ranks.send([1.0, 4.0])
    assert ranks.round(_mean_of_ranks) == [(0, 2.5), (1, 2.5)]


def test_an_error_of_the_work_is_raised_as_it_is(client):
    ranks = Ranks(client, cuda=False)
    ranks.send([1.0, 4.0])
    with pytest.raises(ValueError, match="does not like"):
        ranks.round(_one_fails)


def test_two_workers_learn_as_one_process_with_the_doubled_batch(client):
    two = fitted(client, batch_size=60)
    one = fitted(batch_size=120)
    assert adjusted_rand_score(Y, two.labels_) > 0.98
    settled = slice(10, 30)
    ratio = np.mean(two.history_[settled]) / np.mean(one.history_[settled])
    assert ratio == pytest.approx(1, abs=0.05)  # the benchmark measures it on more objects
    again = fitted(client, batch_size=60)
    np.testing.assert_array_equal(again.credal_partition_.mass, two.credal_partition_.mass)


def test_workers_need_mini_batches(client):
    with pytest.raises(ValueError, match="Workers train by mini-batches"):
        NNEVCLUS(4, **OPTIONS, batch_size=None).fit(X, client=client)


class TestDeath:
    @pytest.fixture
    def pair(self):
        with (
            LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=":0") as c,
            Client(c) as client,
        ):
            client.wait_for_workers(2)
            yield client

    def test_is_told_and_the_others_go_on(self, pair, tmp_path):
        pids = pair.run(os.getpid)
        killed = []

        def kill(news) -> None:
            if news.sweep == 6 and not killed:
                killed.append(sorted(pids)[1])
                os.kill(pids[killed[0]], signal.SIGKILL)

        with pytest.warns(RuntimeWarning, match="was lost. Training goes on from the state after"):
            model = fitted(pair, batch_size=60, callbacks=[kill], checkpoint=tmp_path)
        assert killed
        assert model.n_iter_ == 30
        assert adjusted_rand_score(Y, model.labels_) > 0.98

    def test_of_a_rank_in_a_round_is_an_error(self, pair):
        ranks = Ranks(pair, cuda=False)
        ranks.send([1.0, 4.0])
        with pytest.raises(RankLostError, match="was lost"):
            ranks.round(_one_dies)
        ranks.renew()
        ranks.send([3.0] * ranks.world)
        assert ranks.round(_mean_of_ranks)[0] == (0, 3.0)
