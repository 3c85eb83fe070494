"""What a fit needs on a device and where its dissimilarities will lie, said before it starts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

from evdist.evclus.gpu import kept
from evdist.evclus.gpu.cuda_rows import MAX_FOCAL_SETS, MAX_IN_REGISTERS

__all__ = ["Choice", "Need", "Room", "choose", "thread_memory"]

#: Bytes of a tile of dissimilarities that are sent or computed at a time.
TILE_BYTES = 1 << 28
#: Rows with more attributes are compared faster than they are sent: see docs/gpu.md.
NARROW = 64


@dataclass(frozen=True)
class Choice:
    """Where dissimilarities lie, "device", "host" or "recomputed", and the places of a tile."""

    where: str
    columns: int = 0

    def __str__(self) -> str:
        return {
            "device": "dissimilarities on the GPU",
            "host": "dissimilarities in host memory",
            "recomputed": "dissimilarities computed in every sweep",
        }[self.where]


@dataclass(frozen=True)
class Need:
    """n objects of d attributes (0: none), f focal sets, k kept pairs of `rows` of the objects.

    `size` is that of a dissimilarity in bytes. Rows with links need their gradients too.
    """

    n: int
    k: int
    f: int
    d: int
    rows: int
    size: int = 4
    linked: bool = False

    @property
    def pairs(self) -> int:
        return self.rows * self.k * self.size

    @property
    def data(self) -> int:
        return 4 * self.d * self.n

    @property
    def masses(self) -> int:
        """Three times: with their table and the result; and a few numbers per object."""
        return self.n * ((3 + self.linked) * 4 * self.f + 24)


def thread_memory(f: int, processors: int, views: int = 1) -> int:
    """The threads' own memory, where the programs of the rows are too large for registers.

    A processor has room for 2,048 threads, each with half of S in float32, half of its factor in
    float64, and some vectors.
    """
    large = (f > MAX_IN_REGISTERS or views > 1) and f <= MAX_FOCAL_SETS
    return 2048 * processors * (6 * f * f + 80 * f) if large else 0


@dataclass(frozen=True)
class Room:
    """Bytes to be had on a device and on its host, and the device's multiprocessors."""

    device: int
    host: int
    processors: int

    @classmethod
    def on(cls, device: torch.device, limit: int | None = None) -> Room:
        """`limit` are the bytes that a fit may take on the device, None for all that are free."""
        host = _host_memory()
        free, processors = host, 0
        if device.type == "cuda":
            # What torch keeps of earlier tensors is free too.
            spare = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
            free = torch.cuda.mem_get_info(device)[0] + spare
            processors = torch.cuda.get_device_properties(device).multi_processor_count
        return cls(free if limit is None else min(free, limit), host, processors)

    @classmethod
    def least(cls, rooms: Iterable[Room]) -> Room:
        """What every one of several devices has at least."""
        rooms = list(rooms)
        return cls(
            min(r.device for r in rooms),
            min(r.host for r in rooms),
            max(r.processors for r in rooms),
        )


def choose(need: Need, room: Room) -> Choice:
    """Where the dissimilarities will lie; refused, with the cure, where nothing fits."""
    free = room.device
    held = need.masses + need.data + thread_memory(need.f, room.processors)
    if held + need.pairs <= free:
        return Choice("device")
    # Of a tile in the host's memory there are two on the device, one on its way; each has room
    # for one piece.
    least = min(kept.PIECE_ROWS, need.rows) * need.k * need.size
    columns = min(TILE_BYTES, (free - held) // 2) // (need.k * need.size)
    if held + 2 * least <= free:
        there = need.pairs <= room.host
        if need.d and (need.d <= NARROW or not there):
            return Choice("recomputed", columns)
        if there:
            return Choice("host", columns)
        raise MemoryError(
            f"The {need.rows:,} x {need.k} kept pairs need {need.pairs / 1e9:.1f} GB, which "
            f"neither the GPU nor the host has ({room.host / 1e9:.1f} GB are free). Lower "
            "n_dissimilarities, or use more workers."
        )
    raise MemoryError(
        f"This fit needs about {(held + 2 * least) / 1e9:.1f} GB on the GPU beside its kept pairs "
        f"({need.n:,} objects, {need.f} focal sets, {need.d} attributes), but {free / 1e9:.1f} GB "
        "are free. Use fewer focal sets or attributes, or fit on the CPU."
    )


def _host_memory() -> int:
    """Bytes of the host's memory that can still be had."""
    info = Path("/proc/meminfo")
    if info.is_file():
        for line in info.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
