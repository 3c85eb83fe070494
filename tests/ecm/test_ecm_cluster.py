"""ECM on a Dask cluster: the same bits as on threads, and a lost worker costs an iteration."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
from dask_cluster import workers

from evdist import ECM, FocalSets
from evdist.ecm import blocks as ecm_blocks
from evdist.ecm.blocks import ClusterRows, LocalRows
from evdist.ecm.solver import ECMSolver, Model
from evdist.engine.loop import minimise

N = 30_000


@pytest.fixture(scope="module")
def X() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 3)) + 5.0 * rng.integers(0, 2, (N, 3))


@pytest.mark.process
@pytest.mark.parametrize("options", [{}, {"metric": "adaptive"}, {"focal_sets": "select"}])
def test_the_same_bits_as_on_threads(X, two_workers, options):
    model = ECM(6, random_state=0, tol=1e-4, **options)
    weight = np.linspace(0.5, 2.0, N)
    here = model.fit(X, sample_weight=weight)
    mass, history = here.credal_partition_.mass, here.history_
    there = ECM(6, random_state=0, tol=1e-4, **options)
    there.fit(X, sample_weight=weight, client=two_workers)
    np.testing.assert_array_equal(there.credal_partition_.mass, mass)
    assert there.history_ == history


@pytest.mark.process
def test_a_lost_worker_costs_an_iteration(X, tmp_path):
    model = Model(FocalSets.pairs(4), X[:4])
    expected = minimise(ECMSolver(LocalRows(X), model, 0.0), 6)
    killed = []

    def kill_one(news) -> None:
        if news.sweep == 2:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    with workers(2, tmp_path) as client:
        rows = ClusterRows(X, None, client)
        found = minimise(ECMSolver(rows, model, 0.0), 6, report=kill_one)
        mass = rows.masses(found.value.model)
    assert killed
    assert found.history == expected.history
    np.testing.assert_array_equal(mass, LocalRows(X).masses(expected.value.model))


class SmallClient:
    """What ECM asks of a client, in this process; counts what it is asked."""

    def __init__(self, threads: int):
        self.threads, self.tasks, self.sent = threads, 0, 0

    status = "running"

    def scheduler_info(self, n_workers: int) -> dict:
        worker = {"nthreads": self.threads, "status": "running", "last_seen": 0.0}
        return {"workers": {"here": worker}}

    def scatter(self, parts, hash):
        self.sent += 1
        return parts

    def map(self, task, parts, *, model, pure):
        self.tasks += len(parts)
        return [task(part, model=model) for part in parts]

    def gather(self, jobs):
        return jobs


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_an_iteration_is_one_task_per_part_and_how_many_parts_changes_no_bit(
    X, threads, monkeypatch
):
    monkeypatch.setattr(ecm_blocks, "smallest_worker", lambda client: None)
    client = SmallClient(threads)
    rows = ClusterRows(X, None, client)
    model = Model(FocalSets.simple(4), X[:4])
    fit = minimise(ECMSolver(rows, model, 0.0), 3)
    parts = min(2 * threads, -(-N // ecm_blocks.BLOCK))
    assert client.sent == 1
    assert client.tasks == 4 * parts  # three iterations and the objective before them
    assert fit.history == minimise(ECMSolver(LocalRows(X, None, 2), model, 0.0), 3).history
