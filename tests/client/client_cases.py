"""A client of an empty storage, and a job that takes long enough to be disturbed."""

from __future__ import annotations

import os
import signal
import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.service.client import Job
from evdist.service.jobs import JobState

#: A second or three of sweeps, whatever the data: it never converges.
SLOW: dict[str, Any] = {
    "n_clusters": 3,
    "n_dissimilarities": 150,
    "d0": 5.0,
    "init": "random",
    "tol": 0.0,
    "max_iter": 400,
}
QUICK: dict[str, Any] = {"n_clusters": 3, "n_dissimilarities": 20, "d0": 5.0, "init": "random"}


def blobs(n: int) -> np.ndarray:
    return make_blobs(n, centers=3, random_state=1)[0]


def masses(job: Job) -> np.ndarray:
    return np.asarray(job.result().mass)


def alone(X: np.ndarray, parameters: dict[str, Any], seed: int = 0) -> np.ndarray:
    """The same fit without any client."""
    model = EVCLUS(**parameters, random_state=seed, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a slow one does not converge, on purpose
        model.fit(X)
    return np.asarray(model.credal_partition_.mass)


def until(what: Any, seconds: float = 100.0) -> None:
    late = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < late, "nothing happened"
        time.sleep(0.05)


def sweeping(job: Job) -> bool:
    """Whether the job is in the middle of its sweeps."""
    news = job.progress
    return news is not None and news.stage == "fit" and news.sweep > 4


def kill(job: Job) -> None:
    """kill -9 of the process that runs a job."""
    news = job.folder.progress()
    assert news is not None and job.status is JobState.RUNNING
    os.kill(news["pid"], signal.SIGKILL)
