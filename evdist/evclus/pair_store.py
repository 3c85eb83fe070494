"""The pair store: which pairs were kept and how dissimilar they are, in chunks of whole rows.

`evdist.evclus.pair_layout` says what lies where. Rows and partners are POSITIONS of the random
layout, not objects: row p is object order[p].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.evclus.pair_layout import (
    CURE,
    UNWRITTEN,
    array,
    check_attributes,
    create_arrays,
    describe,
    refuse_others,
)
from evdist.evclus.rows.sweep import Block
from evdist.evclus.sampling import row_block
from evdist.kernels.graph import PairGraph
from evdist.kernels.partner_lists import PartnerLists
from evdist.stores.encoding import (
    StoreError,
    chunk_bounds,
    chunk_of,
    chunk_rows,
    open_group,
    reading,
    seal,
    zarr_at,
)
from evdist.stores.fingerprints import fingerprint
from evdist.stores.paths import Url, address, exists, join

#: Rows that are read at a time, rounded to whole chunks.
_READ_ROWS = 1 << 16


class PairStore:
    """Kept pairs at an address; made by :meth:`create` or :meth:`open`.

    Pickled as its address: another process opens it again. Several threads or processes may write
    at the same time, each its own chunks.
    """

    def __init__(self, url: str, group: zarr.Group):
        self.url = url
        self._group = group
        attributes: Any = dict(group.attrs)
        check_attributes(url, attributes)
        self.metric: str = attributes["metric"]
        self.seed: int = attributes["seed"]
        self.source: str = attributes["source"]
        self._layout: str = attributes["layout"]
        offsets, shifts = tuple(attributes["offsets"]), tuple(attributes["shifts"])
        near, mixed = attributes.get("near", 0), attributes.get("mixed", 0)
        self.graph = PairGraph(attributes["n"], attributes["colours"], offsets, shifts, near, mixed)
        n, k = self.graph.n, self.graph.k
        self._partner = array(url, group, "partner", (n, k), np.uint32)
        self._dissimilarity = array(url, group, "dissimilarity", (n, k), np.float32)
        self._degree = array(url, group, "degree", (n,), np.uint32)
        self._order = array(url, group, "order", (n,), np.uint32)

    # ------------------------------------------------------------------ construction
    @classmethod
    def create(
        cls,
        url: Url,
        *,
        order: NDArray[np.uint32],
        graph: PairGraph,
        metric: str,
        seed: int,
        source: str,
        rows_per_chunk: int | None = None,
    ) -> PairStore:
        """A new store; or the one there, with the chunks it has, when it is of the same pairs.

        Parameters
        ----------
        url : path or fsspec URL
        order : (n,) uint32, position -> object
        graph : PairGraph
            The kept pairs, on positions.
        metric : str
        seed : int
        source : str
            Fingerprint of the data: pairs of other data are never taken for these.
        rows_per_chunk : int, optional
            About 4 MB when left out. A store that is there already keeps its own.
        """
        url = address(url)
        order = np.asarray(order, dtype=np.uint32)
        attributes = describe(order, graph, metric, seed, source)
        # A kill may leave a folder without its first file: that is no store yet.
        if exists(join(url, "zarr.json")):
            refuse_others(url, attributes)
            group = open_group(url, "pair store", "r+")
        else:
            group = zarr.create_group(
                **zarr_at(url), attributes={**seal(attributes), "complete": False}
            )
        if group.attrs.get("complete") is not True:
            rows = rows_per_chunk or chunk_rows(graph.n, 4 * graph.k)
            create_arrays(group, graph.n, graph.k, rows)
            group["order"][:] = order  # type: ignore[index]
        return cls(url, group)

    @classmethod
    def open(cls, url: Url) -> PairStore:
        """A store that is there and complete; anything else is refused."""
        store = cls._reopen(address(url), "r")
        if not store.complete:
            raise StoreError(
                f"{store.url} is half written: the sampling that wrote it did not finish. Run it "
                "again: it goes on where it stopped."
            )
        return store

    @classmethod
    def _reopen(cls, url: str, mode: Any = "r+") -> PairStore:
        return cls(url, open_group(url, "pair store", mode))

    def __reduce__(self) -> tuple[Callable[..., PairStore], tuple[str]]:
        return PairStore._reopen, (self.url,)

    # ------------------------------------------------------------------ what it holds
    @property
    def n(self) -> int:
        return self.graph.n

    @property
    def k(self) -> int:
        return self.graph.k

    @property
    def complete(self) -> bool:
        return self._group.attrs.get("complete") is True

    @cached_property
    def order(self) -> NDArray[np.uint32]:
        """Position -> object, (n,)."""
        with reading(self.url, CURE):
            order = self._order[:]
        if fingerprint(order) != self._layout:
            raise StoreError(
                f"{self.url} is damaged: 'order' is not the layout it was made with. {CURE}"
            )
        return order

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """(lo, hi) of every chunk of rows: the blocks of the work, each for one writer."""
        return chunk_bounds(self.n, self._partner.chunks[0])

    def read(
        self, lo: int, hi: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.float32]]:
        """Partners (rows, k), degrees (rows,) and raw dissimilarities (rows, k) of lo..hi-1."""
        if not 0 <= lo <= hi <= self.n:
            raise IndexError(f"Rows must lie in 0..{self.n}, got {lo}..{hi}.")
        with reading(self.url, CURE):
            degree = self._degree[lo:hi]
            if (degree == UNWRITTEN).any():
                row = lo + int(np.argmax(degree == UNWRITTEN))
                raise StoreError(f"{self.url} does not hold row {row} yet. Finish the sampling.")
            partner, D = self._partner[lo:hi], self._dissimilarity[lo:hi]
        # The kernels follow these numbers without looking.
        if degree.size and (partner.max() >= self.n or degree.max() > self.k or np.isnan(D.min())):
            raise StoreError(
                f"{self.url} is damaged: a chunk of rows {lo}..{hi - 1} is lost or was changed. "
                f"{CURE}"
            )
        return partner, degree.astype(np.int64), D

    # ------------------------------------------------------------------ sampling
    def write(
        self,
        lo: int,
        partner: NDArray[np.uint32],
        degree: NDArray[np.int64],
        D: NDArray[np.float32],
    ) -> None:
        """Store one whole chunk, the rows from `lo` on; shapes as :meth:`read` gives them."""
        chunk = chunk_of(lo, len(partner), self.n, self._partner.chunks[0])
        if not partner.shape == D.shape == (len(degree), self.k):
            raise StoreError(
                f"Partners and dissimilarities must be of shape {(len(partner), self.k)}, with one "
                f"degree per row, got {partner.shape}, {D.shape} and {len(degree)} degrees."
            )
        if partner.max() >= self.n or degree.min() < 0 or degree.max() > self.k:
            raise StoreError(f"Rows must have 0..{self.k} partners, each below {self.n}.")
        unused = np.arange(self.k) >= degree[:, None]
        if unused.any():
            own = np.arange(chunk.start, chunk.stop, dtype=np.uint32)[:, None]
            partner, D = np.where(unused, own, partner), np.where(unused, np.float32(0), D)
        bad = ~(np.isfinite(D) & (D >= 0))
        if bad.any():
            row, place = (int(at) for at in np.argwhere(bad)[0])
            raise StoreError(
                f"Dissimilarities must be finite and non-negative, got {D[row, place]} between "
                f"positions {lo + row} and {partner[row, place]}."
            )
        self._partner[chunk] = partner
        self._dissimilarity[chunk] = D
        self._degree[chunk] = degree.astype(np.uint32)  # last: it marks the chunk as there

    def written(self, lo: int) -> bool:
        """Whether the chunk of rows from `lo` on is there, all of it."""
        with reading(self.url, CURE):
            return int(self._degree[lo]) != UNWRITTEN

    def missing(self) -> list[tuple[int, int]]:
        """(lo, hi) of the chunks that are not there yet: what an interrupted sampling has to do."""
        chunks, found = self.chunks, []
        for at in range(0, len(chunks), 256):  # the markers of many chunks are fetched together
            some = chunks[at : at + 256]
            first, rows = some[0][0], self._partner.chunks[0]
            with reading(self.url, CURE):
                marks = self._degree[first : some[-1][1]][::rows]
            found += [c for c, mark in zip(some, marks, strict=True) if mark == UNWRITTEN]
        return found

    def finish(self) -> None:
        """Declare the store complete; refused while a chunk is missing."""
        missing = self.missing()
        if missing:
            lo, hi = missing[0]
            raise StoreError(
                f"{self.url} lacks {len(missing)} of {len(self.chunks)} chunks, the first of them "
                f"rows {lo}..{hi - 1}. Write them first."
            )
        self._group.attrs["complete"] = True


@dataclass(frozen=True)
class StoredPairs:
    """Pairs of a store, as a sweep wants them: read when asked for, transformed with `d0`."""

    store: PairStore
    d0: float

    @property
    def n(self) -> int:
        return self.store.n

    @property
    def graph(self) -> PairGraph:
        return self.store.graph

    @property
    def entries(self) -> int:
        return self.graph.entries

    def dissimilarities(self, lo: int, hi: int, lists: PartnerLists) -> NDArray[np.float32]:
        """Raw dissimilarities of positions lo..hi-1, (rows, k).

        Refused where the partners are not those of the lists, which the sweeps take them from.
        """
        partner, degree, D = self.store.read(lo, hi)
        expected = lists.written(lo, hi, self.graph.k)
        if not (np.array_equal(partner, expected[0]) and np.array_equal(degree, expected[1])):
            raise StoreError(
                f"{self.store.url} is damaged: some of rows {lo}..{hi - 1} have other partners "
                f"than its graph. {CURE}"
            )
        return D

    @property
    def at_once(self) -> int:
        """Rows to read at a time: whole chunks, some megabytes."""
        chunk = self.store.chunks[0][1]
        return max(1, _READ_ROWS // chunk) * chunk

    def block(self, lo: int, hi: int) -> Block:
        """Pairs of positions lo..hi-1, with transformed dissimilarities."""
        return row_block(lo, *self.store.read(lo, hi), self.d0)
