"""Where the dissimilarities of kept pairs lie while a fit sweeps over them.

On the device where they fit; else in the memory of the host, from where they are sent a tile at a
time while the tile before is worked on; or nowhere: then they are computed again from the
attributes in every sweep. The numbers are the same in every bit, and so are the masses.

Symbols
-------
piece   (a, b), consecutive places of a colour
tile    (a, delta) with delta (k, b - a): whole consecutive pieces
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor

Piece = tuple[int, int]
#: make(colour, a, b, out): dissimilarities of the rows at places a .. b - 1, into out (k, b - a).
Make = Callable[[int, int, int, Tensor], None]
Tile = tuple[int, Tensor]


class Kept(Protocol):
    """Dissimilarities of the rows of some pieces."""

    def parts(self, colour: int) -> Iterator[Tile]:
        """The tiles of a colour, on the device; each is good until the next is asked for."""
        ...

    def columns(self, colour: int, a: int, b: int) -> Tensor:
        """Those of the rows at places a .. b - 1, (k, b - a), on any device."""
        ...


def in_groups(pieces: Sequence[Piece], columns: int) -> list[Piece]:
    """Runs of consecutive pieces with at most `columns` places, one piece at least."""
    groups: list[Piece] = []
    for a, b in pieces:
        if groups and groups[-1][1] == a and b - groups[-1][0] <= columns:
            groups[-1] = (groups[-1][0], b)
        else:
            groups.append((a, b))
    return groups


def keep(
    where: str, make: Make, pieces: Sequence[Sequence[Piece]], columns: int, like: Tensor
) -> Kept:
    """Dissimilarities of `pieces`, by colour, kept `where` `memory.choose` has said.

    Tiles have at most `columns` places; `like` is an empty tensor (k, 0) of their kind.
    """
    if where == "device":
        return Resident.made(make, pieces, like)
    if where == "host":
        return Hosted(make, pieces, columns, like)
    return Recomputed(make, pieces, columns, like)


class Resident:
    """On the device: `tiles` of each colour."""

    def __init__(self, tiles: Sequence[Sequence[Tile]]):
        self._tiles = [list(mine) for mine in tiles]

    @classmethod
    def made(cls, make: Make, pieces: Sequence[Sequence[Piece]], like: Tensor) -> Resident:
        def tile(colour: int, a: int, b: int) -> Tile:
            delta = like.new_empty(len(like), b - a)
            make(colour, a, b, delta)
            return a, delta

        groups = [in_groups(mine, 1 << 62) for mine in pieces]
        return cls([[tile(colour, a, b) for a, b in mine] for colour, mine in enumerate(groups)])

    @classmethod
    def whole(cls, delta: Tensor, bounds: Sequence[int]) -> Resident:
        """All rows of one table (k, n); `bounds` are the limits of the colours."""
        return cls([[(0, delta[:, lo:hi])] for lo, hi in pairwise(bounds)])

    def by_row(self) -> None:
        """Lay the dissimilarities of each row side by side: where a warp solves one row."""
        for tiles in self._tiles:
            for number, (a, delta) in enumerate(tiles):
                tiles[number] = (a, delta.T.contiguous().T)  # one after the other: the old one goes

    def parts(self, colour: int) -> Iterator[Tile]:
        yield from self._tiles[colour]

    def columns(self, colour: int, a: int, b: int) -> Tensor:
        return _columns(self._tiles[colour], a, b)


class Recomputed:
    """Nowhere."""

    def __init__(self, make: Make, pieces: Sequence[Sequence[Piece]], columns: int, like: Tensor):
        self._make, self._like = make, like
        self._groups = [in_groups(mine, columns) for mine in pieces]
        self._room = like.new_empty(len(like) * _widest(self._groups))

    def parts(self, colour: int) -> Iterator[Tile]:
        for a, b in self._groups[colour]:
            delta = _view(self._room, len(self._like), b - a)
            self._make(colour, a, b, delta)
            yield a, delta

    def columns(self, colour: int, a: int, b: int) -> Tensor:
        delta = self._like.new_empty(len(self._like), b - a)
        self._make(colour, a, b, delta)
        return delta


class Hosted:
    """In the memory of the host.

    There are two tiles of room on the device: while one is worked on, a second stream fills the
    other, in the order in which the sweeps will ask for it.
    """

    def __init__(self, make: Make, pieces: Sequence[Sequence[Piece]], columns: int, like: Tensor):
        cuda = like.device.type == "cuda"
        groups = [in_groups(mine, columns) for mine in pieces]
        self._k = len(like)
        self._rooms = [like.new_empty(self._k * _widest(groups)) for _ in range(2)]
        self._tiles: list[list[Tile]] = []
        for colour, mine in enumerate(groups):
            self._tiles.append([])
            for a, b in mine:
                delta = _view(self._rooms[0], self._k, b - a)
                make(colour, a, b, delta)
                there = torch.empty(delta.shape, dtype=delta.dtype, pin_memory=cuda)
                self._tiles[-1].append((a, there.copy_(delta)))
        self._order = [tile for tiles in self._tiles for _, tile in tiles]
        self._lane = _Lane(self._rooms) if cuda else None
        #: Which tile of the order each room holds or is about to hold.
        self._holds: list[int | None] = [None, None]

    def parts(self, colour: int) -> Iterator[Tile]:
        at = sum(len(tiles) for tiles in self._tiles[:colour])
        for number, (a, tile) in enumerate(self._tiles[colour], at):
            room = self._holds.index(number) if number in self._holds else 0
            self._send(number, room)
            if self._lane is not None:
                self._lane.wait(room)
            if len(self._order) > 1:
                self._send((number + 1) % len(self._order), 1 - room)
            yield a, _view(self._rooms[room], *tile.shape)
            if self._lane is not None:
                self._lane.used(room)

    def _send(self, number: int, room: int) -> None:
        """Begin to fill a room, unless that was done before."""
        if self._holds[room] == number:
            return
        self._holds[room] = number
        tile = self._order[number]
        delta = _view(self._rooms[room], *tile.shape)
        if self._lane is None:
            delta.copy_(tile)
        else:
            self._lane.send(tile, delta, room)

    def columns(self, colour: int, a: int, b: int) -> Tensor:
        return _columns(self._tiles[colour], a, b)


class _Lane:
    """A second stream that fills two rooms, each when its last user is done with it."""

    def __init__(self, rooms: Sequence[Tensor]):
        self._device = rooms[0].device
        self._stream = torch.cuda.Stream(self._device)
        # What made the tiles has used the rooms.
        self._stream.wait_stream(torch.cuda.current_stream(self._device))
        self._full = [torch.cuda.Event() for _ in rooms]
        self._free = [torch.cuda.Event() for _ in rooms]
        for room in rooms:
            # Their memory must not be given away while the stream still writes there.
            room.record_stream(self._stream)

    def send(self, tile: Tensor, delta: Tensor, room: int) -> None:
        self._stream.wait_event(self._free[room])
        with torch.cuda.stream(self._stream):
            delta.copy_(tile, non_blocking=True)
        self._full[room].record(self._stream)

    def wait(self, room: int) -> None:
        """Let what comes next on the device wait until the room is full."""
        torch.cuda.current_stream(self._device).wait_event(self._full[room])

    def used(self, room: int) -> None:
        self._free[room].record(torch.cuda.current_stream(self._device))


def _view(room: Tensor, k: int, columns: int) -> Tensor:
    return room[: k * columns].view(k, columns)


def _widest(groups: Sequence[Sequence[Piece]]) -> int:
    return max((b - a for mine in groups for a, b in mine), default=0)


def _columns(tiles: Sequence[Tile], a: int, b: int) -> Tensor:
    parts = [
        delta[:, max(a - lo, 0) : b - lo]
        for lo, delta in tiles
        if lo < b and a < lo + delta.shape[1]
    ]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)
