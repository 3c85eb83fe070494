"""What a fit will need, said before it starts."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evdist.belief import FocalSets
from evdist.data.sources import AttributeSource, PairList, Source
from evdist.engine import memory
from evdist.engine.workers import smallest_worker
from evdist.evclus.groups import SPARSE_FROM, near_share
from evdist.evclus.sampling import is_narrow
from evdist.evclus.start import Settings
from evdist.kernels.partner_lists import are_few
from evdist.kernels.shuffle import PARTITION_ROWS
from evdist.kernels.sparse_rows import WORDS
from evdist.kernels.vector import padded_width


@dataclass(frozen=True)
class Need:
    """Bytes: kept pairs, masses with their table, and the data."""

    pairs: int
    masses: int
    data: int

    @property
    def total(self) -> int:
        return self.pairs + self.masses + self.data


def projected(n: int, k: int, f: int, data: int = 0, workers: int = 1, near: bool = False) -> Need:
    """Memory of one process that works on 1 / `workers` of the pairs, and of all masses.

    A kept pair is a dissimilarity and, where some are near or rows few, a partner, 4 bytes each;
    masses are float32, held by the replica and once more by the result, beside a table of whole
    cache lines.
    """
    per_pair = 4 if are_few(n, k) and not near else 8
    per_row = 4 * (padded_width(f) + 3 * f) + 8 * 6
    return Need(per_pair * n * k // workers, n * per_row, data)


def stored(n: int, k: int, f: int) -> int:
    """Bytes in a checkpoint folder at most: pairs, and two copies of the masses.

    Dissimilarities hardly compress; partners do, to a hundredth.
    """
    return n * k * 4 + n * k // 10 + 2 * n * f * 4


def check_disk(data: Source | PairList, settings: Settings, folder: str) -> None:
    """Refuse a local checkpoint folder on a disk that is too full; object storage is not asked."""
    where = Path(folder.removeprefix("file://")).absolute()
    if "://" in folder.removeprefix("file://"):
        return
    while not where.exists():
        where = where.parent
    need = stored(data.n, _pairs_per_object(data, settings), most_focal_sets(settings))
    there = shutil.disk_usage(where).free
    if need > there:
        raise OSError(
            f"The checkpoint folder needs about {memory.gigabytes(need)}, but "
            f"{memory.gigabytes(there)} are free on the disk of {where}. Name a folder elsewhere, "
            "or lower n_dissimilarities."
        )


def check_memory(
    data: Source | PairList, settings: Settings, client: Any = None, limit: int | None = None
) -> None:
    """Refuse a fit that cannot fit, with the cure; on a cluster, by the smallest worker.

    `limit`: bytes that a fit in this process may take, None for what is free.
    """
    need, k = _projected(data, settings, client), _pairs_per_object(data, settings)
    cures = ["lower n_dissimilarities", "use fewer focal sets", "use more workers"]
    free, where = memory.available(), "here"
    if client is None and limit is not None and limit < free:
        free, where = limit, "within memory_limit"
        cures.append("raise memory_limit")
    cure = f"{', '.join(cures[:-1])}, or {cures[-1]}.".capitalize()
    if isinstance(data, AttributeSource) and data.n > PARTITION_ROWS:
        cure += (
            " Partitions need less memory, but do not take links, weights, given masses, a scale, "
            'n_clusters="auto" or focal_sets="select".'
        )
    memory.check_memory(
        {f"{data.n:,} x {k} kept pairs": need.pairs, "masses": need.masses, "data": need.data},
        cure,
        client=client,
        free=free,
        where=where,
    )


def worker_need(data: Source | PairList, settings: Settings, client: Any) -> int:
    """Bytes that a fit takes of each worker; 0 without workers."""
    if client is None:
        return 0
    return _projected(data, settings, client).total


def _projected(data: Source | PairList, settings: Settings, client: Any) -> Need:
    k, f = _pairs_per_object(data, settings), most_focal_sets(settings)
    workers = 1 if client is None else smallest_worker(client)[0]
    near = isinstance(data, PairList) or near_share(k, settings.n_clusters) > 0
    return projected(data.n, k, f, _data_bytes(data, client), workers, near)


def _data_bytes(data: Source | PairList, client: Any) -> int:
    """What the data take beside the copy that was read: in the order of positions, or sent."""
    if isinstance(data, AttributeSource):
        return data.table.nbytes if client is not None or is_narrow(data) else 0
    if client is None or isinstance(data, PairList):
        return 0
    held = getattr(data, "D", getattr(data, "X", np.zeros(0)))
    return int(held.nbytes if hasattr(held, "nbytes") else 2 * held.data.nbytes)


def _pairs_per_object(data: Source | PairList, settings: Settings) -> int:
    return len(data.other) // data.n if isinstance(data, PairList) else settings.k


def most_focal_sets(settings: Settings) -> int:
    """How many there will be at most: "select" may keep every pair of clusters.

    Rows that are lists have the size of WORDS.
    """
    c, family = settings.n_clusters, settings.focal_sets
    if settings.lists:
        return WORDS
    if isinstance(family, FocalSets):
        return len(family)
    return {"simple": c + 2, "full": 2**c}.get(family, c + 2 + c * (c - 1) // 2)


def row_words(n_clusters: int) -> int:
    """float32 numbers of a row with single clusters and Omega: masses, or a list where many are."""
    return n_clusters + 2 if n_clusters < SPARSE_FROM else WORDS
