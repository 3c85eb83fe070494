"""Restore points of a fit in partitions: masses in a store, written by their owners.

```
NAME/
  manifest.json    {"evdist": "restore point", "version": 1, "slot", "problem", "state", "seal"}
  slot-XXXXXXXX    masses in partitions, see `evdist.stores.partitioned`
```
Every save fills a slot of its own; the manifest, replaced at one stroke, then points to it.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evdist.evclus.partitions.problem import PartitionedProblem
from evdist.stores.checkpoint import as_json, manifest_of_fit
from evdist.stores.encoding import StoreError, seal
from evdist.stores.partitioned import PartitionArray
from evdist.stores.paths import children, join, remove, replace_bytes

KIND, VERSION = "restore point", 1
_SEALED = ("evdist", "version", "slot", "problem", "state")
_SLOT = re.compile(r"slot-[0-9a-f]{8}")


@dataclass(frozen=True)
class RestorePoints:
    """Where a fit of `problem` can be taken up again; `known` must be the same then."""

    url: str
    problem: PartitionedProblem
    known: dict[str, Any]

    def begin(self) -> PartitionArray:
        """Room for masses; slots that no manifest points to are removed."""
        manifest = self._manifest()
        for name in children(self.url):
            if _SLOT.fullmatch(name) and (manifest is None or name != manifest["slot"]):
                remove(join(self.url, name))
        slot = self.problem.masses(join(self.url, f"slot-{secrets.token_hex(4)}"))
        slot.create()
        return slot

    def commit(self, slot: PartitionArray, state: Mapping[str, Any]) -> None:
        """Make a slot that all owners have written the restore point."""
        missing = [b for b in range(self.problem.parts) if not slot.has(b)]
        if missing:
            raise StoreError(f"{slot.url} lacks partition {missing[0]}: it is no restore point.")
        name = slot.url.rpartition("/")[2]
        parts = {"evdist": KIND, "version": VERSION, "slot": name, "problem": as_json(self.known),
                 "state": as_json(state)}  # fmt: skip
        replace_bytes(join(self.url, "manifest.json"), json.dumps(seal(parts)).encode())

    def load(self) -> tuple[PartitionArray, dict[str, Any]] | None:
        """The last restore point and its state; None where there is none."""
        manifest = self._manifest()
        if manifest is None:
            return None
        return self.problem.masses(join(self.url, manifest["slot"])), manifest["state"]

    def _manifest(self) -> dict[str, Any] | None:
        return manifest_of_fit(self.url, KIND, VERSION, _SEALED, self.known)
