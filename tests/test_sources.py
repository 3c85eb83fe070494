"""docs/sources.md: every name of the coverage table exists, and so does every file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evdist
from evdist.registry import ALGORITHMS, load

PAGE = Path(__file__).resolve().parents[1] / "docs" / "sources.md"


def rows() -> list[tuple[str, str, str]]:
    """What is in the source, public names, tests: the rows of three columns."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and cells[0] != "in the source":
            found.append((cells[0], cells[1], cells[2]))
    return found


def resolve(name: str) -> object:
    """`evdist.NAME`, of any depth; `evdist.constraints` is a module without a short name."""
    first, *rest = name.split(".")
    found = load("evdist.constraints") if first == "constraints" else getattr(evdist, first)
    for part in rest:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0][:40])
def test_names_and_files_of_a_row_exist(row: tuple[str, str, str], root: Path) -> None:
    _, names, files = row
    public = re.findall(r"`([^`]+)`", names)
    assert public, "a row without a name covers nothing"
    assert ", ".join(f"`{name}`" for name in public) == names
    for name in public:
        assert resolve(name) is not None
    paths = files.split(", ")
    assert [path for path in paths if not (root / path).is_file()] == []
    assert all(path.startswith(("tests/", "benchmarks/")) for path in paths)


def test_the_five_sources_are_there() -> None:
    sections = re.findall(r"^## (.*)", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(sections) == 7  # and what was published since, and what is not there
    assert len(rows()) > 40


def test_every_algorithm_and_every_figure_has_a_row() -> None:
    named = {name for _, names, _ in rows() for name in re.findall(r"`([^`]+)`", names)}
    assert {entry.estimator for entry in ALGORITHMS.values()} <= named
    #: Ours alone: no source draws them.
    ours = {"PairDensity", "cluster_colour", "cluster_marker", "nonspecificity", "risk_coverage"}
    ours |= {"sizes", "to_png", "to_svg", "tree"}
    figures = {f"plot.{name}" for name in load("evdist.plot").__all__ if name not in ours}
    assert figures <= named
