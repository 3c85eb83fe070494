"""The page of the reproduction: every line has a verdict, every part is there or not run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest


@pytest.fixture
def reproduction(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import reproduction

    yield reproduction
    for name in ("reproduction", "bounds"):
        sys.modules.pop(name, None)


def line(what: str, held: bool | None, why: str = "") -> dict:
    return {"title": "a table", "what": what, "value": "0.5", "bound": "", "held": held, "why": why}


def result(reproduction, *lines: dict, code: int = 0):
    return reproduction.Result("benchmarks/x.py", code, 1.0, list(lines))


def test_a_miss_is_counted_and_a_known_one_is_no_failure(reproduction):
    first = reproduction.PARTS[0].name
    known = result(reproduction, line("a", True), line("b", False, "why so"), line("c", None))
    assert (known.count(True), known.count(False), known.unknown) == (1, 1, 0)
    said = reproduction.summary({first: known})
    assert said.startswith("1 figures reached, 1 missed (1 for a known reason), ")
    assert "not obtainable" in said
    assert f"{len(reproduction.PARTS) - 1} of {len(reproduction.PARTS)} parts not run." in said
    assert result(reproduction, line("b", False)).unknown == 1


def test_a_part_without_lines_is_not_run_and_one_that_broke_is_said(reproduction):
    first = reproduction.PARTS[0].name
    page = reproduction.page({first: result(reproduction, line("a", False, "why so"), code=1)})
    assert page.count("\n\nNot run.") == len(reproduction.PARTS) - 1
    assert "| a | 0.5 |  | **missed**: why so |" in page
    assert "ended without a figure" in reproduction.summary({first: result(reproduction, code=2)})


def test_a_script_that_measured_nothing_has_kept_no_bound(reproduction, capsys):
    bounds = sys.modules["bounds"].Bounds()
    assert bounds.finish() == 1
    assert "nothing was measured" in capsys.readouterr().out
    bounds.at_most("a", 0.5, 1.0)
    assert bounds.finish() == 0


def test_every_part_names_a_benchmark_that_is_there(reproduction, root):
    names = [part.name for part in reproduction.PARTS]
    assert len(set(names)) == len(names)
    assert all((root / "benchmarks" / part.script).is_file() for part in reproduction.PARTS)


def test_kept_parts_are_shown_again_without_being_run(reproduction, tmp_path, monkeypatch):
    name = reproduction.PARTS[0].name
    kept, page = tmp_path / "kept.json", tmp_path / "page.md"
    kept.write_text(json.dumps({name: vars(result(reproduction, line("a", True)))}))
    options = ["--only", "no such part", "--keep", str(kept), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", ["reproduction.py", *options])
    assert reproduction.main() == 1  # the other parts were not run
    assert "| a | 0.5 |  | reached |" in page.read_text()


def test_the_page_of_the_docs_has_its_summary(root):
    page = (root / "docs" / "reproduction.md").read_text(encoding="utf-8")
    for word in ("reached", "missed", "not obtainable", "not run"):
        assert word in page.split("\n## ")[0]
