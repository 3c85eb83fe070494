"""What the reference says of each public name, read from the source text: nothing is imported.

So the site is built where torch or Prefect are missing, and `tests/test_docstrings.py` checks what
the site shows. griffe reads signatures and docstrings; `evdist/registry.py` names the public ones.
"""

from __future__ import annotations

import json
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
            yield from (Entry(f"{name}.{one}", _named(f"{home}.{one}")) for one in inner)
        else:
            yield Entry(name, _named(f"{home}.{name}"))


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


def _named(path: str) -> Any:
    """A class, function or constant, where its package passes it on."""
    found = _at(path)
    # A submodule of that name, `evdist.plot.tree`, hides to griffe what was imported from it.
    return found[found.name] if found.is_module else found


def _at(path: str) -> Any:
    found = package()[path.removeprefix("evdist.")]
    return found.final_target if found.is_alias else found


#: Blocks of code in pages.
_CODE = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.M | re.S)


def notebook(path: Path) -> str:
    """The title and the code of a notebook, as a page would show them."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = [("".join(cell["source"]), cell["cell_type"]) for cell in cells]
    return "\n".join(
        f"```python\n{text}\n```\n" if kind == "code" else text for text, kind in texts
    )


def has_example(entry: Entry) -> bool:
    """Whether the docstring shows it at work."""
    return any(part.kind.value == "examples" for part in entry.object.docstring.parsed)


def uses(entry: Entry, pages: dict[Path, str]) -> list[Path]:
    """The pages whose code uses a name."""
    parent, _, name = entry.name.rpartition(".")
    # What a public module holds is called by the module's name, or imported from it.
    from_it = rf"from evdist\.{parent} import (?:[^\n(]*|\([^)]*)\b{name}\b"
    sought = re.compile(rf"\b{parent}\.{name}\b|{from_it}" if parent else rf"\b{name}\b")
    return [path for path, text in pages.items() if sought.search("\n".join(_CODE.findall(text)))]
