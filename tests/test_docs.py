"""The examples of README.md and docs/ give what they print; links lead to what is there."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evdist.registry import PUBLIC, api_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("[!.]*/*.md"), *ROOT.glob("docs/*/*.md")])
]


#: Run together with the commands between its examples, by tests/doors/test_doors_ten_minutes.py.
WITH_COMMANDS = "docs/first_ten_minutes.md"


@pytest.mark.parametrize("page", [page for page in PAGES if page != WITH_COMMANDS])
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


def local_links(page: str) -> list[Path]:
    """Files and folders of the project that a page links to, whether they are there or not."""
    links = re.findall(r"\]\(([^)#\s]+)", (ROOT / page).read_text())
    return [(ROOT / page).parent / link for link in links if not re.match(r"\w+:", link)]


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_project(page: str) -> None:
    assert [str(path) for path in local_links(page) if not path.exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_to_a_section_name_one(page: str) -> None:
    links = re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", (ROOT / page).read_text())
    missing = [
        f"{name}#{section}"
        for name, section in links
        if section not in _sections((ROOT / page).parent / name if name else ROOT / page)
    ]
    assert missing == []


def _sections(page: Path) -> set[str]:
    """Names of the headings of a page, as GitHub writes them in addresses."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_the_index_or_from_readme() -> None:
    entrances = ("README.md", "docs/index.md", "docs/decisions/README.md")
    linked = {path.resolve() for page in entrances for path in local_links(page)}
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")]
    missing = {page for page in pages if page.resolve() not in linked} - {ROOT / "docs/index.md"}
    assert sorted(page.relative_to(ROOT).as_posix() for page in missing) == []


def test_every_public_name_has_an_entry_in_the_api() -> None:
    """Written by `make format`, from the docstrings."""
    assert (ROOT / "docs/api.md").read_text(encoding="utf-8") == api_page()
    assert all(f"\n## {name}\n" in api_page() for name in PUBLIC)


#: What a browser loads by itself when it shows a page; links that a reader follows are others.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b[^>]*\brel=["']?(?:stylesheet|preconnect|preload)[^>]*\bhref=["']?https?:[^>]*>"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once, where none of the packages that evdist needs can be imported."""
    for package in ("mkdocstrings", "material", "nbconvert"):
        pytest.importorskip(package, reason="needs the extra docs, as `make docs` installs it")
    folder = tmp_path_factory.mktemp("missing")
    for package in ("numba", "numpy", "prefect", "sklearn", "torch"):
        (folder / f"{package}.py").write_text("raise ImportError('not installed')\n")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "docs/site.py"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "site"


@pytest.mark.process
def test_every_public_name_has_a_page_of_the_site(site: Path) -> None:
    names = [name for name, home in PUBLIC.items() if home != f"evdist.{name}"]
    assert [name for name in names if not (site / f"api/{name}.html").is_file()] == []
    assert (site / "api/metrics/credal_rand_index.html").is_file()
    page = (site / "api/EVCLUS.html").read_text(encoding="utf-8")
    assert all(word in page for word in ("n_dissimilarities", "predict_mass", "Used in"))


@pytest.mark.process
def test_every_page_and_notebook_stands_in_the_menu(site: Path) -> None:
    menu = (site.parent / "build/mkdocs.yml").read_text(encoding="utf-8")
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md")]
    wanted = [path.relative_to(ROOT / "docs").as_posix() for path in pages]
    wanted += [f"notebooks/{path.stem}.md" for path in ROOT.glob("notebooks/*.ipynb")]
    assert sorted(name for name in wanted if not re.search(rf"\b{name}$", menu, re.M)) == []


@pytest.mark.process
def test_pages_of_the_site_load_nothing_from_elsewhere(site: Path) -> None:
    found = {
        path.relative_to(site).as_posix(): LOADED.findall(path.read_text(encoding="utf-8"))
        for path in site.rglob("*.html")
    }
    assert len(found) > 150
    assert {name: loads for name, loads in found.items() if loads} == {}
