"""The training of NN-EVCLUS runs on a machine that has NumPy and torch alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

BARE = """
import sys
for name in ("numba", "llvmlite", "dask", "distributed", "zarr", "sklearn", "scipy", "pandas",
             "triton", "matplotlib", "psutil", "rich"):
    sys.modules[name] = None
"""


@pytest.mark.process
def test_the_training_of_nnevclus():
    code = f"""
{BARE}
import numpy as np
import torch
from evdist.belief import FocalSets
from evdist.nnevclus.loss import LossTerms
from evdist.nnevclus.network import Network, layers, weights_of
from evdist.nnevclus.shards import Piece, Products, Shard
from evdist.nnevclus.training import Schedule, Trainer, TrainingTask, TrainState

cpu = torch.device("cpu")
x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
x[:20] += 9
network = Network(layers((2, 5)), 5, 4, False)
schedule = Schedule("rmsprop", 0.01, 20, 0.0, 0.0, 5, 9, 0)
task = TrainingTask(network, LossTerms(FocalSets.simple(2)), schedule, 40)
trainer = Trainer(task, [Shard(0, [Piece(x, None, Products(x, "root", 5.0))])], cpu)
state = trainer.train(TrainState(weights_of(network)), 9)
assert state.history[-1] < state.history[0]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
