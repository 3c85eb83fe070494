"""Tiles and shares on a GPU: the same bits. NumPy, torch and pytest; workers need Dask too."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest
import torch
from gpu.gpu_cases import blobs

from evdist.belief import FocalSets
from evdist.engine.cluster import ClusterExecutor
from evdist.engine.plan import Plan
from evdist.evclus.gpu import memory
from evdist.evclus.gpu.arrays import Graph
from evdist.evclus.gpu.data import CODES
from evdist.evclus.gpu.fit import fit_on_device
from evdist.evclus.gpu.pairs import RowPairs
from evdist.evclus.gpu.share import DeviceProblem, DeviceShare, Terms, by_colour, keep_pieces
from evdist.kernels.circulant import Circulant

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU = torch.device("cuda", 0)
N = 60_003
FAMILIES = {"registers": FocalSets.simple(6), "own memory": FocalSets.pairs(6),
            "torch": FocalSets.pairs(16)}  # fmt: skip


def problem_of(sets: FocalSets) -> tuple[DeviceProblem, np.ndarray]:
    rng = np.random.default_rng(0)
    X, _ = blobs(N, 6)
    graph = Circulant.draw(N, 30, rng)
    pairs = RowPairs(graph, X, rng.permutation(N), 3, CODES["euclidean"], 8.0)
    weight = rng.uniform(0.5, 2, N).astype(np.float32)
    terms = Terms(np.asarray(sets.C, np.float32)[None], Plan.of(graph.bounds), weight)
    return DeviceProblem(terms, pairs, "cuda"), rng.dirichlet(np.ones(len(sets)), N).astype(
        np.float32
    )


def share_of(problem: DeviceProblem, mass: np.ndarray, where: str, own) -> DeviceShare:
    graph = Graph.of(problem.pairs.layout, GPU)
    mine = by_colour(problem.plan, graph, own)
    kept = keep_pieces(problem.pairs, graph, mine, GPU, where, 5000)
    return DeviceShare(problem.terms, mass, own, graph, kept)


def swept(shares: list[DeviceShare], steps: int, sweeps: int = 2) -> tuple[np.ndarray, list]:
    told = []
    for _ in range(sweeps):
        for step in range(steps):
            found = [s.update(step, 0.0) for s in shares]
            for s in shares:
                for other, (rows, mass, _) in zip(shares, found, strict=True):
                    if other is not s:
                        s.patch(rows, mass)
        told.append(sorted(item for s in shares for item in s.changes().items()))
        told.append(sorted(item for s in shares for item in s.objective().items()))
    return shares[0].masses(0, N), told


@pytest.mark.parametrize("name", FAMILIES)
def test_tiles_and_shares_change_no_bit(name):
    problem, mass = problem_of(FAMILIES[name])
    steps, every = len(problem.plan.steps), range(len(problem.plan.pieces))
    right, told = swept([share_of(problem, mass, "device", every)], steps)
    for where in ("host", "recomputed"):
        again, same = swept([share_of(problem, mass, where, every)], steps)
        np.testing.assert_array_equal(again, right)
        assert same == told
    parts: list[list[int]] = [[], [], []]
    for step in problem.plan.steps:
        for part, run in zip(parts, np.array_split([q for q, _ in step], 3), strict=True):
            part += run.tolist()
    places = ("device", "host", "recomputed")
    shares = [share_of(problem, mass, w, p) for w, p in zip(places, parts, strict=True)]
    again, same = swept(shares, steps)
    np.testing.assert_array_equal(again, right)
    assert same == told


@pytest.mark.parametrize("half", [False, True])
def test_a_fit_within_a_limit_has_the_same_bits(half, monkeypatch):
    X, _ = blobs(300_001, 5)
    X = torch.as_tensor(X, device=GPU)
    given = {"n_dissimilarities": 50, "d0": 8.0, "half": half, "max_iter": 6}
    whole = fit_on_device(X, 5, **given)
    limit = 300_001 * (3 * 4 * 7 + 24 + 12) + 6_000_000
    again = fit_on_device(X, 5, memory_limit=limit, **given)
    monkeypatch.setattr(memory, "NARROW", 0)
    sent = fit_on_device(X, 5, memory_limit=limit, **given)
    assert [whole.kept, again.kept, sent.kept] == ["device", "recomputed", "host"]
    for other in (again, sent):
        assert torch.equal(other.mass, whole.mass)
        assert other.history == whole.history


def test_two_workers_have_the_bits_of_one_process(tmp_path):
    distributed = pytest.importorskip("distributed")
    problem, mass = problem_of(FAMILIES["registers"])
    every = range(len(problem.plan.pieces))
    alone = share_of(problem, mass, "device", every)
    for _ in range(6):
        for step in range(len(problem.plan.steps)):
            alone.advance(step)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        there = ClusterExecutor(client, problem, mass)
        for sweep in range(6):
            if sweep == 3:
                os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)
            there.sweep()
        np.testing.assert_array_equal(there.masses(), alone.masses(0, N))
        there.close()
