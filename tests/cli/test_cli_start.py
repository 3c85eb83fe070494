"""What the command line loads before it works: help, Tab and a wrong option wait for nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

#: What takes long to load. A command that works loads what it needs.
HEAVY = {"numpy", "scipy", "sklearn", "numba", "pandas", "pyarrow", "matplotlib", "zarr", "dask"}
HEAVY |= {"distributed", "fsspec", "torch", "prefect", "yaml", "jinja2"}
#: Measured 435 with typer 0.29, which loads pydantic for the types of options; 2,435 when every
#: command imported what it calls.
MOST_MODULES = 650

CODE = """
import json, sys
sys.argv = ["evdist", *json.loads(sys.argv[1])]
from evdist.service.cli import main
try:
    main()
except SystemExit as end:
    code = end.code
print("\\n" + json.dumps([code, sorted(sys.modules)]))
"""


def started(*words: str, root: Path, **environment: str) -> tuple[int, set[str], str]:
    """Exit code, loaded modules and output of a command in a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", CODE, json.dumps(words)],
        capture_output=True, text=True, cwd=root, check=True, env={**os.environ, **environment},
    )  # fmt: skip
    output, _, last = done.stdout.rstrip().rpartition("\n")
    code, modules = json.loads(last)
    return code, set(modules), output


@pytest.mark.parametrize(
    ("words", "code"),
    [(["--help"], 0), (["cluster", "--help"], 0), (["--version"], 0), (["cluster", "--no"], 2)],
    ids=["help", "help of a command", "version", "wrong option"],
)
def test_help_and_wrong_options_load_the_options_alone(words, code, root):
    found, modules, _ = started(*words, root=root)
    assert found == code
    assert not HEAVY & {name.partition(".")[0] for name in modules}
    assert len(modules) < MOST_MODULES


def test_tab_completes_algorithms_without_loading_them(root):
    _, modules, output = started(
        root=root,
        _EVDIST_COMPLETE="complete_bash",
        COMP_WORDS="evdist cluster --algorithm e",
        COMP_CWORD="3",
    )
    assert {"evclus", "ecm", "ecmdd", "eknnclus"} <= set(output.split())
    assert "bootclus" not in output.split()
    assert not HEAVY & {name.partition(".")[0] for name in modules}


def test_flags_show_no_type(root):
    for words in (["cluster"], [], ["jobs"], ["jobs", "rm"]):
        assert "<bool>" not in started(*words, "--help", root=root)[2]
