"""Shards: the parts of the objects that mini-batches are drawn from.

Reference: Denoeux (2021), NN-EVCLUS, section 3.2 and figure 6.

The objects are dealt to S shards once, and each step of a training takes one mini-batch of every
shard. What a shard draws depends on the seed, its number and that of the epoch alone: which
process works on it changes nothing. A shard of very many objects is cut into pieces, which an epoch
takes one after another, so that no more than one of them need be in memory. This module needs NumPy
and torch only.

Symbols
-------
delta   (b, b) transformed dissimilarities inside a mini-batch
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evdist.nnevclus.loss import Loss, transformed
from evdist.nnevclus.network import Inputs, as_tensor

#: Objects that the loss of held-out rows, and the last loss, is computed among at a time.
_EVALUATED = 1000
#: What a piece takes, in multiples of its inputs: these, both sides of a matrix product with their
#: two more columns, and the order of the objects.
_COPIES = 5


#: Gives objects the groups that tell which pairs are near, (n,); None where all weigh the same.
Groups = Callable[[Inputs], Tensor | None] | None


class Deltas(Protocol):
    """Transformed dissimilarities inside subsets of some objects, made when they are needed."""

    def on(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        """A function that gives delta (b, b) among objects `rows` (b,) of the device."""
        ...


@dataclass(frozen=True)
class Products:
    """Dissimilarities that are a function of Euclidean distances: one matrix product each.

    Attributes
    ----------
    table : (n, p)
    end : {"root", "none", "half"}
        Whether d is the Euclidean distance of two rows, its square, or half its square.
    d0 : float
    """

    table: NDArray
    end: str
    d0: float

    def on(self, device: torch.device) -> Callable[[Tensor], Tensor]:
        t, end, d0 = as_tensor(self.table, device), self.end, self.d0
        # |a - b|^2 = -2 a.b + |a|^2 + |b|^2 as one product of longer rows.
        norm, one = (t * t).sum(dim=1, keepdim=True), torch.ones_like(t[:, :1])
        left, right = torch.hstack([-2 * t, norm, one]), torch.hstack([t, one, norm])

        def delta(rows: Tensor) -> Tensor:
            square = left[rows] @ right[rows].T
            if end == "half":
                square.mul_(0.5).square_()
            elif end == "none":
                square.square_()
            return transformed(square, d0)

        return delta


def deal_rows(n: int, shards: int) -> list[NDArray[np.int64]]:
    """Objects of each shard, in order; sizes differ by one at most."""
    if shards == 1:
        return [np.arange(n)]
    # Rows often come sorted by cluster: each shard gets some of everything.
    order = np.random.default_rng([n, 29]).permutation(n)
    return [np.sort(part) for part in np.array_split(order, shards)]


@dataclass(frozen=True)
class Piece:
    """Objects whose mini-batches are drawn among themselves, numbered 0, 1, ... inside it."""

    x: NDArray
    fx: NDArray | None
    deltas: Deltas

    def load(self) -> Piece:
        return self


class Loads(Protocol):
    """A piece, wherever it is; small where its rows are in a store."""

    def load(self) -> Piece: ...


@dataclass(frozen=True)
class Shard:
    """The objects of one shard, in one piece or in several of as many rows, but for one."""

    number: int
    pieces: Sequence[Loads]


class Batch(NamedTuple):
    """A mini-batch: `rows` of a piece, and the seed of random layers."""

    seed: int
    piece: PieceOnDevice
    rows: Tensor


class PieceOnDevice:
    """A piece on the device that trains on it; `held` of its objects are left out.

    What it draws depends on the seed and its `key`, which tells it from all others.
    """

    def __init__(
        self, piece: Piece, key: tuple[int, ...], seed: int, held: int, at: torch.device,
        groups: Groups = None,
    ):  # fmt: skip
        self._key, self._seed, self._device = key, seed, at
        self._inputs = Inputs.of(piece.x, piece.fx, at)
        self._group = None if groups is None else groups(self._inputs)
        self._deltas = piece.deltas.on(at)
        self._n = len(piece.x)
        order = np.random.default_rng([seed, 17, *key]).permutation(self._n)
        self._held, self._own = np.sort(order[:held]), np.sort(order[held:])

    def batches(self, epoch: int, steps: int) -> Iterator[Batch]:
        """A random partition of the objects, a subset for each step."""
        drawn = [self._seed, epoch, *self._key]
        order = self._own[np.random.default_rng(drawn).permutation(len(self._own))]
        seeds = np.random.default_rng(drawn).integers(2**62, size=steps).tolist()
        subsets = torch.from_numpy(order).to(self._device).tensor_split(steps)
        for seed, rows in zip(seeds, subsets, strict=True):
            yield Batch(seed, self, rows)

    def loss(self, loss: Loss, rows: Tensor) -> Tensor:
        """Loss of the network among these rows."""
        group = None if self._group is None else self._group[rows]
        return loss(self._inputs.masses(loss.network, rows), self._deltas(rows), group)

    def evaluate(self, loss: Loss, held: bool) -> Tensor:
        """Loss among the held-out rows, or among all, in fixed subsets."""
        rows = self._held if held else np.arange(self._n)
        rows = rows[np.random.default_rng([self._seed, 19]).permutation(len(rows))]
        count = max(1, round(len(rows) / _EVALUATED))
        total = torch.zeros((), device=self._device)
        for piece in torch.from_numpy(rows).to(self._device).tensor_split(count):
            total += self.loss(loss, piece) / count
        return total


class ShardOnDevice:
    """A shard on the device that trains on it; `held` objects of each piece are left out.

    Pieces that are used are kept as long as there is `room`, in bytes; the others are loaded anew
    in every epoch.
    """

    def __init__(
        self, shard: Shard, seed: int, held: int, device: torch.device, room: float,
        groups: Groups = None,
    ):  # fmt: skip
        self._shard, self._seed, self._held, self._device = shard, seed, held, device
        self._groups = groups
        self._kept: dict[int, PieceOnDevice] = {}
        self._room = room

    @property
    def pieces(self) -> int:
        return len(self._shard.pieces)

    def batches(self, epoch: int, steps: int) -> Iterator[Batch]:
        """So many mini-batches of each piece, one piece after another in a random order."""
        drawn = [self._seed, 37, epoch, self._shard.number]
        for at in np.random.default_rng(drawn).permutation(self.pieces).tolist():
            yield from self._piece(at).batches(epoch, steps)

    def evaluate(self, loss: Loss, held: bool) -> Tensor:
        """Loss among the held-out rows, or among all, of the first piece.

        Objects are dealt to pieces at random: one tells of all.
        """
        return self._piece(0).evaluate(loss, held)

    def _piece(self, at: int) -> PieceOnDevice:
        if at in self._kept:
            return self._kept[at]
        shard = self._shard
        key = (shard.number,) if self.pieces == 1 else (shard.number, at)
        piece = shard.pieces[at].load()
        size = _COPIES * piece.x.nbytes
        found = PieceOnDevice(piece, key, self._seed, self._held, self._device, self._groups)
        if self.pieces == 1 or size <= self._room:
            self._room -= size
            self._kept[at] = found
        return found
