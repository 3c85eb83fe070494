"""Compiled functions are kept on disk until a file of the kernels changes, whichever it is."""

from __future__ import annotations

import ast
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from evdist.kernels.jit import KERNELS

#: Rounds 0.3 to the grid of another file, and says whether that was compiled before, and how often
#: numba compiled it now.
ROUND = """
import numpy as np
from evdist.evclus.rows.sparse_loss import put_on_grid
from evdist.kernels.compiled import is_compiled
from evdist.kernels.slots import split
from evdist.kernels.sparse_rows import encode, ids_of

T = split(encode(np.array([[0.3, 0.7, 0.0]], np.float32)))
known = is_compiled(put_on_grid)
put_on_grid(T, ids_of(T), 0, 1)
print(float(T[0, 0]), int(known), sum(put_on_grid.stats.cache_misses.values()))
"""


def module_of(path: Path, root: Path) -> str:
    return ".".join(path.relative_to(root.parent).with_suffix("").parts)


def imported(path: Path) -> set[str]:
    """The modules of evdist that a file imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evdist"):
            found.add(str(node.module))
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return found


def test_the_files_of_the_kernels_are_all_that_is_compiled_and_what_it_takes(root):
    package = root / "evdist"
    modules = {module_of(path, package): path for path in package.rglob("*.py")}
    kernels = {module_of(path, package) for some in KERNELS for path in package.glob(some)}
    compiled = {
        name for name, path in modules.items()
        if "evdist.kernels.jit" in imported(path) or "numba.extending" in path.read_text()
    }  # fmt: skip
    assert compiled <= kernels
    taken = {name for kernel in compiled for name in imported(modules[kernel])} & set(modules)
    assert taken <= kernels | {"evdist.kernels"}
    mine = package / "kernels" / "jit.py"
    for name, path in modules.items():  # nothing is compiled past this cache
        assert path == mine or "numba.njit" not in path.read_text(), name


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    shutil.copytree(root / "evdist", tmp_path / "evdist", ignore=shutil.ignore_patterns("__pyc*"))
    return tmp_path


def rounded(folder: Path) -> tuple[float, bool, int]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", ROUND], cwd=folder, capture_output=True, text=True,
        env={**environment, "PYTHONPATH": str(folder)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    value, known, compiled = done.stdout.split()
    return float(value), known == "1", int(compiled)


@pytest.mark.process
def test_an_update_of_what_a_function_calls_is_seen(copied):
    fine = round(0.3 * 2**24) / 2**24
    assert rounded(copied) == (fine, False, 1)
    assert rounded(copied) == (fine, True, 0)

    grid = copied / "evdist" / "kernels" / "grid.py"
    text = grid.read_text()
    assert "1 << 24" in text
    grid.write_text(text.replace("1 << 24", "1 << 4"))
    coarse = 5 / 16
    assert rounded(copied) == (coarse, False, 1)

    # Indexes that name a class or a module which an update has moved away, or that were cut short.
    indexes = list((copied / "evdist").rglob("*.nbi"))
    assert indexes
    for gone in (b"cevdist.kernels.grid\nGone\n.", b"cevdist.kernels.gone\nGone\n.", b""):
        for index in indexes:
            index.write_bytes(pickle.dumps(numba.__version__) + gone)
        assert rounded(copied) == (coarse, False, 1)
        assert rounded(copied) == (coarse, True, 0)
