"""What the reference says of each public name, read from the source text: nothing is imported.

So the site is built where torch or Prefect are missing, and `tests/test_docstrings.py` checks what
the site shows. griffe reads signatures and docstrings; `evdist/registry.py` names the public ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import griffe

from evdist.registry import PUBLIC

ROOT = Path(__file__).resolve().parents[1]

#: Where classes take methods from that stand in no file of ours.
_SKLEARN = "evdist.estimators.base.CredalEstimator"


@dataclass(frozen=True)
class Entry:
    """A public name: `EVCLUS`, or `metrics.consistency` of a public module."""

    name: str
    object: Any

    @property
    def page(self) -> str:
        """Its page within the folder of the reference."""
        return f"{self.name.replace('.', '/')}.md"

    @property
    def summary(self) -> str:
        """The first sentence of its docstring."""
        text = self.object.docstring.value if self.object.docstring else ""
        return " ".join(text.split("\n\n")[0].split())

    @property
    def is_estimator(self) -> bool:
        """Whether scikit-learn's base classes bring it `fit_predict` and others."""
        return self.object.is_class and any(base.path == _SKLEARN for base in self.object.mro())


@cache
def package() -> Any:
    """The package as griffe reads it."""
    return griffe.load(
        "evdist", search_paths=[ROOT], docstring_parser="numpy", resolve_aliases=True
    )


def entries() -> Iterator[Entry]:
    """Every public name, those of the public modules under them."""
    for name, home in sorted(PUBLIC.items(), key=lambda pair: pair[0].lower()):
        if home == f"evdist.{name}":
            inner = sorted(map(str, module(name).exports or []), key=str.lower)
            yield from (Entry(f"{name}.{one}", _at(f"{home}.{one}")) for one in inner)
        else:
            yield Entry(name, _at(f"{home}.{name}"))


def modules() -> list[str]:
    """The public modules."""
    return sorted(name for name, home in PUBLIC.items() if home == f"evdist.{name}")


def module(name: str) -> Any:
    """A public module."""
    return _at(f"evdist.{name}")


def methods(entry: Entry) -> Iterator[tuple[str, Any]]:
    """The public methods of a class, inherited ones of ours among them."""
    if entry.object.is_class:
        for name, member in entry.object.all_members.items():
            found = member.final_target if member.is_alias else member
            if not name.startswith("_") and found.is_function:
                yield name, found


def _at(path: str) -> Any:
    found = package()[path.removeprefix("evdist.")]
    return found.final_target if found.is_alias else found


#: Blocks of code in pages and notebooks.
_CODE = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.M | re.S)


def uses(entry: Entry, pages: dict[Path, str]) -> list[Path]:
    """The pages whose code uses a name."""
    name = re.escape(entry.name.rpartition(".")[2])
    # A function of a module is called by the name of its module, or imported from it.
    parent = entry.name.rpartition(".")[0]
    word = rf"\b{parent}\.{name}\b|from evdist\.{parent} import [^\n]*\b{name}\b"
    sought = re.compile(word if parent else rf"\b{name}\b")
    return [path for path, text in pages.items() if sought.search("\n".join(_CODE.findall(text)))]
