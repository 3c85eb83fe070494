"""An algorithm is added in three places: its package, a line of the registry, a page of docs/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evdist.registry import ALGORITHMS

ESTIMATOR = '''
"""Nearest of the first objects: a toy."""

from typing import Any

import numpy as np

from evdist.belief import FocalSets
from evdist.estimators.base import CredalClusterer
from evdist.partition import CredalPartition


class Toy(CredalClusterer):
    """Every object is in the cluster of the nearest of the first `n_clusters` objects."""

    def __init__(self, n_clusters: int = 2, *, doubt: float = 0.1, max_iter: int = 1, callbacks=()):
        self.n_clusters, self.doubt = n_clusters, doubt
        self.max_iter, self.callbacks = max_iter, callbacks

    def fit(self, X: Any, y: Any = None) -> "Toy":
        X = self._table(X)
        near = ((X[:, None] - X[: self.n_clusters]) ** 2).sum(axis=2).argmin(axis=1)
        focal = FocalSets.simple(self.n_clusters)
        mass = np.zeros((len(X), len(focal)), np.float32)
        mass[np.arange(len(X)), 1 + near] = 1 - self.doubt
        mass[:, -1] = self.doubt
        self._finish(CredalPartition(mass, focal), [0.0, 0.0], True)
        return self
'''
PARAMETERS = """
from evdist.estimators.parameters import Parameters


class ToyParameters(Parameters):
    n_clusters: int = 2
    doubt: float = 0.1
    max_iter: int = 1
"""
LINE = '    Algorithm("Toy", "evdist.toy.estimator", "nearest of the first objects", "toy.md"),\n'
USE = """
import sys
from pathlib import Path

import layers
import numpy as np
from evdist import JobConfig, Toy, run
from evdist.service.cli import app
from typer.testing import CliRunner

folder = sys.argv[1]
data, given = {"url": f"{folder}/x.npy"}, {"n_clusters": 2, "doubt": 0.2}
np.save(data["url"], np.array([[0.0, 0], [9, 9], [1, 0], [8, 9]]))
job = run(JobConfig.of(folder=f"{folder}/job", data=data, algorithm="toy", parameters=given))
assert job.model().labels_.tolist() == Toy().fit(np.load(data["url"])).labels_.tolist()
said = CliRunner().invoke(app, ["algorithms"]).output
assert "nearest of the first objects" in said
words = ["cluster", data["url"], "-c", "2", "-a", "toy", "-q", "-o", f"{folder}/by-command"]
assert CliRunner().invoke(app, words).exit_code == 0
root = Path(folder)
print(*layers.undeclared(root), *layers.steps_up(list(layers.imports(root, {}))))
"""


@pytest.mark.process
def test_a_toy_algorithm_is_three_additions(root: Path, tmp_path: Path) -> None:
    """A tree that differs from this one by a package, a line and a page."""
    for folder in ("evdist", "docs"):
        (tmp_path / folder).mkdir()
        for path in (root / folder).iterdir():
            if path.name not in ("registry.py", "__pycache__"):
                (tmp_path / folder / path.name).symlink_to(path)
    package = tmp_path / "evdist" / "toy"
    package.mkdir()
    for name, text in (("__init__", ""), ("estimator", ESTIMATOR), ("parameters", PARAMETERS)):
        (package / f"{name}.py").write_text(text)
    table = (root / "evdist" / "registry.py").read_text()
    changed = table.replace("_TABLE = (\n", f"_TABLE = (\n{LINE}")
    assert len(changed.splitlines()) == len(table.splitlines()) + 1
    (tmp_path / "evdist" / "registry.py").write_text(changed)
    (tmp_path / "docs" / "toy.md").write_text("# `Toy`: nearest of the first objects\n")

    (tmp_path / "use.py").write_text(USE)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "use.py"), str(tmp_path)],
        env={"PYTHONPATH": f"{tmp_path}:{root / 'tests'}", "PATH": "", "HOME": str(tmp_path)},
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(ALGORITHMS))
def test_every_algorithm_has_its_page(name: str, root: Path) -> None:
    entry = ALGORITHMS[name]
    page = root / "docs" / entry.page
    assert f"`{entry.estimator}`" in page.read_text() or f"{entry.estimator}(" in page.read_text()
