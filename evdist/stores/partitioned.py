"""Arrays in a store whose rows are cut into partitions, each written by one process.

```
NAME       (P, s, width) zarr v3 array, s the rows of the largest partition; chunks of whole rows
           of one partition, with a checksum. Places beyond the end of a partition are zero.
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.kernels.shuffle import Shuffle
from evdist.stores.encoding import StoreError, checked, chunk_rows, compressor, reading, zarr_at
from evdist.stores.paths import exists, join

_CURE = "Remove it and start again."


@dataclass(frozen=True)
class PartitionArray:
    """One such array; small, so that it can be sent to a worker."""

    url: str
    shuffle: Shuffle
    width: int
    dtype: str

    def create(self) -> None:
        """Make room; what was there is lost."""
        P, s = self.shuffle.count, self.shuffle.rows
        zarr.create_array(
            **zarr_at(self.url),
            shape=(P, s, self.width),
            chunks=(1, self._chunk, self.width),
            dtype=self.dtype,
            fill_value=self._unwritten,
            compressors=checked(compressor()),
            overwrite=True,
        )

    @property
    def _unwritten(self) -> Any:
        """Fills what is not written; no chunk of ours is that."""
        return np.nan if np.dtype(self.dtype).kind == "f" else np.iinfo(self.dtype).max

    @property
    def _chunk(self) -> int:
        return chunk_rows(self.shuffle.rows, self.width * np.dtype(self.dtype).itemsize)

    def write(self, partition: int, rows: NDArray[Any]) -> None:
        """Store all rows of a partition."""
        s = self.shuffle.rows
        if rows.shape != (self.shuffle.size(partition), self.width):
            raise StoreError(
                f"Partition {partition} of {self.url} has {self.shuffle.size(partition)} rows of "
                f"{self.width}, got {rows.shape}."
            )
        array = zarr.open_array(**zarr_at(self.url), mode="r+")
        for lo in range(0, s, self._chunk):
            part = rows[lo : lo + self._chunk]
            empty = min(self._chunk, s - lo) - len(part)
            array[partition, lo : lo + len(part) + empty] = np.pad(part, ((0, empty), (0, 0)))

    def read(self, partition: int, at_most: int | None = None) -> NDArray[Any]:
        """The rows of a partition, or the first few; damaged or missing ones are refused."""
        size = self.shuffle.size(partition)
        size = size if at_most is None else min(size, at_most)
        out = np.empty((size, self.width), self.dtype)
        array: Any = zarr.open_array(**zarr_at(self.url), mode="r")
        with reading(self.url, _CURE):
            # Chunk by chunk: the library holds all that it decodes for one call.
            for lo in range(0, size, self._chunk):
                part = array[partition, lo : min(lo + self._chunk, size)]
                lost = part[0] == self._unwritten if part.dtype.kind != "f" else np.isnan(part[0])
                if lost.any():
                    raise StoreError(
                        f"{self.url} is damaged: partition {partition} is lost. {_CURE}"
                    )
                out[lo : lo + self._chunk] = part
        return out

    def has(self, partition: int) -> bool:
        """Whether all of a partition was written."""
        # Each chunk is looked for by its file: a process killed before it wrote one has made the
        # folder for it already.
        chunks = range(-(-self.shuffle.rows // self._chunk))
        return all(exists(join(self.url, f"c/{partition}/{number}/0")) for number in chunks)
