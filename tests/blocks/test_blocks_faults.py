"""Faults of a Dask cluster under a job: the same bits, or an error that names what stands still."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import dask
import numpy as np
import pytest
from blocks.blocks_cases import make_problem
from distributed import Client, LocalCluster
from fault_cluster import FaultCluster, fault_cluster, pause
from service.servers import wait_for
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.engine import admission, deadline
from evdist.engine.admission import admitted, book_of
from evdist.engine.cluster import ClusterExecutor
from evdist.engine.deadline import WorkerStalledError
from evdist.engine.growing import PLACE, grow
from evdist.engine.worker_state import STATES
from evdist.engine.workers import wait_for_workers
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sites import _SharedProblem
from evdist.service.jobs import run

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

#: It never meets its stopping rule.
FIT = {"n_clusters": 3, "n_dissimilarities": 12, "d0": "q0.5", "init": "random", "tol": 0.0}
FIT |= {"max_iter": 30, "random_state": 1}


@pytest.fixture
def cluster(tmp_path) -> Iterator[FaultCluster]:
    with fault_cluster(tmp_path / "cluster") as found:
        yield found


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    return make_blobs(600, centers=3, cluster_std=1.5, random_state=6)[0]


@pytest.fixture(scope="module")
def mass(X) -> np.ndarray:
    with pytest.warns(match="did not converge"):
        return EVCLUS(metric="euclidean", **FIT).fit(X).credal_partition_.mass


def job(folder, address: str, X: np.ndarray) -> dict:
    np.save(folder / "x.npy", X)
    return {
        "folder": str(folder / "job"),
        "data": {"url": str(folder / "x.npy")},
        "parameters": FIT,
        "cluster": {"kind": "scheduler", "address": address},
    }


class At:
    """A listener that calls `act` at a sweep, once, and slows the sweeps after it down."""

    def __init__(self, sweep: int, act):
        self.sweep, self.act, self.done = sweep, act, False

    def __call__(self, news) -> None:
        if news.stage == "fit" and news.sweep >= self.sweep and not self.done:
            self.done = True
            self.act()


def assert_ends_right(config: dict, mass: np.ndarray, fault: At) -> None:
    result = run(config, through="fit", listen=[fault])
    assert fault.done
    np.testing.assert_array_equal(np.asarray(result.partition.mass), mass)


# ---------------------------------------------------------------------- the scheduler
def test_a_scheduler_that_is_replaced_changes_no_bit(cluster, tmp_path, X, mass):
    """As `helm upgrade` does it: another process under the same address."""
    fault = At(9, cluster.replace_scheduler)
    assert_ends_right(job(tmp_path, cluster.address, X), mass, fault)


def test_a_scheduler_that_is_replaced_under_another_address(cluster, tmp_path, X, mass):
    """The configuration names a file that holds the address; each connection reads it anew."""
    place = tmp_path / "scheduler.json"
    place.write_text(json.dumps({"address": cluster.address}))

    def replace() -> None:
        cluster.replace_scheduler(port=cluster.port + 1)
        place.write_text(json.dumps({"address": cluster.address}))

    assert_ends_right(job(tmp_path, f"file://{place}", X), mass, At(9, replace))


# ---------------------------------------------------------------------- workers that stand still
@pytest.fixture
def impatient(monkeypatch) -> None:
    monkeypatch.setenv("EVDIST_STALL_SECONDS", "4")
    monkeypatch.setattr(deadline, "_SILENT", 3.0)


def test_a_silent_worker_is_named_and_the_job_goes_on_without_it(
    cluster, tmp_path, X, mass, impatient, caplog
):
    fault = At(9, lambda: os.kill(cluster.workers[0].pid, signal.SIGSTOP))
    assert_ends_right(job(tmp_path, cluster.address, X), mass, fault)
    assert "has given no sign of life for" in caplog.text


def test_a_paused_worker_is_an_error_that_names_it(cluster, X, impatient):
    with Client(cluster.address, set_as_default=False) as client:
        wait_for_workers(client, 2)
        victim = min(client.nthreads())
        fault = At(9, lambda: client.run(pause, workers=[victim]))
        with pytest.raises(
            WorkerStalledError, match=rf"Dask worker {victim} has been paused for .*memory is full"
        ):
            EVCLUS(metric="euclidean", **FIT, callbacks=[fault]).fit(X, client=client)


def test_workers_that_are_all_paused_before_it_begins_are_an_error_that_names_one(cluster, X):
    """As where the libraries alone fill them; Dask would say "No valid workers found"."""
    with Client(cluster.address, set_as_default=False, timeout=5) as client:
        wait_for_workers(client, 2)
        client.run(pause)
        with pytest.raises(WorkerStalledError, match=r"has been paused for .*memory is full"):
            EVCLUS(metric="euclidean", **FIT).fit(X, client=client)


# ---------------------------------------------------------------------- shares
KILLED = """
import os, signal, sys, time
sys.path[:0] = sys.argv[2:]
from blocks.blocks_cases import make_problem
from distributed import Client
from evdist.engine.cluster import ClusterExecutor
from evdist.evclus.rows.numba import NumbaRows
from evdist.evclus.sites import _SharedProblem
problem, mass = make_problem(500)
client = Client(sys.argv[1], set_as_default=False)
there = ClusterExecutor(client, _SharedProblem(problem, NumbaRows()), mass)
there.sweep()
print("swept", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def held() -> int:
    return len(STATES)


def test_the_share_of_a_killed_client_is_dropped(two_workers):
    address = two_workers.scheduler.address
    command = [sys.executable, "-c", KILLED, address, *sys.path]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ended.stdout == "swept\n", ended.stderr
    wait_for("workers", lambda: set(two_workers.run(held).values()) == {0}, 20)


def test_a_fit_that_is_given_up_drops_its_share_too(two_workers):
    problem, mass = make_problem(500)
    there = ClusterExecutor(two_workers, _SharedProblem(problem, NumbaRows()), mass)
    assert set(two_workers.run(held).values()) == {1}
    del there  # without close
    wait_for("workers", lambda: set(two_workers.run(held).values()) == {0}, 20)


# ---------------------------------------------------------------------- several jobs at once
@pytest.fixture
def scheduler(monkeypatch) -> Iterator[LocalCluster]:
    """Room for 368 MiB of jobs on every worker.

    The workers are threads of the tests' own process, which may well use more than their limit:
    that must not pause them.
    """
    monkeypatch.setattr(admission, "_LOOK", 0.05)
    memory = {f"distributed.worker.memory.{at}": False for at in ("target", "spill", "pause")}
    with dask.config.set(memory), LocalCluster(
        n_workers=2, processes=False, threads_per_worker=1, memory_limit="1GiB",
        dashboard_address="127.0.0.1:0",
    ) as found:  # fmt: skip
        yield found


class Waiting(threading.Thread):
    """A job of another client that asks for room."""

    def __init__(self, address: str, size: int, order: list[str], name: str):
        super().__init__(name=name, daemon=True)
        self.address, self.size, self.order = address, size, order
        self.heard: list[str] = []
        self.client = ""
        self.go = threading.Event()

    def run(self) -> None:
        with (
            Client(self.address, set_as_default=False) as client,
            admitted(client, self.size, lambda news: self.heard.append(news.stage)),
        ):
            self.client = client.id
            self.order.append(self.name)
            self.go.wait(30)


def test_a_job_waits_for_room_and_the_first_comes_first(scheduler):
    order: list[str] = []
    large = [Waiting(scheduler.scheduler_address, 300 << 20, order, n) for n in ("a", "b")]
    small = Waiting(scheduler.scheduler_address, 1 << 20, order, "small")
    large[0].start()
    wait_for("the first", lambda: order == ["a"], 20)
    large[1].start()
    wait_for("the second, told that it waits", lambda: large[1].heard, 20)
    small.start()
    time.sleep(0.5)
    assert order == ["a"], "the small one must not pass the large one for ever"
    large[0].go.set()
    wait_for("both", lambda: set(order) == {"a", "b", "small"}, 20)
    # The book has them in the order in which they were let in; which thread runs first is chance.
    inside = [client for client, _ in book_of(scheduler.scheduler).inside.values()]
    assert inside == [large[1].client, small.client]
    for one in (*large, small):
        one.go.set()
        one.join(20)


def test_a_client_that_goes_away_frees_its_place(scheduler):
    client = Client(scheduler.scheduler_address, set_as_default=False)
    place = admitted(client, 400 << 20)
    place.__enter__()
    order: list[str] = []
    other = Waiting(scheduler.scheduler_address, 400 << 20, order, "other")
    other.start()
    wait_for("that it waits", lambda: other.heard, 20)
    client.close()
    wait_for("its turn", lambda: order == ["other"], 20)
    other.go.set()
    other.join(20)


def test_a_job_that_is_alone_is_let_in(scheduler):
    with (
        Client(scheduler.scheduler_address, set_as_default=False) as client,
        admitted(client, 10 << 30),
    ):
        pass


# ---------------------------------------------------------------------- clusters that grow
def test_an_adaptive_cluster_grows_before_the_fit():
    """Tasks of a fit are pinned to the workers there are: by itself it would never grow."""
    with (
        dask.config.set({f"distributed.scheduler.default-task-durations.{PLACE}": "60s"}),
        LocalCluster(
            n_workers=1, processes=False, threads_per_worker=1, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=1, maximum=3, interval="100ms", wait_count=100)
        assert grow(client, 3, 60) == 3
        assert grow(client, 5, 1) == 3  # told, not waited for without end
