"""Rows laid out in partitions: shuffled once, when they are written, and read one by one after.

```
NAME/        zarr v3 group; attributes {"evdist": "partitions", "version": 1, "n", "d", "dtype",
             "partitions", "columns", "fingerprint", "seal", "complete"}
  X          (P, s, d) float32 or float64, see `evdist.stores.partitioned`
  exchange/  rows on their way, see `evdist.stores.exchange`; removed at the end
```
Object i lies at the position that `Shuffle` computes; no order is stored. The fingerprint is that
of the content, whatever it was read from and however it was cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.data.inputs import refuse_bad_values
from evdist.data.readers import RowReader
from evdist.kernels.shuffle import Shuffle, row_sum
from evdist.stores.encoding import StoreError, check_encoding, check_seal, open_group, seal, zarr_at
from evdist.stores.exchange import Exchange
from evdist.stores.fingerprints import fingerprint
from evdist.stores.partitioned import PartitionArray
from evdist.stores.paths import Url, address, exists, join

KIND, VERSION = "partitions", 1
_CURE = "Remove it and lay out the data again."
_SHAPE = ("evdist", "version", "n", "d", "dtype", "partitions", "columns")
_SEALED = (*_SHAPE, "fingerprint")
#: Bytes of rows that are sent at once.
BLOCK_BYTES = 1 << 26
#: Of less than so many such blocks, blocks are smaller, as long as they have so many bytes.
_BLOCKS, _LEAST_BYTES = 64, 1 << 22


@dataclass(frozen=True)
class PartitionedData:
    """A finished layout; small, so that it can be sent to a worker."""

    url: str
    X: PartitionArray
    columns: tuple[str, ...] | None
    fingerprint: str

    @property
    def shuffle(self) -> Shuffle:
        return self.X.shuffle

    @property
    def n(self) -> int:
        return self.shuffle.n

    @property
    def d(self) -> int:
        return self.X.width

    @classmethod
    def open(cls, url: Url) -> PartitionedData:
        url = address(url)
        attributes: Any = dict(open_group(url, "layout").attrs)
        check_encoding(url, attributes, KIND, VERSION)
        if attributes.get("complete") is not True:
            raise StoreError(f"{url} is half written: the shuffle did not finish. Start it again.")
        check_seal(url, attributes, _SEALED, _CURE)
        columns = attributes["columns"]
        return cls(
            url, _array(url, attributes), None if columns is None else tuple(columns),
            attributes["fingerprint"],
        )  # fmt: skip

    def read(self, partition: int) -> NDArray[Any]:
        return self.X.read(partition)

    def sample(self, count: int) -> NDArray[Any]:
        """The rows at the first `count` positions: a random sample, since the order is random."""
        parts: list[NDArray[Any]] = []
        for partition in range(self.shuffle.count):
            parts.append(self.X.read(partition, count))
            count -= len(parts[-1])
            if count <= 0:
                break
        return np.concatenate(parts)

    def positions(self, lo: int, hi: int) -> NDArray[Any]:
        """The rows at positions lo..hi-1, of however many partitions."""
        bounds, out = self.shuffle.bounds, np.empty((hi - lo, self.d), self.X.dtype)
        first = int(np.searchsorted(bounds, lo, side="right")) - 1
        for partition in range(first, self.shuffle.count):
            start, end = bounds[partition : partition + 2].tolist()
            if start >= hi:
                break
            a, b = max(lo, start), min(hi, end)
            out[a - lo : b - lo] = self.X.read(partition, b - start)[a - start :]
        return out


def _array(url: str, known: dict[str, Any]) -> PartitionArray:
    shuffle = Shuffle(known["n"], known["partitions"])
    return PartitionArray(join(url, "X"), shuffle, known["d"], known["dtype"])


@dataclass(frozen=True)
class Writing:
    """A layout that is being written."""

    url: str
    X: PartitionArray
    exchange: Exchange

    @classmethod
    def begin(
        cls,
        url: Url,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        count: int | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> Writing:
        """A new layout, or one begun before; one of another shape is refused."""
        url = address(url)
        n, d = shape
        kept = "float32" if dtype in (np.float32, np.float16) else "float64"
        shuffle = Shuffle.of(n, count)
        known: dict[str, Any] = {
            "evdist": KIND, "version": VERSION, "n": n, "d": d, "dtype": kept,
            "partitions": shuffle.count, "columns": None if columns is None else list(columns),
        }  # fmt: skip
        X = _array(url, known)
        exchange = Exchange(join(url, "exchange"), shuffle.bounds, d, kept)
        if exists(join(url, "X/zarr.json")):
            there: Any = dict(open_group(url, "layout").attrs)
            check_encoding(url, there, KIND, VERSION)
            if {name: there.get(name) for name in _SHAPE} != known:
                raise StoreError(
                    f"{url} is the layout of other data: {there.get('n')} x {there.get('d')} of "
                    f"{there.get('dtype')} in {there.get('partitions')} partitions, not {n} x {d} "
                    f"of {kept} in {shuffle.count}. Remove it, or name another folder."
                )
        else:
            group = zarr.open_group(**zarr_at(url), mode="a")
            group.update_attributes({**known, "complete": False})
            X.create()
        writing = cls(url, X, exchange)
        if not writing.complete:
            exchange.begin()
        return writing

    @property
    def complete(self) -> bool:
        return open_group(self.url, "layout").attrs.get("complete") is True

    @property
    def shuffle(self) -> Shuffle:
        return self.X.shuffle

    def blocks(self, step: int) -> list[tuple[int, int]]:
        """(lo, hi) of blocks of objects to be read at once, at multiples of `step`."""
        row = self.X.width * np.dtype(self.X.dtype).itemsize
        rows = max(self.block_bytes // row // step, 1) * step
        n = self.shuffle.n
        return [(lo, min(lo + rows, n)) for lo in range(0, n, rows)]

    @property
    def block_bytes(self) -> int:
        """Of small data blocks are small too: many workers then read a part each."""
        share = self.shuffle.count * self.partition_bytes // _BLOCKS
        return min(BLOCK_BYTES, max(share, _LEAST_BYTES))

    @property
    def partition_bytes(self) -> int:
        return self.shuffle.rows * self.X.width * np.dtype(self.X.dtype).itemsize

    def missing(self) -> list[int]:
        """Partitions that are not written yet."""
        return [b for b in range(self.shuffle.count) if not self.X.has(b)]

    def unsent(self, blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those of the blocks (lo, hi) that were not sent yet."""
        there = self.exchange.done()
        return [block for block in blocks if block_name(*block) not in there]

    def end(self, blocks: list[str]) -> PartitionedData:
        """Seal the layout: all partitions are there."""
        total = sum(self.exchange.note(block) for block in blocks) % 2**64
        group = open_group(self.url, "layout", "r+")
        attributes: Any = dict(group.attrs)
        known = {name: attributes[name] for name in _SHAPE}
        shape = (self.shuffle.n, self.X.width, self.X.dtype)
        known["fingerprint"] = fingerprint("rows", list(shape), f"{total:016x}")
        group.update_attributes({**seal(known), "complete": True})
        self.exchange.close()
        return PartitionedData.open(self.url)


# ---------------------------------------------------------------------- tasks
def block_name(lo: int, hi: int) -> str:
    """A block's name says what it holds: a run that cuts other blocks does not take it for its."""
    return f"{lo}-{hi}"


def send_block(writing: Writing, reader: RowReader, lo: int, hi: int) -> int:
    """Read some objects and send them to their partitions."""
    return send_rows(writing, lo, reader.read(lo, hi))


def send_rows(writing: Writing, lo: int, rows: NDArray[Any]) -> int:
    """Send the objects from `lo` on to their partitions; values that must not be are refused."""
    rows = np.asarray(rows)
    if rows.ndim != 2 or rows.shape[1] != writing.X.width or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"Rows {lo} to {lo + len(rows)} of X must be {writing.X.width} numbers each, got shape "
            f"{rows.shape} of {rows.dtype}."
        )
    rows = rows.astype(writing.X.dtype, copy=False)
    refuse_bad_values(rows, lo)
    hi = lo + len(rows)
    places = writing.shuffle.positions(lo, hi)
    writing.exchange.put(block_name(lo, hi), places, rows, row_sum(rows, lo))
    return len(rows)


def collect(writing: Writing, blocks: list[str], partition: int) -> None:
    """Write one partition from what all blocks have sent to it."""
    if not writing.X.has(partition):
        writing.X.write(partition, writing.exchange.take(partition, blocks))
