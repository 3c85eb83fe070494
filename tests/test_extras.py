"""What an extra brings is asked for by name where it is missing, and by nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evdist.registry import EXTRAS

pytestmark = pytest.mark.process


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("torch", "import evdist; evdist.NNEVCLUS"),
        ("prefect", "import evdist; evdist.Client('/tmp/x', 'http://localhost:1/api')"),
        ("dask_kubernetes", "from evdist.registry import load; load('dask_kubernetes')"),
        ("s3fs", "from evdist.stores.paths import exists; exists('s3://bucket/x')"),
    ],
)
def test_the_error_names_the_extra(package: str, code: str, root: Path) -> None:
    script = f"import sys; sys.modules[{package!r}] = None\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False
    )
    last = done.stderr.rstrip().splitlines()[-1]
    assert last.startswith(
        f"ImportError: This needs {package}, which is not installed: pip install"
    )
    assert f"'evdist[{EXTRAS[package]}]'" in last
    assert ("without CUDA" in last) == (package == "torch")
