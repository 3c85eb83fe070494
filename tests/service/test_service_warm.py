"""`evdist warm` leaves nothing to compile for a fit in another process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evdist.service.cli.app import app
from evdist.service.warm import COMPILED, USUAL, warm

#: Fits the iris as README does, or plain clusters where they are many, and prints what numba had
#: to compile for it.
FIT = """
import sys
from numba.core import event
from sklearn.datasets import load_iris, make_blobs
import evdist

class Heard(event.Listener):
    def __init__(self): self.names = []
    def on_start(self, news): self.names.append(news.data["dispatcher"].py_func.__name__)
    def on_end(self, news): pass

heard = Heard()
event.register("numba:compile", heard)
name, c = sys.argv[1], int(sys.argv[2])
X = load_iris().data if c == 3 else make_blobs(2_000, 4, centers=c, random_state=0)[0]
getattr(evdist, name)(n_clusters=c, random_state=0).fit(X).predict(X[:2])
print(heard.names)
"""


def python(*words: str, root: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=root, capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )  # fmt: skip
    return done.stdout


@pytest.mark.process
@pytest.mark.parametrize(("name", "clusters"), [("EVCLUS", 3), ("ECM", 3), ("EVCLUS", 40)])
def test_a_fit_after_it_compiles_nothing(name: str, clusters: int, root: Path) -> None:
    warm(name.lower(), many=clusters > 3)
    assert python("-c", FIT, name, str(clusters), root=root) == "[]\n"


def test_the_command_prepares_what_most_people_call_first() -> None:
    result = CliRunner().invoke(app, ["warm"])
    assert result.exit_code == 0, result.output
    for name in USUAL:
        assert f"{name}: ready\n" in result.output
    assert CliRunner().invoke(app, ["warm", "recm"]).exit_code == 1


def test_an_algorithm_that_needs_no_preparation_is_told() -> None:
    with pytest.raises(ValueError, match=f"compiles {', '.join(COMPILED)}; got 'recm'"):
        warm("recm")
