"""Every public name says what it is, and describes each parameter of its signature, no others.

What is checked is what the site shows: the same reader, `docs/reference.py`, makes its pages.
"""

from __future__ import annotations

import doctest
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

griffe = pytest.importorskip("griffe", reason="needs the extra docs, as `make docs` installs it")

#: Sections whose entries are parameters; those of a result's class are its attributes.
PARAMETERS = ("parameters", "other parameters")


@pytest.fixture(scope="module")
def reference(root: Path) -> ModuleType:
    """The reader of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location("reference", root / "docs/reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reference"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def signature(obj: Any) -> list[str]:
    """Names that a caller may pass: parameters of a function, of a class those of its making."""
    if obj.is_attribute:
        return []
    if obj.is_class and any(str(base) == "_Part" for base in obj.bases):  # pydantic: its fields
        return [
            name
            for name, member in obj.attributes.items()
            if member.annotation and "property" not in member.labels
        ]
    taken = [one.name for one in obj.parameters if one.name not in ("self", "cls")]
    return [name for name in taken if not name.startswith("_")]


def faults(name: str, obj: Any) -> Iterator[str]:
    """What the docstring of a public object lacks, or says of what is not there."""
    if obj.docstring is None or not obj.docstring.value.strip():
        yield f"{name} has no docstring"
        return
    for section in obj.docstring.parsed:
        kind = section.kind.value
        if kind in (*PARAMETERS, "attributes", "returns", "yields", "raises"):
            for entry in section.value:
                if not entry.description.strip():
                    yield f"{name}: {kind}: {_called(entry)} is not described"
    parameters, attributes = described(obj, PARAMETERS), described(obj, ("attributes",))
    wanted = signature(obj)
    for one in wanted:
        if one not in parameters and not (obj.is_class and one in attributes):
            yield f"{name}: the parameter {one} is not described"
    for one in parameters:
        if one not in wanted:
            yield f"{name}: {one} is described, but no parameter"


def described(obj: Any, kinds: tuple[str, ...]) -> list[str]:
    """Names of the entries in sections of these kinds; "a, b" are two."""
    sections = [part for part in obj.docstring.parsed if part.kind.value in kinds]
    groups = [_called(entry) for part in sections for entry in part.value]
    return [name.strip().lstrip("*") for group in groups for name in group.split(",")]


def _called(entry: Any) -> str:
    return getattr(entry, "name", None) or str(entry.annotation)


def test_every_public_name_describes_what_it_takes(reference: ModuleType) -> None:
    found = [fault for entry in reference.entries() for fault in faults(entry.name, entry.object)]
    assert found == []


def test_every_public_method_describes_what_it_takes(reference: ModuleType) -> None:
    # By their paths: a method that many inherit counts once.
    methods = {
        method.path: (f"{entry.name}.{name}", method)
        for entry in reference.entries()
        for name, method in reference.methods(entry)
    }
    found = [fault for name, method in methods.values() for fault in faults(name, method)]
    assert found == []


def test_every_public_property_says_what_it_is(reference: ModuleType) -> None:
    """In its own docstring, or among the attributes of its class."""
    found = [
        f"{entry.name}.{name}"
        for entry in reference.entries()
        if entry.object.is_class
        for name, member in entry.object.all_members.items()
        if not name.startswith("_") and member.is_attribute and "property" in member.labels
        if not member.docstring and name not in described(entry.object, ("attributes",))
    ]
    assert found == []


def test_every_public_name_has_an_example(reference: ModuleType, root: Path) -> None:
    """In its docstring, in a page or in a notebook."""
    pages = {path: path.read_text(encoding="utf-8") for path in root.glob("docs/*.md")}
    pages |= {path: reference.notebook(path) for path in root.glob("notebooks/*.ipynb")}
    shown = [
        entry
        for entry in reference.entries()
        if reference.has_example(entry) or reference.uses(entry, pages)
    ]
    names = {f"`{entry.object.name}`" for entry in shown}
    # What a function takes or gives is shown with it: then the docstring names that function.
    missing = [
        entry.name
        for entry in reference.entries()
        if entry not in shown and not any(one in entry.object.docstring.value for one in names)
    ]
    assert missing == []


@pytest.mark.parametrize("module", ["belief", "combine", "metrics", "mixture", "plot", "report"])
def test_examples_of_modules_give_what_they_print(module: str, reference: ModuleType) -> None:
    home = importlib.import_module(f"evdist.{module}")
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    report: list[str] = []
    for name in reference.module(module).exports:
        for example in finder.find(getattr(home, str(name)), str(name)):
            runner.run(example, out=report.append)
    assert runner.failures == 0, "".join(report)
    assert runner.tries > 0


WRONG = '''
def plain(x, y):
    """Adds.

    Parameters
    ----------
    x : int
    z : int
        Not there.
    """

def bare(x): ...

class Made:
    """Has a constructor."""

    def __init__(self, x): ...
'''


def test_faults_are_found() -> None:
    with griffe.temporary_visited_module(WRONG, docstring_parser="numpy") as module:
        found = [
            fault for name in ("plain", "bare", "Made") for fault in faults(name, module[name])
        ]
    assert found == [
        "plain: parameters: x is not described",
        "plain: the parameter y is not described",
        "plain: z is described, but no parameter",
        "bare has no docstring",
        "Made: the parameter x is not described",
    ]
