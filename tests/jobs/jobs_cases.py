"""Small jobs that the tests share, and ways to stop them."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import programs
from sklearn.datasets import make_blobs

from evdist import EVCLUS
from evdist.engine.progress import Progress
from evdist.service.jobs import JobResult, run

#: Some twenty sweeps on three blobs: long enough to be stopped in the middle.
PARAMETERS: dict[str, Any] = {
    "n_clusters": 3,
    "n_dissimilarities": 20,
    "d0": 5.0,
    "init": "random",
    "random_state": 3,
}


class KilledError(Exception):
    """Stands for whatever ends a process."""


def blobs(n: int = 200) -> np.ndarray:
    return make_blobs(n, centers=3, random_state=1)[0]


def data_file(folder: Path, X: np.ndarray | None = None, name: str = "x.npy") -> str:
    np.save(folder / name, blobs() if X is None else X)
    return str(folder / name)


def config(folder: Path, name: str = "job", **more: Any) -> dict[str, Any]:
    """A small job on x.npy of `folder`."""
    values: dict[str, Any] = {
        "folder": str(folder / name),
        "data": {"url": str(folder / "x.npy")},
        "parameters": PARAMETERS,
        "cluster": {"threads": 1},
    }
    return {**values, **more}


def fitted(X: np.ndarray | None = None, **more: Any) -> EVCLUS:
    """The same fit without any job."""
    return EVCLUS(**{**PARAMETERS, **more}, n_jobs=1).fit(blobs() if X is None else X)


def quick(config: Any, **options: Any) -> JobResult:
    """The job without its report, which takes longer than all the rest."""
    return run(config, through="summarise", **options)


def stages(result: JobResult | Path | str) -> dict[str, Any]:
    """What the manifest says of the finished stages."""
    url = result.folder.url if isinstance(result, JobResult) else str(result)
    return json.loads((Path(url) / "manifest.json").read_text())["stages"]


def state(folder: Path | str) -> str:
    return json.loads((Path(folder) / "manifest.json").read_text())["state"]


class Stop:
    """A listener that raises at the first news of a stage, at its `count`-th piece."""

    def __init__(self, stage: str, count: int = 1, error: type[BaseException] = KilledError):
        self.stage, self.left, self.error = stage, count, error
        self.heard: list[str] = []

    def __call__(self, news: Progress) -> None:
        self.heard.append(news.stage)
        if news.stage == self.stage:
            self.left -= 1
            if self.left == 0:
                raise self.error("stopped")


PROGRAM = """
import json, os, signal, sys, threading
from evdist.service.jobs import run
config, stage, count = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
seen = 0
def listen(news):
    global seen
    seen += news.stage == stage
    if seen == count:
        os.kill(os.getpid(), signal.SIGKILL)
run(config, listen=[listen], through="summarise")
"""


def run_and_kill(config: dict[str, Any], stage: str, count: int = 1) -> None:
    """Run the job in a process of its own, which is killed at the `count`-th news of a stage."""
    ended = programs.run(["-c", PROGRAM, json.dumps(config), stage, count])
    assert ended.returncode == -signal.SIGKILL, ended.stderr
