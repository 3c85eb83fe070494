"""What MkDocs does to pages made of docstrings: names and pages that they mention become links."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

#: :meth:`fit` and the like, once their backticks have become tags.
_ROLE = re.compile(r":(?:meth|class|func|attr|mod):(?=<code>)")
_PAGE = re.compile(r"(?<![\w/\"])docs/([\w/-]+)\.md")
#: Code that may be a name; links and the names of parameters stay as they are.
_NAME = re.compile(r"<a\b.*?</a>|<b>.*?</b>|<pre\b.*?</pre>|<code>([\w.]+)</code>", re.S)

#: Public name -> its page, seen from the root of the site.
_pages: dict[str, str] = {}


def on_files(files: Any, **_: Any) -> Any:
    """Called by MkDocs once, with all pages."""
    for file in files.documentation_pages():
        if file.src_uri.startswith("api/"):
            name = file.src_uri.removeprefix("api/").removesuffix(".md").removesuffix("/index")
            _pages[name.replace("/", ".")] = file.url
    return files


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    path = page.file.src_uri
    if not path.startswith("api"):
        return html
    here = Path(path).parent

    def to_page(match: re.Match[str]) -> str:
        target = os.path.relpath(f"{match[1]}.html", here)
        return f'<a href="{target}">{match[1].rpartition("/")[2]}</a>'

    def to_name(match: re.Match[str]) -> str:
        name = (match[1] or "").removeprefix("evdist.")
        sibling = f"{here.name}.{name}"  # within a module its own names come first
        url = _pages.get(sibling) or _pages.get(name)
        if url is None or url == page.file.url:
            return match[0]
        return f'<a href="{os.path.relpath(url, here)}">{match[0]}</a>'

    return _NAME.sub(to_name, _PAGE.sub(to_page, _ROLE.sub("", html)))
