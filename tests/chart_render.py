"""Renders the Helm chart with Go's template engine (helm/render), once for all values of a session.

Without a Go toolchain and the two Go libraries (Debian: golang-go,
golang-github-masterminds-sprig-dev, golang-k8s-sigs-yaml-dev) nothing can be rendered, and the
tests that need it are skipped.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "helm" / "evdist"
VALUES = Path(__file__).parent / "helm" / "values"
NAMES = tuple(sorted(path.stem for path in VALUES.glob("*.yaml")))
RELEASE, NAMESPACE = "prod", "clustering"
#: Where Debian puts Go libraries.
LIBRARIES = Path("/usr/share/gocode")

Object = dict[str, Any]


@dataclass(frozen=True)
class Rendered:
    """A chart with its values merged: the objects by kind and name, and the notes."""

    values: Object
    objects: tuple[Object, ...]
    notes: str

    def __getitem__(self, key: tuple[str, str]) -> Object:
        kind, suffix = key
        found = [
            o for o in self.objects if o["kind"] == kind and o["metadata"]["name"].endswith(suffix)
        ]
        assert len(found) == 1, f"{len(found)} objects {kind} *{suffix}"
        return found[0]


@functools.cache
def renderer() -> Path:
    """The program, built once a session."""
    needed = [LIBRARIES / "src/github.com/Masterminds/sprig", LIBRARIES / "src/sigs.k8s.io/yaml"]
    if shutil.which("go") is None or not all(path.is_dir() for path in needed):
        pytest.skip("needs Go with the libraries sprig and sigs.k8s.io/yaml, which are absent")
    program = Path(tempfile.mkdtemp(prefix="evdist-render-")) / "render"
    settings = {
        "GO111MODULE": "off",
        "GOPATH": str(LIBRARIES),
        "CGO_ENABLED": "0",
        "GOFLAGS": "",
        "GOCACHE": os.environ.get("GOCACHE", str(Path(tempfile.gettempdir()) / "evdist-gocache")),
    }
    subprocess.run(
        ["go", "build", "-o", program, "."], cwd=ROOT / "helm" / "render",
        env={**os.environ, **settings}, check=True, timeout=600,
    )  # fmt: skip
    return program


def render_files(*files: Path | str) -> dict[str, Any]:
    """What the program says of each file."""
    done = subprocess.run(
        [renderer(), "-release", RELEASE, "-namespace", NAMESPACE, CHART, *files],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout)


@functools.cache
def _all() -> dict[str, Rendered]:
    files = {name: str(VALUES / f"{name}.yaml") for name in NAMES}
    found = render_files(*files.values())
    return {name: _read(found[file]) for name, file in files.items()}


def rendered(name: str) -> Rendered:
    """The chart with the values of tests/helm/values/NAME.yaml."""
    return _all()[name]


def render_values(values: Mapping[str, Any], folder: Path) -> Rendered:
    """The chart with other values."""
    file = folder / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    return _read(render_files(str(file))[str(file)])


def _read(answer: Object) -> Rendered:
    assert "error" not in answer, answer["error"]
    objects, notes = [], ""
    for name, text in answer["templates"].items():
        if name.endswith("NOTES.txt"):
            notes = text
        else:
            objects += [found for found in yaml.safe_load_all(text) if found]
    return Rendered(answer["values"], tuple(objects), notes)


def defaults() -> Object:
    return yaml.safe_load((CHART / "values.yaml").read_text())


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> Object:
    """Values put over values as Helm does it: map by map, null takes a key away."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


@functools.cache
def schema() -> jsonschema.Draft7Validator:
    found = json.loads((CHART / "values.schema.json").read_text())
    jsonschema.Draft7Validator.check_schema(found)
    return jsonschema.Draft7Validator(found)


def refusals(values: Mapping[str, Any]) -> list[str]:
    """What values.schema.json has against these values, as "path: sentence"."""
    return sorted(
        f"{'.'.join(map(str, error.absolute_path)) or 'values'}: {error.message}"
        for error in schema().iter_errors(values)
    )
