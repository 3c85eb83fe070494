"""Tiles and several processes on a GPU: the same bits."""

from __future__ import annotations

import os
import signal

import distributed
import numpy as np
import pytest
import torch
from gpu.gpu_cases import blobs

from evdist import EVCLUS
from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource
from evdist.engine.cluster import ClusterExecutor
from evdist.engine.progress import Progress
from evdist.evclus.problem import Plan, Problem
from evdist.evclus.rows import memory
from evdist.evclus.rows.arrays import Graph
from evdist.evclus.rows.device import DeviceRows
from evdist.evclus.rows.device_pairs import by_colour, keep_pieces
from evdist.evclus.rows.device_state import DeviceState
from evdist.evclus.rows.memory import Choice
from evdist.evclus.sampling import SourcePairs
from evdist.evclus.sites import _SharedProblem
from evdist.kernels.graph import PairGraph

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU = torch.device("cuda", 0)
N = 60_003
FAMILIES = {"registers": FocalSets.simple(6), "own memory": FocalSets.pairs(6),
            "torch": FocalSets.pairs(16)}  # fmt: skip


def problem_of(sets: FocalSets) -> tuple[Problem, np.ndarray]:
    rng = np.random.default_rng(0)
    source, graph = AttributeSource.of(blobs(N, 6)[0], "euclidean"), PairGraph.draw(N, 30, rng)
    pairs = SourcePairs(source, graph, rng.permutation(N).astype(np.uint32), 8.0)
    weight = rng.uniform(0.5, 2, N).astype(np.float32)
    mass = rng.dirichlet(np.ones(len(sets)), N).astype(np.float32)
    return Problem(sets, pairs, Plan.of(graph.bounds), weight), mass


def state_of(problem: Problem, mass: np.ndarray, where: str, own) -> DeviceState:
    pairs = problem.pairs
    assert isinstance(pairs, SourcePairs)
    graph = Graph.of(pairs.graph, GPU)
    mine = by_colour(problem.plan, graph.bounds, own)
    kept = keep_pieces(pairs, graph, mine, GPU, Choice(where, 5000))
    return DeviceState(problem, mass, own, graph, kept)


def swept(states: list[DeviceState], steps: int, sweeps: int = 2) -> tuple[np.ndarray, list]:
    told = []
    for _ in range(sweeps):
        for step in range(steps):
            for s in states:
                s.update([step], 0.0)
            found = [s.moved(step) for s in states]
            for s in states:
                for other, (rows, mass, _) in zip(states, found, strict=True):
                    if other is not s:
                        s.patch(rows, mass)
        told.append(sorted(item for s in states for item in s.changes().items()))
        told.append(sorted(item for s in states for item in s.losses().items()))
    return states[0].masses(0, N), told


@pytest.mark.parametrize("name", FAMILIES)
def test_tiles_and_processes_change_no_bit(name):
    problem, mass = problem_of(FAMILIES[name])
    steps, every = len(problem.plan.steps), range(len(problem.plan.pieces))
    right, told = swept([state_of(problem, mass, "device", every)], steps)
    for where in ("host", "recomputed"):
        again, same = swept([state_of(problem, mass, where, every)], steps)
        np.testing.assert_array_equal(again, right)
        assert same == told
    parts: list[list[int]] = [[], [], []]
    for step in problem.plan.steps:
        for part, run in zip(parts, np.array_split([q for q, _ in step], 3), strict=True):
            part += run.tolist()
    places = ("device", "host", "recomputed")
    states = [state_of(problem, mass, w, p) for w, p in zip(places, parts, strict=True)]
    again, same = swept(states, steps)
    np.testing.assert_array_equal(again, right)
    assert same == told


def test_a_fit_within_a_limit_has_the_same_bits(monkeypatch):
    X, _ = blobs(300_001, 5)
    given = {"n_dissimilarities": 50, "d0": 8.0, "tol": 1e-2, "random_state": 0, "device": "cuda"}
    whole = EVCLUS(5, metric="euclidean", **given).fit(X)
    limit = 300_001 * (3 * 4 * 7 + 24 + 12) + 6_000_000
    for narrow, kept in ((64, "computed in every sweep"), (0, "in host memory")):
        monkeypatch.setattr(memory, "NARROW", narrow)
        seen: list[Progress] = []
        other = EVCLUS(
            5, metric="euclidean", memory_limit=limit, callbacks=[seen.append], **given
        ).fit(X)
        assert seen[0].stage == f"dissimilarities {kept}"
        np.testing.assert_array_equal(other.credal_partition_.mass, whole.credal_partition_.mass)
        assert other.history_ == whole.history_


def test_two_workers_have_the_bits_of_one_process(tmp_path):
    problem, mass = problem_of(FAMILIES["registers"])
    every = range(len(problem.plan.pieces))
    alone = state_of(problem, mass, "device", every)
    for _ in range(6):
        alone.update(range(len(problem.plan.steps)), 0.0)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        there = ClusterExecutor(client, _SharedProblem(problem, DeviceRows("cuda")), mass)
        for sweep in range(6):
            if sweep == 3:
                os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
            there.sweep()
        np.testing.assert_array_equal(there.masses(), alone.masses(0, N))
        there.close()
