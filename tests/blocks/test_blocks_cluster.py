"""The same fit on the processes of a Dask cluster: same bits, whatever happens to the workers."""

from __future__ import annotations

import operator
import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import dask.config
import numpy as np
import pytest
from blocks.blocks_cases import make_problem
from dask_cluster import started
from distributed import Client, wait
from sklearn.base import clone
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.constraints import random_links
from evdist.engine import cluster as cluster_module
from evdist.engine import plan as plan_module
from evdist.engine.cluster import ClusterExecutor, _pieces_of_workers
from evdist.engine.progress import Progress
from evdist.engine.worker_state import STATES
from evdist.engine.workers import (
    _on_this_machine,
    run_on_workers,
    scattered,
    smallest_worker,
    wait_for_workers,
)
from evdist.evclus.irqp import MANY_OBJECTS, LocalExecutor
from evdist.evclus.problem import Problem
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sites import _SharedProblem

pytestmark = pytest.mark.process

N = 1200


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Client]:
    # A worker is killed more than once here. By default Dask looks 15 s after a loss whether the
    # worker is back, and gives it up for good if it has just been killed again.
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),
        started(2, tmp_path_factory.mktemp("dask")) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client(running) -> Client:
    """Two workers; those that a test before has killed are there again, others are gone."""
    wait_for_workers(running, 2)
    while len(running.nthreads()) > 2:
        time.sleep(0.1)
    return running


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch) -> None:
    """Several pieces in every step, so that both workers have some."""
    monkeypatch.setattr(plan_module, "PIECE_ROWS", 50)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return make_blobs(N, centers=3, cluster_std=1.5, random_state=6)


@pytest.fixture(scope="module")
def X(data) -> np.ndarray:
    return data[0]


def model(**options) -> EVCLUS:
    known = {"d0": "q0.5", "n_dissimilarities": 12, "init": "random", "random_state": 1}
    return EVCLUS(3, **{"metric": "euclidean", **known, "tol": 1e-3, **options})


def assert_same(a: EVCLUS, b: EVCLUS) -> None:
    np.testing.assert_array_equal(a.credal_partition_.mass, b.credal_partition_.mass)
    assert a.history_ == b.history_


class KillWorker:
    """A listener that kills one worker with signal 9, at the given sweeps."""

    def __init__(self, client: Client, sweeps: set[int]):
        self.client, self.sweeps = client, sweeps
        self.killed: list[int] = []

    def __call__(self, news: Progress) -> None:
        if news.sweep in self.sweeps:
            pid = min(self.client.run(os.getpid).values())
            os.kill(pid, signal.SIGKILL)
            self.killed.append(pid)


def shared(problem: Problem) -> _SharedProblem:
    return _SharedProblem(problem, NumbaRows())


def held_fits() -> int:
    return len(STATES)


# ---------------------------------------------------------------------- the same bits
def test_a_fit_on_two_workers_is_the_fit_on_threads(client, X):
    here = model().fit(X)
    assert here.n_iter_ > 5
    assert_same(model().fit(X, client=client), here)
    assert set(client.run(held_fits).values()) == {0}  # nothing is left on the workers


def test_many_objects_which_stop_by_another_rule_have_the_same_bits_too(client):
    X = make_blobs(MANY_OBJECTS, centers=3, cluster_std=2.0, random_state=0)[0]
    model = EVCLUS(3, metric="euclidean", n_dissimilarities=20, d0="q0.6", random_state=0)
    there, here = clone(model).fit(X, client=client), model.fit(X)
    assert there.history_ == here.history_
    assert there.n_iter_ < 17
    np.testing.assert_array_equal(there.credal_partition_.mass, here.credal_partition_.mass)


def test_weights_links_and_selected_pairs_run_there_too(client, X, data):
    must, cannot = random_links(data[1], 80, np.random.default_rng(0))
    given = {
        "must_link": must,
        "cannot_link": cannot,
        "sample_weight": np.random.default_rng(1).uniform(0.5, 2, N),
    }
    options = {"focal_sets": "select", "tol": 1e-2, "init": "landmarks"}
    here = model(**options).fit(X, **given)
    assert_same(model(**options).fit(X, client=client, **given), here)


def test_a_pair_list_runs_there_too(client):
    X = np.random.default_rng(0).normal(size=(60, 2))
    i = np.repeat(np.arange(60), 4)
    j = (i + np.tile([1, 2, 3, 7], 60)) % 60
    rows = np.column_stack([i, j, np.linalg.norm(X[i] - X[j], axis=1)])
    here = model(metric="pairs", tol=1e-2).fit(rows)
    assert_same(model(metric="pairs", tol=1e-2).fit(rows, client=client), here)


def test_more_workers_than_pieces_are_no_difficulty(client, monkeypatch):
    monkeypatch.setattr(plan_module, "PIECE_ROWS", 10**6)
    X = np.random.default_rng(0).normal(size=(30, 2))
    here = model(n_dissimilarities=5, tol=1e-2).fit(X)
    assert_same(model(n_dissimilarities=5, tol=1e-2).fit(X, client=client), here)


def test_executors_agree_sweep_by_sweep(client):
    problem, mass = make_problem(500, weighted=True, n_links=30)
    there = ClusterExecutor(client, shared(problem), mass, restore_every=2)
    with NumbaRows().executor(problem, mass) as here:
        for _ in range(3):
            assert there.objective() == here.objective()
            assert there.sweep() == here.sweep()
            np.testing.assert_array_equal(there.masses(), here.masses())
    there.close()


def test_a_sweep_that_is_begun_ahead_is_the_sweep_that_follows(client):
    problem, mass = make_problem(500, n_links=30)
    there = ClusterExecutor(client, shared(problem), mass, restore_every=100)
    with NumbaRows().executor(problem, mass) as here:
        skip = _sweeps_ahead(there, here)
        for ask in (there.masses, there.objective):
            with pytest.raises(RuntimeError, match="in the next sweep: wait for it"):
                ask()
        assert there.sweep(skip) == here.sweep(skip)
        np.testing.assert_array_equal(there.masses(), here.masses())
    there.close()


def _sweeps_ahead(there: ClusterExecutor, here: LocalExecutor) -> float:
    """Five sweeps, the next one always begun; its `skip_below`."""
    following = partial(operator.mul, -1e-3)  # rows that bring less than this share of the whole
    skip = 0.0
    for _ in range(5):
        change = here.sweep(skip)
        assert there.sweep(skip, following) == change
        skip = following(change)
    return skip


def test_what_many_workers_send_is_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster_module, "_FAN_IN", 2)
    problem, mass = make_problem(500)
    with (
        started(3, tmp_path) as cluster,
        Client(cluster, set_as_default=False) as client,
        NumbaRows().executor(problem, mass) as here,
    ):
        there = ClusterExecutor(client, shared(problem), mass, restore_every=100)
        skip = _sweeps_ahead(there, here)
        assert len(there._patches) == 2
        assert there.sweep(skip) == here.sweep(skip)
        np.testing.assert_array_equal(there.masses(), here.masses())
        there.close()


def test_no_sweep_is_begun_before_a_restore_point_is_taken(client):
    problem, mass = make_problem(200)
    there = ClusterExecutor(client, shared(problem), mass, restore_every=4)
    with NumbaRows().executor(problem, mass) as here:
        for sweep in range(1, 9):
            assert there.sweep(0.0, partial(operator.mul, 0.0)) == here.sweep(0.0)
            assert bool(there._ahead) == (sweep % 4 != 0)
    there.close()


def test_only_rows_that_moved_are_sent(client):
    problem, mass = make_problem(500)
    there = ClusterExecutor(client, shared(problem), mass)
    last = [row for _, rows in problem.plan.rows(len(problem.plan.steps) - 1) for row in rows]

    def sent() -> list[int]:
        patches = client.gather(there._patches)
        return sorted(row for patch in patches for moved in patch for row in moved.rows.tolist())

    before = there.masses()
    there.sweep()
    moved = np.flatnonzero((there.masses() != before).any(axis=1))
    assert sent() == sorted(set(moved.tolist()) & set(last))
    there.sweep(np.inf)  # all rest
    assert sent() == []
    there.close()


def test_a_worker_that_joins_gets_a_share_at_the_next_restore_point(client):
    problem, mass = make_problem(500)
    there = ClusterExecutor(client, shared(problem), mass, restore_every=4)
    client.cluster.scale(3)
    wait_for_workers(client, 3)
    try:
        with NumbaRows().executor(problem, mass) as here:
            shares = []
            for _ in range(6):
                assert there.sweep() == here.sweep()
                shares.append(len(there._owners))
            np.testing.assert_array_equal(there.masses(), here.masses())
        assert shares == [2, 2, 2, 3, 3, 3]
    finally:
        there.close()
        client.cluster.scale(2)


# ---------------------------------------------------------------------- lost workers
def test_a_killed_worker_changes_no_bit(client, X):
    here = model().fit(X)
    assert here.n_iter_ > 7
    kill = KillWorker(client, {2, 7})
    there = model(checkpoint_every=3, callbacks=[kill]).fit(X, client=client)
    assert len(kill.killed) == 2
    assert_same(there, here)


def test_a_worker_that_is_killed_before_its_sums_are_fetched_changes_no_bit(client):
    problem, mass = make_problem(500)
    there = ClusterExecutor(client, shared(problem), mass)
    with NumbaRows().executor(problem, mass) as here:
        assert there.sweep(0.0, partial(operator.mul, 0.0)) == here.sweep()
        wait(there._ahead)
        address, pid = min(client.run(os.getpid).items())
        os.kill(pid, signal.SIGKILL)
        while address in client.nthreads():
            time.sleep(0.05)
        assert there.sweep() == here.sweep()
        np.testing.assert_array_equal(there.masses(), here.masses())
    there.close()


def test_a_worker_killed_with_a_checkpoint_on_disk(client, X, tmp_path):
    here = model().fit(X)
    kill = KillWorker(client, {3})
    options = {"checkpoint": tmp_path, "checkpoint_every": 2}
    assert_same(model(callbacks=[kill], **options).fit(X, client=client), here)
    assert kill.killed
    # What the workers wrote, one process reads; and sweeps no more.
    seen: list[Progress] = []
    assert_same(model(callbacks=[seen.append], **options).fit(X), here)
    assert not any(news.sweep for news in seen)


def test_a_fit_begun_in_one_process_goes_on_on_the_cluster(client, X, tmp_path):
    here = model().fit(X)

    def stop(news: Progress) -> None:
        if news.sweep == 5:
            raise KeyboardInterrupt("stop")

    options = {"checkpoint": tmp_path, "checkpoint_every": 2}
    with pytest.raises(KeyboardInterrupt, match="stop"):
        model(callbacks=[stop], **options).fit(X)
    seen: list[int] = []
    later = model(callbacks=[lambda news: seen.append(news.sweep)], **options)
    assert_same(later.fit(X, client=client), here)
    assert next(sweep for sweep in seen if sweep) == 5


def test_an_error_on_a_worker_is_the_users_error(client, X):
    def metric(a, b):
        if a[0] > 5:
            raise ZeroDivisionError("in the metric")
        return float(np.abs(a - b).sum())

    with pytest.raises(ZeroDivisionError, match="in the metric"):
        model(metric=metric, d0=3.0).fit(X[:200], client=client)


def test_waiting_for_workers_leaves_the_clusters_own_list_alone(client):
    """Or a cluster that has just lost a worker may raise KeyError when it closes."""
    known = client.cluster.scheduler_info
    assert wait_for_workers(client, 2) == client.nthreads()
    assert client.cluster.scheduler_info is known


# ---------------------------------------------------------------------- before it starts
def test_workers_that_do_not_come_are_told_of(client):
    with pytest.raises(TimeoutError, match=r"tcp://127.+ has 2 Dask workers, 9 are needed. Start"):
        wait_for_workers(client, 9, 0.2)


def test_a_worker_without_the_memory_is_known_before(client, X, monkeypatch):
    assert smallest_worker(client) == (2, 2 * 2**30)
    monkeypatch.setattr("evdist.engine.memory.smallest_worker", lambda client: (2, 1000))
    with pytest.raises(MemoryError, match=r"free on the smallest worker. Lower n_dissimilarities"):
        model().fit(X, client=client)


def test_a_cluster_is_not_a_client(client, X):
    with pytest.raises(TypeError, match=r"must be a distributed.Client, got LocalCluster. For a"):
        model().fit(X, client=client.cluster)


# ---------------------------------------------------------------------- placing the work
def test_work_is_shared_in_proportion_to_threads():
    problem, _ = make_problem(4000)
    for threads in ([1, 1], [1, 3], [2, 1, 5], [1] * 40):
        shares = _pieces_of_workers(problem, threads)
        assert sorted(chain.from_iterable(shares)) == list(range(len(problem.plan.pieces)))
        for step in problem.plan.steps:
            pieces = {q for q, _ in step}
            counts = np.array([len(pieces & set(share)) for share in shares])
            fair = np.array(threads) / sum(threads) * len(pieces)
            assert np.abs(counts - fair).max() <= 1


def test_run_on_workers_raises_what_a_task_raises(client, tmp_path):
    run_on_workers(client, _write, str(tmp_path), items=[("a",), ("b",)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run_on_workers(client, _write, str(tmp_path / "nowhere"), items=[("a",)])


def test_data_for_a_worker_that_has_just_left_are_sent_again(client):
    there = list(wait_for_workers(client))
    assert scattered(client, [1, 2], [*there, "tcp://127.0.0.1:1"]) is None
    assert client.gather(scattered(client, [1, 2], there)) == [1, 2]


@pytest.mark.parametrize("reachable", [True, False])
def test_data_go_straight_to_workers_of_this_machine_if_they_can(client, monkeypatch, reachable):
    ways: list[bool | None] = []
    scatter = client.scatter

    def watched(*args: Any, direct: bool | None, **how: Any) -> Any:
        ways.append(direct)
        return scatter(*args, direct=direct, **how) if reachable or not direct else refused()

    async def refused() -> None:
        raise OSError("no route to the worker")

    monkeypatch.setattr(client, "scatter", watched)
    there = list(wait_for_workers(client))
    sent = scattered(client, [1, 2], there)
    assert client.gather(sent) == [1, 2]
    assert all(set(held) == set(there) for held in client.who_has(sent).values())
    assert ways == ([True] if reachable else [True, None])


def test_only_loopback_is_this_machine():
    assert _on_this_machine(["tls://127.0.0.1:8786", "tcp://[::1]:80"])
    for other in ("tcp://10.0.0.3:80", "tcp://worker:80", "inproc://127/0/1", "tcp://[fe80::1]:80"):
        assert not _on_this_machine(["tcp://127.0.0.1:8786", other]), other


def _write(folder: str, name: str) -> None:
    with open(os.path.join(folder, name), "w"):
        pass
