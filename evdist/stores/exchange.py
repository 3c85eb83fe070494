"""Rows of a table put into another order, however large it is: an exchange through files.

Each of some blocks of rows, in any order and by any process, is sorted by where its rows shall go
and put into one file (`put`). Then each range of the new order is collected from its parts of all
files (`take`). Memory holds one block or one range; what is there is not made again.

```
NAME/B     block B, named by its writer: for every range, one behind the other, the places (uint32)
           of its rows in the range, then the rows. Last comes an int64 table: where each range
           begins, (ranges + 1,), and a note of the writer's
```
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import fsspec
import numpy as np
from numpy.typing import NDArray

from evdist.stores.encoding import StoreError
from evdist.stores.paths import children, join, remove, replace_bytes


@dataclass(frozen=True)
class Exchange:
    """Rows of `width` numbers on their way to ranges bounds[0]..bounds[1]-1 and so on.

    Attributes
    ----------
    url : str
        A folder of its own.
    bounds : (ranges + 1,) int64
    """

    url: str
    bounds: NDArray[np.int64]
    width: int
    dtype: str

    def begin(self) -> None:
        filesystem, path = fsspec.core.url_to_fs(self.url)
        filesystem.makedirs(path, exist_ok=True)

    def done(self) -> set[str]:
        """Names of the blocks that are there."""
        return {name for name in children(self.url) if not name.endswith(".part")}

    def put(self, block: str, places: NDArray[np.int64], rows: NDArray[Any], note: int = 0) -> None:
        """Rows (m, width) that belong at `places` (m,) of the new order, and a number, 64 bits."""
        order = np.argsort(places, kind="stable")
        places = places[order]
        rows = np.ascontiguousarray(rows[order], self.dtype)
        cuts = np.searchsorted(places, self.bounds)
        parts: list[Any] = []
        at = np.zeros(len(self.bounds) + 1, np.int64)
        for q in range(len(self.bounds) - 1):
            a, b = cuts[q : q + 2]
            own = (places[a:b] - self.bounds[q]).astype("<u4")
            parts += [own.view(np.uint8).data, rows[a:b].view(np.uint8).reshape(-1).data]
            at[q + 1] = at[q] + (b - a) * self._row_bytes
        at[-1] = np.uint64(note).astype(np.int64)
        parts.append(at.astype("<i8").view(np.uint8).data)
        replace_bytes(join(self.url, block), b"".join(parts))

    @property
    def _row_bytes(self) -> int:
        return 4 + self.width * np.dtype(self.dtype).itemsize

    def take(self, number: int, blocks: Sequence[str]) -> NDArray[Any]:
        """All rows of one range, from all blocks."""
        lo, hi = self.bounds[number : number + 2].tolist()
        out = np.empty((hi - lo, self.width), self.dtype)
        filesystem, path = fsspec.core.url_to_fs(self.url)
        found = 0
        for block in blocks:
            name = f"{path}/{block}"
            at = filesystem.size(name) - 8 * (len(self.bounds) + 1) + 8 * number
            first, last = np.frombuffer(filesystem.cat_file(name, at, at + 16), "<i8").tolist()
            count, rest = divmod(last - first, self._row_bytes)
            content = filesystem.cat_file(name, first, last) if count else b""
            if rest or len(content) != last - first:
                raise StoreError(f"{name} is cut off. Remove it and start again.")
            where = np.frombuffer(content, "<u4", count)
            rows = np.frombuffer(content, self.dtype, offset=4 * count)
            out[where] = rows.reshape(count, self.width)
            found += count
        if found != hi - lo:
            raise StoreError(
                f"{self.url} has {found} of the {hi - lo} rows of range {number}. Remove it and "
                "start again."
            )
        return out

    def note(self, block: str) -> int:
        """The number that came with a block."""
        filesystem, path = fsspec.core.url_to_fs(self.url)
        size = filesystem.size(f"{path}/{block}")
        found = filesystem.cat_file(f"{path}/{block}", size - 8, size)
        return int(np.frombuffer(found, "<u8")[0])

    def close(self) -> None:
        """Remove the files: every range was taken."""
        remove(self.url)
