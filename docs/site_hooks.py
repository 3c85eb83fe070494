"""What MkDocs does to pages made of docstrings: marks of other generators become plain Markdown."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

#: :meth:`fit` and the like, once their backticks have become tags.
_ROLE = re.compile(r":(?:meth|class|func|attr|mod):(?=<code>)")
_PAGE = re.compile(r"(?<![\w/\"])docs/([\w/-]+)\.md")


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Called by MkDocs for every page."""
    path = page.file.src_uri
    if not path.startswith("api"):
        return html

    def linked(match: re.Match[str]) -> str:
        target = os.path.relpath(f"{match[1]}.html", Path(path).parent)
        return f'<a href="{target}">{match[1].rpartition("/")[2]}</a>'

    return _PAGE.sub(linked, _ROLE.sub("", html))
