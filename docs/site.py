"""Build the site of the documentation into site/: ``python docs/site.py``, or ``make docs``.

The pages stay readable as they lie in the repository, with links between its folders. So the pages
and whatever they link to are copied as they lie, the API page gets the docstrings of every
public name, and MkDocs builds the rest. A warning is an error.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from evdist.registry import PUBLIC, api_page

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "build" / "pages"


def main() -> None:
    """Gather the pages and build the site."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        _copy(page)
    (PAGES / "docs" / "api.md").write_text(_reference(), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    sys.exit(subprocess.run(command, cwd=ROOT, check=False).returncode)


def _copy(page: Path) -> None:
    """A page, and every file of the repository that it links to; a folder stands for its page."""
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s:]+)", text):
        target = (page.parent / link).resolve()
        if target.is_dir():
            inner = target / "README.md"
            if not inner.is_file():
                text = re.sub(rf"\[([^]]*)\]\({re.escape(link)}\)", r"\1", text)
                continue
            text = text.replace(f"]({link})", f"]({link.rstrip('/')}/README.md)")
            target = inner
        if target.suffix == ".md" and target.parent not in (ROOT, ROOT / "docs"):
            if target not in _seen:
                _seen.add(target)
                _copy(target)
        elif target.is_file() and target.suffix != ".md":
            _place(target).write_bytes(target.read_bytes())
    _place(page).write_text(text, encoding="utf-8")


_seen: set[Path] = set()


def _place(file: Path) -> Path:
    place = PAGES / file.relative_to(ROOT)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _reference() -> str:
    """The API page with what the docstrings say in the place of their first sentences."""
    text = api_page().split("\n## ")[0]
    for name, home in sorted(PUBLIC.items(), key=lambda pair: pair[0].lower()):
        place = home if home == f"evdist.{name}" else f"{home}.{name}"
        text += f"\n## {name}\n\n::: {place}\n"
    return text


if __name__ == "__main__":
    main()
