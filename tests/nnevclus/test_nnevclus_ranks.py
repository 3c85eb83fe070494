"""NNEVCLUS on Dask workers: the bits of one process, on any number of them, whichever dies."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import torch.distributed as dist
from dask_cluster import workers
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from torch import nn

import evdist.engine.ranks as ranks_module
from evdist import NNEVCLUS
from evdist.engine.ranks import Group, Ranks, shares
from evdist.engine.workers import WorkersLostError, wait_for_workers

pytestmark = pytest.mark.process

X, Y = make_blobs(1200, centers=[[0, 0], [8, 0], [0, 8], [8, 8]], random_state=1)
BODY = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.1), nn.BatchNorm1d(8))
OPTIONS = {
    "hidden": (12,), "d0": "q0.4", "n_init": 1, "device": "cpu", "random_state": 0, "tol": 0.0,
    "max_iter": 30,
}  # fmt: skip


def fitted(client=None, **options) -> NNEVCLUS:
    with pytest.warns(ConvergenceWarning, match="did not converge"):  # tol = 0: all epochs
        return NNEVCLUS(**{"n_clusters": 4, **OPTIONS, **options}).fit(X, client=client)


def same_bits(one: NNEVCLUS, other: NNEVCLUS) -> None:
    np.testing.assert_array_equal(one.credal_partition_.mass, other.credal_partition_.mass)
    assert one.history_ == other.history_


def _gathered(group: Group, mine: list[float]) -> tuple[int, list[float]]:
    import torch

    return group.rank, group.gather(torch.tensor(mine)[:, None])[:, 0].tolist()


def _one_fails(group: Group, mine: list[float]) -> None:
    raise ValueError(f"rank {group.rank} does not like {mine}")


def _one_dies(group: Group, mine: list[float], died: Path) -> tuple[int, list[float]]:
    """Rank 1 dies in the first round, while the other waits for it."""
    if died.exists():
        return _gathered(group, mine)
    if group.rank == 1:
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    import torch

    for _ in range(1000):
        group.gather(torch.zeros(len(mine), 1))
        time.sleep(0.01)
    raise AssertionError("rank 1 lives")


@given(parts=st.integers(1, 40), world=st.integers(1, 40))
def test_parts_are_dealt_in_order_and_evenly(parts, world):
    dealt = shares(parts, world)
    assert [i for share in dealt for i in share] == list(range(parts))
    sizes = [len(share) for share in dealt]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("parts", [[1.0, 4.0], [1.0, 4.0, 2.0], [3.0]])
def test_ranks_gather_parts_in_their_order(two_workers, parts):
    ranks = Ranks(two_workers, parts, cuda=False)
    assert ranks.world == min(len(parts), 2)  # no worker without a part
    assert ranks.round(_gathered, start="nothing") == [(rank, parts) for rank in range(ranks.world)]


def test_an_error_of_the_work_is_raised_as_it_is(two_workers):
    ranks = Ranks(two_workers, [1.0, 4.0], cuda=False)
    with pytest.raises(ValueError, match="does not like"):
        ranks.round(_one_fails, start="nothing")


def _one_was_left_alone(group: Group, mine: list[float], gone: Path) -> tuple[int, list[float]]:
    """In the first round rank 1 has waited for another one, which said "here" and went."""
    if group.rank == 1 and not gone.exists():
        gone.touch()
        dist.destroy_process_group()
        port = ranks_module._free_port(_gathered)
        host = dist.TCPStore("127.0.0.1", port, 2, is_master=True, wait_for_workers=False)
        host.set("rank 0", "here")
        ranks_module.PATIENCE = 0.2
        try:
            ranks_module._work(_gathered, "gloo", "127.0.0.1", port, Group(1, 2, 2), mine)
        finally:
            ranks_module.PATIENCE = 600.0
    return _gathered(group, mine)


def test_a_meeting_that_failed_leaves_nothing_to_the_next(two_workers, tmp_path):
    ranks = Ranks(two_workers, [1.0, 4.0], cuda=False)
    with pytest.warns(RuntimeWarning, match="Training goes on from nothing"):
        found = ranks.round(_one_was_left_alone, tmp_path / "gone", start="nothing")
    assert found == [(0, [1.0, 4.0]), (1, [1.0, 4.0])]


def _nobody_is_reached(host: str, port: int) -> bool:
    return False


def test_workers_behind_a_firewall_leave_the_work_to_one_of_them(two_workers, monkeypatch):
    """As on Kubernetes with a network policy."""
    monkeypatch.setattr(ranks_module, "_knock", _nobody_is_reached)
    with pytest.warns(RuntimeWarning, match=r"cannot reach port \d+ of .*networkPolicy\.ranks"):
        ranks = Ranks(two_workers, [3.0, 2.0], cuda=False)
    assert ranks.world == 1
    assert ranks.round(_gathered, start="nothing") == [(0, [3.0, 2.0])]
    few = {"batch_size": 60, "n_shards": 2, "max_iter": 2}
    with pytest.warns(RuntimeWarning, match="with the same result"):
        alone = fitted(two_workers, **few)
    same_bits(alone, fitted(**few))


def test_a_worker_knows_whether_it_reaches_another_one():
    port = ranks_module._open_door()
    assert ranks_module._knock("127.0.0.1", port)
    ranks_module._close_door(port)
    assert not ranks_module._knock("127.0.0.1", port)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 60, "n_shards": 2},
        {"batch_size": 40, "n_shards": 3, "validation_fraction": 0.1, "optimizer": "adam"},
        {"batch_size": 60, "n_shards": 1, "gate": True},
        {"batch_size": 60, "n_shards": 2, "body": BODY},
    ],
    ids=["two", "three, held out", "one", "random layers and running means"],
)
def test_workers_give_the_bits_of_one_process(two_workers, options):
    options = {**options, "max_iter": 4}
    same_bits(fitted(two_workers, **options), fitted(**options))


def test_workers_give_the_bits_of_one_process_with_many_clusters(two_workers):
    """Each tells by itself which pairs are near."""
    few = {"n_clusters": 25, "batch_size": 60, "n_shards": 3, "max_iter": 3}
    same_bits(fitted(two_workers, **few), fitted(**few))


def test_there_is_a_shard_for_each_worker(two_workers):
    few = {"batch_size": 60, "max_iter": 3}
    same_bits(fitted(two_workers, **few), fitted(n_shards=2, **few))


def test_two_workers_learn_as_one_process_with_the_doubled_batch(two_workers):
    two = fitted(two_workers, batch_size=60)
    one = fitted(batch_size=120)
    assert adjusted_rand_score(Y, two.labels_) > 0.98
    settled = slice(10, 30)
    ratio = np.mean(two.history_[settled]) / np.mean(one.history_[settled])
    assert ratio == pytest.approx(1, abs=0.05)  # the benchmark measures it on more objects


def test_workers_need_mini_batches(two_workers):
    with pytest.raises(ValueError, match="Workers train by mini-batches"):
        NNEVCLUS(4, **OPTIONS, batch_size=None).fit(X, client=two_workers)


class TestDeath:
    @pytest.fixture
    def pair(self, tmp_path):
        with workers(2, tmp_path / "dask") as client:
            yield client

    def test_is_told_and_changes_no_bit(self, pair, tmp_path):
        pids = pair.run(os.getpid)
        killed = []

        def kill(news) -> None:
            if news.sweep == 6 and not killed:
                killed.append(sorted(pids)[1])
                os.kill(pids[killed[0]], signal.SIGKILL)

        few = {"batch_size": 60, "max_iter": 12}
        with pytest.warns(RuntimeWarning, match="was lost. Training goes on from the state after"):
            model = fitted(pair, callbacks=[kill], checkpoint=tmp_path / "kept", **few)
        assert killed
        same_bits(model, fitted(n_shards=2, **few))

    def test_of_a_rank_starts_its_round_again_a_few_times(self, pair, tmp_path, monkeypatch):
        ranks = Ranks(pair, [3.0, 2.0], cuda=False)
        with pytest.warns(RuntimeWarning, match="was lost. Training goes on from the middle, on"):
            found = ranks.round(_one_dies, tmp_path / "died", start="the middle")
        assert found[0] == (0, [3.0, 2.0])
        wait_for_workers(pair, 2)
        ranks = Ranks(pair, [3.0, 2.0], cuda=False)
        monkeypatch.setattr("evdist.engine.ranks.ATTEMPTS", 1)
        with (
            pytest.warns(RuntimeWarning, match="was lost"),
            pytest.raises(WorkersLostError, match="lost faster than epochs are done"),
        ):
            ranks.round(_one_dies, tmp_path / "died again", start="the middle")
