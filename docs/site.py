"""Build the site of the documentation into site/: ``python docs/site.py``, or ``make docs``.

The pages stay readable as they lie in the repository, with links between its folders. Here they
are copied to build/pages, `docs/` to the root of the site, with their links put right; notebooks
become pages; every public name gets one from its docstring (`reference.py`); the menu is that of
docs/index.md. MkDocs builds the rest, and a warning is an error. Of evdist only the table of public
names is imported, so that no extra need be installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the checkout this file is in, whichever evdist is installed

from reference import Entry, entries, module, modules, uses  # noqa: E402

PAGES = ROOT / "build" / "pages"

#: Links of Markdown, and of pictures and tags of HTML.
_LINK = re.compile(r"(\]\(|\b(?:src|href)=\")([^)#\s:\"]+)")
_BULLET = re.compile(r"^- \[([^]]+)\]\(([^)#\s:]+)\)", re.M)


def main() -> None:
    """Gather the pages and build the site."""
    shutil.rmtree(PAGES, ignore_errors=True)
    gathered = gather([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    for page, text in gathered.items():
        # The first page is a list of all others: a menu beside it would say nothing.
        head = "---\nhide: [navigation]\n---\n" if page == ROOT / "docs/index.md" else ""
        _write(place(page), head + text)
    _place(ROOT / "docs/site.css").write_bytes((ROOT / "docs/site.css").read_bytes())
    reference = _reference(gathered)
    config = {"INHERIT": "../mkdocs.yml", "nav": _nav(gathered, reference)}
    file = ROOT / "build" / "mkdocs.yml"
    file.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(file)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # docs/decisions/site.md knows it
    sys.exit(subprocess.run(command, cwd=ROOT, env=quiet, check=False).returncode)


def gather(first: list[Path]) -> dict[Path, str]:
    """Pages and all that they link to within the repository: path -> text with its links right."""
    gathered: dict[Path, str] = {}
    waiting = sorted(first)
    while waiting:
        page = waiting.pop(0)
        if page not in gathered:
            text, found = _linked(page, _notebook(page) if page.suffix == ".ipynb" else _text(page))
            gathered[page] = text
            waiting += found
    return gathered


def place(path: Path) -> Path:
    """Where a file of the repository lies in the site."""
    relative = path.relative_to(ROOT)
    if relative.parts[0] == "docs":
        relative = relative.relative_to("docs")
    if relative == Path("README.md"):
        relative = Path("installing.md")  # the first page is docs/index.md
    return relative.with_suffix(".md") if relative.suffix == ".ipynb" else relative


def _linked(page: Path, text: str) -> tuple[str, list[Path]]:
    """The text with its links as the site needs them, and the pages that they lead to."""
    found: list[Path] = []

    def moved(match: re.Match[str]) -> str:
        target = (page.parent / match[2]).resolve()
        if not target.exists():  # made by this file, or no link
            return match[0]
        if target.is_dir():
            target = target / "README.md"
        if target.suffix in (".md", ".ipynb"):
            found.append(target)
        else:
            _place(target).write_bytes(target.read_bytes())
        return match[1] + os.path.relpath(place(target), place(page).parent)

    text = re.sub(r"!\[[^]]*\]\(([^)\s]+\.svg)\)", lambda m: _inlined(page.parent / m[1]), text)
    bare = [m for m in re.findall(r"\]\(([^)#\s:]+)", text) if _is_bare(page.parent / m)]
    for folder in bare:  # nothing to show: the words stay
        text = re.sub(rf"\[([^]]*)\]\({re.escape(folder)}\)", r"\1", text)
    return _LINK.sub(moved, text), found


def _is_bare(folder: Path) -> bool:
    return folder.is_dir() and not (folder / "README.md").is_file()


def _inlined(picture: Path) -> str:
    """A drawing as part of the page, so that its links work and it follows light and dark."""
    return f'<div class="drawing">\n{_text(picture).strip()}\n</div>'


def _notebook(path: Path) -> str:
    """A notebook as Markdown; its pictures are put beside it."""
    text, resources = MarkdownExporter().from_filename(str(path))
    names = {}
    for name, data in resources["outputs"].items():
        picture = PAGES / place(path).parent / f"{path.stem}_{name}"
        picture.parent.mkdir(parents=True, exist_ok=True)
        picture.write_bytes(data)
        names[f"]({name})"] = f"]({picture.name})"
    for old, new in names.items():
        text = text.replace(old, new)
    return f"{text}\n\nDownload the notebook: [{path.name}]({_copied(path)})\n"


def _copied(path: Path) -> str:
    (PAGES / place(path).parent).mkdir(parents=True, exist_ok=True)
    (PAGES / place(path).parent / path.name).write_bytes(path.read_bytes())
    return path.name


def _reference(gathered: dict[Path, str]) -> list[Any]:
    """Write the pages of the public names; their part of the menu."""
    lines = ["# API\n", "Every public name, by what it is for.\n"]
    menu: list[Any] = ["api.md"]
    inner: dict[str, list[Any]] = {name: [f"api/{name}/index.md"] for name in modules()}
    found = list(entries())
    for entry in found:
        _write(Path("api") / entry.page, _page(entry, gathered))
        parent, _, name = entry.name.rpartition(".")
        (inner[parent] if parent else menu).append({name: f"api/{entry.page}"})
    for title, wanted in _GROUPS.items():
        chosen = [one for one in found if "." not in one.name and wanted(one)]
        lines += [f"## {title}\n", _table(chosen, "api/")]
    for name in modules():
        chosen = [one for one in found if one.name.startswith(f"{name}.")]
        about = module(name).docstring.value
        head = f"# evdist.{name}\n\n{about}\n"
        _write(Path(f"api/{name}/index.md"), f"{head}\n{_table(chosen, '', short=True)}")
        sentence = " ".join(about.split("\n\n")[0].split())
        lines += [f"## [evdist.{name}](api/{name}/index.md)\n", f"{sentence}\n"]
        lines += [_table(chosen, "api/")]
    _write(Path("api.md"), "\n".join(lines))
    return [*menu, *({f"evdist.{name}": pages} for name, pages in inner.items())]


#: Headings of the page of the API -> which of the names outside modules stand under it.
_GROUPS = {
    "Clusterers and classifiers": lambda entry: entry.is_estimator,
    "Results, jobs and helpers": lambda entry: not entry.is_estimator,
}


def _page(entry: Entry, gathered: dict[Path, str]) -> str:
    """The page of a public name: its docstring, and where it is used."""
    parent = entry.name.rpartition(".")[0]
    text = f"::: {entry.object.path}\n    options:\n      heading_level: 1\n"
    source = f"evdist.{parent}" if parent else "evdist"
    text += f"\n## Import\n\n```python\nfrom {source} import {entry.object.name}\n```\n"
    if entry.is_estimator:
        text += (
            "\n## From scikit-learn\n\n`fit_predict`, `fit_transform`, `get_params`, `set_params` "
            "and `set_output` are those of scikit-learn, where the class has what they call.\n"
        )
    here = Path("api") / entry.page
    found = [
        f"- [{_title(gathered[path])}]({os.path.relpath(place(path), here.parent)})"
        for path in uses(entry, gathered)
    ]
    return text + ("\n## Used in\n\n" + "\n".join(found) + "\n" if found else "")


def _table(chosen: list[Entry], folder: str, short: bool = False) -> str:
    rows = [
        f"| [`{one.name.rpartition('.')[2] if short else one.name}`]"
        f"({folder}{one.object.name + '.md' if short else one.page}) | {_escaped(one.summary)} |"
        for one in chosen
    ]
    return "\n".join(["| name | what it is |", "|---|---|", *rows, ""])


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _title(text: str) -> str:
    found = re.search(r"^# (.*)", text, re.M)
    return found[1] if found else "?"


def _nav(gathered: dict[Path, str], reference: list[Any]) -> list[Any]:
    """The menu: the headings and lists of docs/index.md, and what the pages of folders list."""
    menu: list[Any] = [{"Home": "index.md"}]
    for part in re.split(r"^## ", _text(ROOT / "docs/index.md"), flags=re.M)[1:]:
        first, *inner = re.split(r"^### ", part, flags=re.M)
        pages = _entries(first, gathered, reference)
        pages += [{one.split("\n")[0]: _entries(one, gathered, reference)} for one in inner]
        if pages:
            menu.append({part.split("\n")[0]: pages})
    return menu


def _entries(part: str, gathered: dict[Path, str], reference: list[Any]) -> list[Any]:
    pages: list[Any] = []
    for title, link in _BULLET.findall(part):
        target = (ROOT / "docs" / link).resolve()
        if target == ROOT / "docs/api.md":
            pages += reference
            continue
        own = _in_folder(target, gathered) if target.name == "README.md" else []
        page = place(target).as_posix()
        pages.append({title: [page, *own] if own else page})
    return pages


def _in_folder(readme: Path, gathered: dict[Path, str]) -> list[Any]:
    """The pages of a folder: in the order in which its own page names them, then the others."""
    if readme.parent == ROOT:
        return []
    linked = [(readme.parent / link).resolve() for link in _links(_text(readme))]
    inside = [page for page in gathered if page.parent == readme.parent and page != readme]
    order = sorted(inside, key=lambda page: linked.index(page) if page in linked else len(linked))
    return [{_title(gathered[page]): place(page).as_posix()} for page in order]


def _links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)#\s:]+)", text)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _place(file: Path) -> Path:
    target = PAGES / place(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _write(page: Path, text: str) -> None:
    target = PAGES / page
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
