"""The package as installed: a light import, lazy public names, its declared dependencies."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import tokenize
import tomllib
from importlib import metadata
from importlib.resources import files
from pathlib import Path

import layers
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import evdist
from evdist import registry
from evdist.registry import PUBLIC

HEAVY = {
    "numpy",
    "scipy",
    "sklearn",
    "numba",
    "dask",
    "distributed",
    "zarr",
    "pandas",
    "matplotlib",
    "torch",
    "prefect",
}

#: Where the name on the package index is not the name that is imported.
IMPORT_NAMES = {
    "scikit-learn": "sklearn",
    "dask-kubernetes": "dask_kubernetes",
    "pyyaml": "yaml",
    "prometheus-client": "prometheus_client",
}


def modules_after(code: str, root: Path) -> set[str]:
    """Top-level modules loaded in a new interpreter that has run ``code``."""
    script = f"{code}\nimport json, sys\nsys.stdout.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=True
    )
    return {name.split(".")[0] for name in json.loads(done.stdout)}


@pytest.mark.process
def test_importing_evdist_loads_no_heavy_package(root: Path) -> None:
    assert not HEAVY & modules_after("import evdist", root)


@pytest.mark.process
def test_what_only_unix_has_is_not_needed_to_fit(root: Path) -> None:
    code = "import sys; sys.modules['fcntl'] = None\nimport numpy as np, evdist\n"
    code += "evdist.ECM(2).fit(np.random.default_rng(0).normal(size=(20, 2)))"
    assert "sklearn" in modules_after(code, root)


@pytest.mark.process
def test_public_names_need_no_optional_package(root: Path) -> None:
    # A neural network needs torch; nobody else may ask for it.
    names = [name for name in PUBLIC if name != "NNEVCLUS"]
    code = f"import evdist\nfor name in {names}: getattr(evdist, name)"
    assert not {"torch", "prefect", "distributed"} & modules_after(code, root)


@pytest.mark.process
@pytest.mark.parametrize("module", ["sites", "partitions.owner"])
def test_workers_that_sweep_do_not_wait_for_scikit_learn(root: Path, module: str) -> None:
    """Each would import it for seconds, and workers are many."""
    seen = modules_after(f"import evdist.evclus.{module}", root)
    assert not {"sklearn", "pandas", "matplotlib", "torch"} & seen


@pytest.mark.process
@pytest.mark.parametrize("code", ["from evdist import Client", "import flows.cluster"])
def test_whoever_only_submits_or_schedules_does_not_wait_for_what_computes(
    root: Path, code: str
) -> None:
    assert not (HEAVY - {"numpy", "zarr", "prefect"}) & modules_after(code, root)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_each_public_name_can_be_had(name: str) -> None:
    home = importlib.import_module(PUBLIC[name])
    is_module = home.__name__ == f"evdist.{name}"
    assert getattr(evdist, name) is (home if is_module else getattr(home, name))
    assert name in dir(evdist)


def test_a_star_imports_every_public_name_that_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, object] = {}
    exec("from evdist import *", found)
    assert {"ECM", "EVCLUS", "plot"} <= found.keys() - {"__builtins__"} == set(registry.installed())
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    assert set(registry.installed()) == PUBLIC.keys() - {"NNEVCLUS"}  # torch is an extra


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'evdist' has no attribute 'EVCLUSS'"):
        _ = evdist.EVCLUSS


def test_type_checkers_see_the_names_that_exist_at_run_time(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "__file__", str(tmp_path / "registry.py"))
    registry.write_stub()
    written = (root / "evdist" / "__init__.pyi").read_text()
    assert (tmp_path / "__init__.pyi").read_text() == written, "Run `make format`."


def test_the_version_is_that_of_the_installed_package() -> None:
    assert metadata.version("evdist") == evdist.__version__


def test_the_package_says_that_it_is_typed() -> None:
    assert files("evdist").joinpath("py.typed").is_file()


@pytest.fixture(scope="module")
def requirements(root: Path) -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for: the base set under "", each extra under its name."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(text) for text in group] for extra, group in groups.items()}


def test_every_imported_package_is_a_declared_dependency(
    root: Path, requirements: dict[str, list[Requirement]]
) -> None:
    users = [req.name for extra, group in requirements.items() if extra != "dev" for req in group]
    known = {IMPORT_NAMES.get(name, name) for name in users} | {"evdist", "flows"}
    missing = [
        f"{imp.where}: {imp.target} is no dependency in pyproject.toml"
        for imp in layers.imports(root, PUBLIC)
        if imp.target.split(".")[0] not in known | sys.stdlib_module_names
    ]
    assert not missing


def test_constraints_pin_every_dependency_within_its_range(
    root: Path, requirements: dict[str, list[Requirement]]
) -> None:
    lines = (root / "constraints.txt").read_text().splitlines()
    pinned = (line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {canonicalize_name(name): version for name, version in pinned}
    wrong = [
        f"{req}: constraints.txt has {pins.get(canonicalize_name(req.name))}"
        for group in requirements.values()
        for req in group
        if pins.get(canonicalize_name(req.name), "nothing") not in req.specifier
    ]
    assert not wrong


#: Words of which a reader must ask who is meant; comments and docstrings name the caller instead.
VAGUE = re.compile(r"\b(whoever|nobody|somebody|whom)\b", re.IGNORECASE)


def vague_places(path: Path) -> list[int]:
    """Lines of comments and strings, docstrings among them, with a vague word."""
    with tokenize.open(path) as file:
        return [
            token.start[0] + token.string[: found.start()].count("\n")
            for token in tokenize.generate_tokens(file.readline)
            if token.type in (tokenize.COMMENT, tokenize.STRING)
            for found in VAGUE.finditer(token.string)
        ]


def test_comments_and_docstrings_name_the_caller(root: Path) -> None:
    places = [
        f"{path.relative_to(root)}:{line}"
        for _, path in layers.modules(root)
        for line in vague_places(path)
    ]
    assert not places


def test_vague_words_are_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""For\nwhoever calls."""\nnobody = 1  # Nobody\nsome = "body"\n')
    assert vague_places(path) == [2, 3]


def test_every_pattern_of_slow_files_matches_one(root: Path) -> None:
    """Else a file was renamed, and `make test-fast` runs it again."""
    from conftest import SLOW

    assert [pattern for pattern in SLOW if not list((root / "tests").glob(pattern))] == []
