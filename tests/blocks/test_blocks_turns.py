"""Tasks on a worker take turns where its memory is short, and no task waits without end."""

from __future__ import annotations

import threading
import time

import pytest
from dask_cluster import started
from distributed import Client
from fault_cluster import pause

from evdist.engine.deadline import WorkersLostError
from evdist.engine.turns import Turns, all_done, in_turn


def most_at_once(turns: Turns, size: int, room: int, count: int = 6) -> int:
    """How many of `count` threads are let in together."""
    lock, inside, most = threading.Lock(), 0, 0
    fitting = threading.Barrier(min(count, max(room // size, 1)))

    def work() -> None:
        nonlocal inside, most
        with turns.taking(size, lambda: room):
            with lock:
                inside += 1
                most = max(most, inside)
            fitting.wait(30)  # as many as fit must be inside for any of them to go on
            with lock:
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return most


@pytest.mark.parametrize(("size", "room", "most"), [(10, 35, 3), (10, 5, 1), (1, 100, 6)])
def test_as_many_tasks_run_as_there_is_room_for_and_one_in_any_case(size, room, most):
    assert most_at_once(Turns(), size, room) == most


def test_a_task_that_fails_gives_its_room_back():
    turns = Turns()
    with pytest.raises(ValueError, match="of the task"), turns.taking(10, lambda: 10):
        raise ValueError("of the task")
    with turns.taking(10, lambda: 10):
        pass


@pytest.mark.process
class TestOnACluster:
    def test_a_task_is_run_in_its_turn(self, two_workers):
        assert two_workers.submit(in_turn, 10, sum, [1, 2], pure=False).result() == 3
        assert all_done(two_workers, two_workers.map(abs, [-1, -2])) == [1, 2]

    def test_where_no_worker_can_work_it_is_said(self, tmp_path, monkeypatch):
        monkeypatch.setenv("EVDIST_STALL_SECONDS", "1")
        with started(1, tmp_path) as cluster, Client(cluster, set_as_default=False) as client:
            client.run(pause)
            while client.scheduler_info()["workers"].popitem()[1]["status"] != "paused":
                time.sleep(0.1)
            jobs = client.map(abs, [-1])
            with pytest.raises(WorkersLostError, match="All 1 Dask workers have been paused"):
                all_done(client, jobs)
            cluster.scale(0)
            while client.scheduler_info()["workers"]:
                time.sleep(0.1)
            with pytest.raises(WorkersLostError, match="No Dask worker has been there for 1 s"):
                all_done(client, jobs)
