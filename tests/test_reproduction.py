"""The ledger: every printed figure has its line, the reader refuses what it cannot read, and no
part knows a class or a printed figure before its answer is there."""

from __future__ import annotations

import ast
import csv
import dataclasses
import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest


@pytest.fixture
def ledger(root: Path, monkeypatch: pytest.MonkeyPatch):
    """The modules of the ledger, imported from the folder of benchmarks."""
    monkeypatch.syspath_prepend(str(root / "benchmarks"))
    import reproduction
    from ledger import checks, claims, lines, others, page, scores, sets
    from ledger.answer import Answer

    yield SimpleNamespace(
        reproduction=reproduction, checks=checks, claims=claims, lines=lines, others=others,
        page=page, scores=scores, sets=sets, Answer=Answer,
    )  # fmt: skip
    for name in [name for name in sys.modules if name.split(".")[0] in ("reproduction", "ledger")]:
        sys.modules.pop(name)


#: How many figures each table prints, counted in the papers and not in the ledger's files.
PRINTED = {
    ("nn_evclus", "1"): 12 * 4,
    ("nn_evclus", "3"): 14 * 11 - 25,  # 25 cells have a dot
    ("nn_evclus", "6"): 4 * 5,
    ("k_cevclus", "2"): 2 * 12 * 4 * 2,
    ("k_cevclus", "3"): 2 * 10 * 4 * 2,
    ("bootclus", "1"): 6 * 6,
    ("bootclus", "2"): 2 * 4 * 2 * 2 - 1,  # one length is lost in the text
    ("bootclus", "3"): 2 * 4 * 2 * 2,
    ("bootclus", "4"): 2 * 4 * 2 * 2,
    ("bootclus", "5"): 5 * 6,
    ("bootclus", "6"): 3 * 4,
    ("bootclus", "7"): 3 * 4,
    ("bootclus", "8"): 3 * 5,
    ("bootclus", "9"): 3 * 3,
    ("bootclus", "10"): 3 * 5,
    ("bootclus", "11"): 3 * 4,
    ("bootclus", "12"): 3 * 5,
    ("slides_2017", "relation"): 3 * 4,
    ("slides_2021", "eeg"): 3 * 4,
    ("slides_2021", "vowel"): 12,
    ("slides_2021", "fusion"): 5 * 3,
}


# ---------------------------------------------------------------------- the figures
def test_every_printed_table_has_its_lines(ledger):
    tables, lines = ledger.lines.read(ledger.lines.FIGURES, list(ledger.others.PARTS))
    stated = {(table.source, table.table): table.cells for table in tables}
    for where, cells in PRINTED.items():
        found = [line for line in lines if (line.source, line.table) == where]
        assert len(found) == stated[where] == cells, where
    # Tables that are settings or seconds are named, too: none of a paper is left out.
    for source, last in (("nn_evclus", 8), ("k_cevclus", 3), ("bootclus", 12)):
        assert {table for name, table in stated if name == source} >= {
            str(number) for number in range(1, last + 1)
        }


def test_a_line_that_cannot_be_had_says_why(ledger):
    _, lines = ledger.lines.read(ledger.lines.FIGURES, list(ledger.others.PARTS))
    for line in lines:
        if line.absent:
            assert len(line.absent) > 30, line.where
            assert not line.reason


def test_every_data_set_score_and_need_is_known(ledger):
    _, lines = ledger.lines.read(ledger.lines.FIGURES, list(ledger.others.PARTS))
    claims = ledger.claims.read_claims(
        ledger.lines.FIGURES / "claims.csv", list(ledger.checks.CHECKS)
    )
    for run in ledger.reproduction.runs_of(lines, claims):
        assert run.data in ledger.sets.NAMES
        own = {name for name in run.arguments if name not in ledger.reproduction.OURS}
        part = inspect.signature(ledger.others.PARTS[run.part]).parameters
        needed = {name for name, one in part.items() if one.kind is one.KEYWORD_ONLY}
        least = {name for name in needed if part[name].default is inspect.Parameter.empty}
        assert least <= own <= needed, run.name
        for score in run.scores:
            assert hasattr(ledger.scores.Scores, "_" + score.partition(":")[0]), score


# ---------------------------------------------------------------------- the reader
LINE: dict[str, str] = {
    "table": "1", "row": "a", "column": "b", "printed": "0.5", "spread": "", "data": "wine",
    "part": "ecm", "arguments": "peaks=yes draws=3", "score": "ari", "band": "0.03", "absent": "",
    "reason": "",
}  # fmt: skip


def written(folder: Path, *lines: dict[str, str], cells: int = 1) -> Path:
    with (folder / "tables.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "table", "title", "cells", "kind", "statistic"])
        writer.writerow(["paper", "1", "a table", cells, "figures", "median"])
    with (folder / "paper.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, LINE)
        rows.writeheader()
        rows.writerows(lines)
    return folder


def test_a_figure_is_added_without_code(ledger, tmp_path):
    _, lines = ledger.lines.read(written(tmp_path, LINE), ["ecm"])
    assert (lines[0].printed, lines[0].draws, lines[0].run) == (
        0.5,
        3,
        "ecm wine draws=3 peaks=yes",
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"printed": ".9 or so"}, "paper.csv, line 2: printed must be a number, but is '.9 or so'"),
        ({"band": "-1"}, "band must be a number of at least 0, but is '-1'"),
        ({"band": ""}, "band must be a number of at least 0, but is ''"),
        ({"part": "magic"}, "there is no part 'magic'; there are ecm"),
        ({"arguments": "peaks"}, "arguments are name=value, each once, but got 'peaks'"),
        ({"score": ""}, "a line that is run needs a score, such as ari"),
        ({"absent": "lost"}, "absent must begin with 'no data: ' or 'not run: '"),
        ({"absent": "no data: x", "reason": "y"}, "a reason is written after a run"),
    ],
)
def test_a_malformed_line_is_refused_in_a_sentence(ledger, tmp_path, change, sentence):
    with pytest.raises(ledger.lines.LedgerError, match=sentence):
        ledger.lines.read(written(tmp_path, LINE | change), ["ecm"])


def test_a_cell_too_few_or_twice_is_refused(ledger, tmp_path):
    with pytest.raises(ledger.lines.LedgerError, match=r"prints 2 figures .* has 1 lines"):
        ledger.lines.read(written(tmp_path, LINE, cells=2), ["ecm"])
    with pytest.raises(ledger.lines.LedgerError, match="paper, table 1, a, b stands there twice"):
        ledger.lines.read(written(tmp_path, LINE, LINE, cells=2), ["ecm"])


def test_other_columns_are_refused(ledger, tmp_path):
    folder = written(tmp_path, LINE)
    (folder / "paper.csv").write_text("table,row\n1,a\n")
    with pytest.raises(ledger.lines.LedgerError, match="must have the columns table, row, column"):
        ledger.lines.read(folder, ["ecm"])


@pytest.mark.parametrize(
    ("score", "ours", "verdict"),
    [
        ("ari", 0.53, "agrees"), ("ari", 0.47, "agrees"), ("ari", 0.54, "better"),
        ("ari", 0.46, "worse"), ("error", 0.46, "better"), ("error", 0.54, "worse"),
        ("nonspecificity", 0.46, "worse"), ("nonspecificity", 0.54, "worse"),
        ("mass:1:a", 0.54, "worse"), ("ari", None, "not run"),
    ],
)  # fmt: skip
def test_a_band_has_two_sides(ledger, tmp_path, score, ours, verdict):
    _, lines = ledger.lines.read(written(tmp_path, LINE | {"score": score}), ["ecm"])
    assert ledger.lines.verdict(lines[0], ours) == verdict


# ---------------------------------------------------------------------- no part knows the truth
def test_a_part_is_given_no_truth(ledger):
    """`Given` has no class of an object that is to be placed, and parts take nothing else."""
    assert {one.name for one in dataclasses.fields(ledger.sets.Given)} == {
        "X", "n_clusters", "metric", "must_link", "cannot_link", "labels", "new"
    }  # fmt: skip
    for name, part in ledger.others.PARTS.items():
        first, second, *rest = inspect.signature(part).parameters.values()
        assert (first.name, first.annotation, second.name) == ("given", "Given", "seed"), name
        assert all(one.kind is one.KEYWORD_ONLY and one.annotation == "str" for one in rest), name


@pytest.mark.parametrize("module", ["clusterers", "others"])
def test_parts_read_no_data_and_no_figures(root, module):
    """Nothing is imported there that holds classes, printed figures or answers, or opens a file."""
    tree = ast.parse((root / "benchmarks" / "ledger" / f"{module}.py").read_text())
    taken = {f"{node.module}.{name.name}" for node in ast.walk(tree)
             if isinstance(node, ast.ImportFrom) for name in node.names}  # fmt: skip
    own = {name for name in taken if name.split(".")[0] not in
           ("evdist", "numpy", "scipy", "collections", "functools", "itertools", "typing",
            "__future__")}  # fmt: skip
    assert own <= {"ledger.answer.Answer", "ledger.sets.Given", "ledger.clusterers.CLUSTERERS"}
    plain = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
             for name in node.names}  # fmt: skip
    assert plain <= {"numpy"}
    called = {node.func.id for node in ast.walk(tree)
              if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}  # fmt: skip
    assert not called & {"open", "eval", "exec", "__import__"}


def test_classes_shuffled_change_a_score_and_no_answer(ledger, shared, monkeypatch):
    """The answer is there before the truth is looked at: with other classes it is the same."""
    given, truth = ledger.sets.make("iris", 0)
    answers: list[Any] = []
    part = ledger.others.PARTS["ecm"]

    def noted(*args: Any, **kwargs: Any) -> Any:
        answers.append(part(*args, **kwargs))
        return answers[-1]

    monkeypatch.setitem(ledger.others.PARTS, "ecm", noted)
    run = ledger.reproduction.Run("ecm iris", "iris", "ecm", {}, 1, frozenset({"ari"}))
    right = ledger.reproduction.answer(run, 0)
    other = dataclasses.replace(truth, y=np.random.default_rng(0).permutation(truth.y))
    monkeypatch.setattr(ledger.reproduction, "make", lambda *_args, **_kwargs: (given, other))
    wrong = ledger.reproduction.answer(run, 0)
    assert right["scores"]["ari"] > 0.5 > wrong["scores"]["ari"]
    assert np.array_equal(answers[0].partition.mass, answers[1].partition.mass)


def test_links_are_drawn_by_the_ledger_and_are_all_that_a_part_sees(ledger, shared):
    given, truth = ledger.sets.make("iris", 3, links=20)
    pairs = np.concatenate([given.must_link, given.cannot_link])
    assert len(pairs) == 20
    same = truth.y[given.must_link[:, 0]] == truth.y[given.must_link[:, 1]]
    assert same.all()
    assert given.labels is None


# ---------------------------------------------------------------------- scores
def test_scores_of_a_small_partition(ledger):
    from evdist import CredalPartition, FocalSets

    mass = np.array([[0, 0.9, 0, 0.1], [0, 0.2, 0.1, 0.7], [1, 0, 0, 0], [0, 0, 1, 0]])
    partition = CredalPartition(mass, FocalSets.full(2))
    truth = ledger.sets.Truth(np.array(["a", "a", "b", "b"]))
    scores = ledger.scores.Scores(ledger.Answer(partition), truth)
    assert scores.of(["cell:a:a", "cell:a:a+b", "cell:b:empty", "wrong", "empty"]) == {
        "cell:a:a": 1.0, "cell:a:a+b": 1.0, "cell:b:empty": 1.0, "wrong": 0.0, "empty": 1.0,
    }  # fmt: skip
    assert scores.one("mass:2:a+b") == pytest.approx(0.7)
    with pytest.raises(ValueError, match="There is no score 'beauty'"):
        scores.one("beauty")


# ---------------------------------------------------------------------- the run and the page
def kept_line(name: str, seed: int, **scores: float) -> str:
    return json.dumps({"run": name, "seed": seed, "seconds": 1.0, "scores": scores}) + "\n"


def test_a_run_goes_on_where_it_was(ledger, tmp_path, monkeypatch, capsys):
    name = "ecm wine"
    run = ledger.reproduction.Run(name, "wine", "ecm", {}, 3, frozenset({"ari"}))
    answers = tmp_path / "answers.jsonl"
    answers.write_text(kept_line(name, 0, ari=0.5) + kept_line(name, 1, other=0.5))
    asked = []

    def fake(one: Any, seed: int) -> dict[str, Any]:
        asked.append(seed)
        return json.loads(kept_line(one.name, seed, ari=0.6))

    monkeypatch.setattr(ledger.reproduction, "answer", fake)
    assert ledger.reproduction.carry_out([run], answers, "") == []
    assert asked == [1, 2]  # draw 0 is kept; that of draw 1 lacks the score
    assert ledger.reproduction.carry_out([run], answers, "") == []
    assert asked == [1, 2]
    assert "ecm wine, draw 2" in capsys.readouterr().out


def test_only_all_draws_count_and_a_reason_makes_the_difference(ledger, tmp_path):
    line = LINE | {"arguments": "draws=2"}
    name = "ecm wine draws=2"
    for draws, reason, verdict, unexplained in (
        ([0.1], "", "not run", 0),
        ([0.1, 0.2], "", "worse", 1),
        ([0.1, 0.2], "seen", "worse", 0),
        ([0.52, 0.5], "", "agrees", 0),
    ):
        tables, lines = ledger.lines.read(
            written(tmp_path, line | {"reason": reason}), ["ecm"]
        )  # fmt: skip
        answers = {(name, k): json.loads(kept_line(name, k, ari=v)) for k, v in enumerate(draws)}
        found = ledger.reproduction.results(tables, lines, [], answers)
        assert found.verdict(lines[0]) == verdict
        assert len(found.unexplained) == unexplained


def test_the_page_is_what_the_command_makes_of_the_kept_answers(ledger, root):
    """docs/reproduction.md is not written by hand, and its first lines count the figures."""
    tables, lines = ledger.lines.read(ledger.lines.FIGURES, list(ledger.others.PARTS))
    claims = ledger.claims.read_claims(
        ledger.lines.FIGURES / "claims.csv", list(ledger.checks.CHECKS)
    )
    answers = ledger.reproduction.kept(ledger.reproduction.ANSWERS)
    found = ledger.reproduction.results(tables, lines, claims, answers)
    text = (root / "docs" / "reproduction.md").read_text(encoding="utf-8")
    assert text == ledger.page.page(found)
    assert f"The five sources print {len(lines)} figures: " in text.split("\n\n")[1]
    assert "## What we could not reproduce, and what we think" in text
