"""What a fit needs on a device and where its dissimilarities will lie, said before it starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from evdist.engine import plan
from evdist.engine.memory import available, check_memory
from evdist.evclus.rows.cuda import MAX_FOCAL_SETS, MAX_IN_REGISTERS

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

    Rows with links need their gradients too. Of `lists` of clusters, f numbers each, the programs
    lie in shared memory.
    """

    n: int
    k: int
    f: int
    d: int
    rows: int
    linked: bool = False
    lists: bool = False

    @property
    def pairs(self) -> int:
        return self.rows * self.k * 4

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
        host = available()
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
    threads = 0 if need.lists else thread_memory(need.f, room.processors)
    held = need.masses + need.data + threads
    if held + need.pairs <= room.device:
        return Choice("device")
    # Of a tile in the host's memory there are two on the device, one on its way; each has room
    # for one piece.
    least = min(plan.PIECE_ROWS, need.rows) * need.k * 4
    parts = {
        f"masses of {need.n:,} objects on {need.f} focal sets": need.masses,
        f"{need.d} attributes": need.data,
        "the threads": threads,
        "kept pairs on their way": 2 * least,
    }
    check_memory(
        parts, "Use fewer focal sets or attributes, or fit on the CPU.",
        free=room.device, where="on the GPU",
    )  # fmt: skip
    columns = min(TILE_BYTES, (room.device - held) // 2) // (need.k * 4)
    there = need.pairs <= room.host
    if need.d and (need.d <= NARROW or not there):
        return Choice("recomputed", columns)
    check_memory(
        {f"{need.rows:,} x {need.k} kept pairs": need.pairs},
        "Lower n_dissimilarities, or use more workers.",
        what="A fit whose kept pairs do not fit on the GPU", free=room.host, where="on its host",
    )  # fmt: skip
    return Choice("host", columns)
