"""What an import loads: a name of evdist does not wait for what its first call may never need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evdist.deferred import stand_ins

#: Loaded by those alone who use them.
LATE = {"pandas", "pyarrow", "zarr", "dask", "distributed", "matplotlib", "torch", "jinja2"}
#: Measured 1,240; 2,230 when scikit-learn and our modules loaded all that they name.
MOST_MODULES = 1_400
#: Of the commands `cluster` and `predict` on a small table. Measured 1,890; 2,180 before.
MOST_OF_A_JOB = 2_050
#: What such a job does not need: the fit is done in this process, the page draws for itself, and
#: compiled code that is there is not compiled again.
NOT_FOR_A_JOB = {
    *("dask", "distributed", "matplotlib", "torch", "numpy.f2py", "numpy.testing"),
    *("scipy.stats", "scipy.optimize", "scipy.spatial", "scipy.special"),
    *("sklearn.metrics", "sklearn.cluster", "sklearn.neighbors", "numba.np.linalg"),
}


def loaded_by(code: str, root: Path) -> tuple[set[str], list[str]]:
    """Modules in a new interpreter that has run the code, and forwarders left among them."""
    code += (
        "\nimport json, sys\nleft = [name for name, one in sys.modules.items() "
        "if type(one).__name__ == '_StandIn']\n"
        "print(json.dumps([sorted(sys.modules), left]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    modules, left = json.loads(done.stdout)
    return set(modules), left


@pytest.mark.process
def test_an_estimator_is_imported_without_what_only_some_calls_need(root: Path) -> None:
    modules, left = loaded_by("from evdist import EVCLUS", root)
    assert not LATE & {name.partition(".")[0] for name in modules}
    assert not {"scipy.stats", "scipy.optimize", "sklearn.metrics", "sklearn.cluster"} & modules
    assert len(modules) < MOST_MODULES
    assert left == []


@pytest.mark.process
def test_a_small_job_and_a_prediction_load_what_they_use(root: Path, tmp_path: Path) -> None:
    rows = "".join(
        f"c{i},{i % 3 * 20 + i % 7},{i % 5},{'Rome' if i % 2 else 'Oslo'}\n" for i in range(60)
    )
    table = tmp_path / "table.csv"
    table.write_text("id,age,spent,city\n" + rows)
    words = ["cluster", str(table), "-c", "3", "--id", "id", "--encode", "-q"]
    job = ["--out", str(tmp_path / "job")]
    loaded_by(run_command([*words, *job]), root)  # compiles what is not there yet
    for command in (
        [*words, "--out", str(tmp_path / "again")],
        ["predict", str(tmp_path / "job"), str(table), "-q", "--out", str(tmp_path / "new")],
    ):
        modules, left = loaded_by(run_command(command), root)
        assert NOT_FOR_A_JOB & modules == set()
        assert len(modules) < MOST_OF_A_JOB
        assert left == []


def run_command(words: list[str]) -> str:
    """Code that runs a command as `evdist` does, silently."""
    return (
        "import contextlib, io\nfrom evdist.service.cli.app import app\n"
        f"with contextlib.redirect_stdout(io.StringIO()):\n    app({words}, standalone_mode=False)"
    )


@pytest.mark.process
def test_what_waited_is_the_module_itself_once_it_is_used(root: Path) -> None:
    code = (
        "from evdist import EVCLUS\nimport scipy.stats, pandas, sklearn.neighbors\n"
        "from sklearn.utils import fixes\n"
        "assert fixes.scipy.stats.mode is scipy.stats.mode\n"
        "assert fixes.pd.DataFrame is pandas.DataFrame\n"
        "from evdist.estimators import number\n"
        "assert number.neighbors.NearestNeighbors is sklearn.neighbors.NearestNeighbors\n"
        "import numpy\nassert 'testing' not in vars(numpy)\n"
        "from scipy._lib.array_api_compat import numpy as copied\n"
        "assert copied.testing.assert_equal is numpy.testing.assert_equal\n"
        "import numpy.f2py\nassert numpy.f2py is __import__('sys').modules['numpy.f2py']"
    )
    modules, left = loaded_by(code, root)
    assert {"scipy.stats", "pandas"} <= modules
    assert left == []


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that is loaded by nobody yet, and one that imports it at its top."""
    (tmp_path / "toy_late.py").write_text("answer = 42\n")
    (tmp_path / "toy_user.py").write_text(
        "import toy_late\ndef ask():\n    return toy_late.answer\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("toy_late", "toy_user"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "toy_late"


def test_a_module_waits_until_something_of_it_is_used(toy: str) -> None:
    with stand_ins([toy]):
        import toy_user
    assert toy not in sys.modules
    assert toy_user.ask() == 42
    assert sys.modules[toy].answer == 42


def test_a_module_that_is_looked_at_meanwhile_is_loaded_at_once(toy: str) -> None:
    with stand_ins([toy]):
        from toy_late import answer
    assert answer == 42
    assert not type(sys.modules[toy]).__name__.startswith("_")


def test_a_module_that_is_there_stays_as_it_is() -> None:
    with stand_ins(["json"]):
        assert sys.modules["json"] is json


def test_a_name_that_the_module_lacks_is_an_attribute_error(toy: str) -> None:
    with stand_ins([toy]):
        import toy_user
    with pytest.raises(AttributeError, match="has no attribute 'question'"):
        _ = toy_user.toy_late.question
