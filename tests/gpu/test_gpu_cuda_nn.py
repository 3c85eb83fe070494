"""The training of NN-EVCLUS on a GPU; like test_gpu_cuda, for a bare machine."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest
import torch
from gpu.gpu_cases import blobs

from evdist.belief import FocalSets
from evdist.nnevclus.loss import LossTerms, Supervision
from evdist.nnevclus.network import Network, layers, weights_of
from evdist.nnevclus.shards import Piece, Products, Shard
from evdist.nnevclus.training import Schedule, Trainer, TrainingTask, TrainState

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GPU, CPU = torch.device("cuda"), torch.device("cpu")
SETS = FocalSets.simple(4)


def trainer(device: torch.device, *, gate: bool = True, optimizer: str = "rmsprop") -> Trainer:
    """Four blobs, a gate, some links and labels."""
    X, y = blobs(2003, 4)
    x = (X - X.mean(0)) / X.std()
    fx = np.cos(x[:, 0]) if gate else None
    network = Network(layers((x.shape[1], 20)), 20, len(SETS), gate)
    network.draw(np.random.default_rng(0), x)
    links = np.random.default_rng(1).integers(0, len(x), (40, 2))
    same = y[links[:, 0]] == y[links[:, 1]]

    def inputs(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        return x[rows], None if fx is None else fx[rows]

    known = Supervision.of(inputs, links[same], links[~same], np.arange(20), y[:20])
    schedule = Schedule(optimizer, 0.01, 200, 0.1, 1e-3, 5, 30, 0)
    task = TrainingTask(network, LossTerms(SETS, 0.1, 0.1, 1e-3, known), schedule, len(x))
    return Trainer(task, [Shard(0, [Piece(x, fx, Products(X, "root", 8.0))])], device)


@pytest.mark.parametrize("optimizer", ["rmsprop", "adam"])
def test_the_loss_curve_is_that_of_the_cpu(optimizer):
    curves, ends = [], []
    for device in (CPU, GPU):
        mine = trainer(device, optimizer=optimizer)
        state = mine.train(TrainState(weights_of(mine.network)), 12)
        curves.append(state.history)
        ends.append(mine.evaluate(held=False))
    np.testing.assert_allclose(curves[1], curves[0], rtol=0.01)
    assert ends[1] == pytest.approx(ends[0], rel=0.01)
    assert ends[1] < 0.5 * curves[1][0]


def test_a_training_has_the_same_bits_every_time_and_when_it_goes_on():
    whole, again = trainer(GPU), trainer(GPU)
    start = TrainState(weights_of(whole.network))
    first = whole.train(start, 6)
    second = trainer(GPU).train(again.train(start, 3), 3)
    assert first.history == second.history
    for name, value in first.weights.items():
        np.testing.assert_array_equal(value, second.weights[name])


@pytest.mark.parametrize("gate", [False, True])
def test_no_step_waits_for_the_host(gate):
    mine = trainer(GPU, gate=gate)
    mine.load(TrainState(weights_of(mine.network)))
    mine.epoch(0)
    batches = list(mine._shards[0].batches(1, 5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls this mode a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches:
            mine._step(batch)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("end", ["root", "none", "half"])
def test_dissimilarities_are_those_of_the_cpu(end):
    X, _ = blobs(500, 4)
    rows = torch.arange(0, 500, 3)
    here, there = (Products(X, end, 8.0).on(d)(rows.to(d)).cpu() for d in (CPU, GPU))
    torch.testing.assert_close(there, here, rtol=1e-4, atol=1e-4)


def test_the_network_is_that_of_the_cpu():
    X, _ = blobs(500, 4)
    network = Network(layers((3, 20, 20)), 20, len(SETS), True)
    network.draw(np.random.default_rng(0), X)
    x, fx = torch.as_tensor(X), torch.as_tensor(X[:, 0])
    there = copy.deepcopy(network).to(GPU)(x.to(GPU), fx.to(GPU)).cpu()
    torch.testing.assert_close(there, network(x, fx), rtol=1e-4, atol=1e-5)
