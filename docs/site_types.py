"""A griffe extension: the types of parameters as the docstrings word them.

griffe itself takes ``{"a", "b"} or None, default=None`` for a choice whose default is "a".
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"^(\S[^:\n]*?) : (.+)$", re.M)


class Types(griffe.Extension):
    """Called while the package is read, once for each object."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Give every described entry the type that stands behind its colon."""
        if obj.is_alias or not obj.docstring:
            return
        typed = {
            name.strip().lstrip("*"): text
            for names, text in _ENTRY.findall(obj.docstring.value)
            for name in names.split(",")
        }
        for section in obj.docstring.parsed:
            if section.kind.value in ("parameters", "attributes"):
                for entry in section.value:
                    words = typed.get(entry.name.lstrip("*"))
                    if words:
                        entry.annotation, entry.value = words, None
