"""The examples of README.md and docs/ give what they print, and the links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("[!.]*/*.md")])  # no caches
]


@pytest.mark.parametrize("page", PAGES)
def test_examples(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All ``pycon`` blocks of a page, in order, as one session."""
    blocks = re.findall(r"^```pycon\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    monkeypatch.chdir(tmp_path)  # an example may write files
    # A blank line within an output, which ends the output for doctest, is written as doctest asks.
    text = "\n".join(
        re.sub(r"^(?=\n(?!>>>).)", "<BLANKLINE>", block, flags=re.M) for block in blocks
    )
    session = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(session, out=report.append)
    assert result.failed == 0, "".join(report)


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_project(page: str) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text())
    local = [link for link in links if not re.match(r"\w+:", link)]
    assert [link for link in local if not (ROOT / page).parent.joinpath(link).exists()] == []
