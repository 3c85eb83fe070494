"""What a network of NN-EVCLUS shall learn, and from which objects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evdist.nnevclus.deltas import make_deltas
from evdist.nnevclus.loss import LossTerms
from evdist.nnevclus.objects import Objects, Recipe, deal_pieces, piece_count
from evdist.nnevclus.shards import Piece, Shard, deal_rows
from evdist.stores.fingerprints import fingerprint


@dataclass(frozen=True)
class Problem:
    """What a network shall learn, and the device that it learns on in this process.

    Attributes
    ----------
    x, fx : (m, d) inputs, (m,) outputs of the gate, None without one: of all objects, or of the
        sample of many
    recipe : how to make pieces of many objects
    taught : whether networks have learnt the masses of EVCLUS before they are trained
    """

    objects: Objects
    x: NDArray[np.float32]
    fx: NDArray[np.float32] | None
    recipe: Recipe
    terms: LossTerms
    device: torch.device
    taught: bool = False

    @property
    def n(self) -> int:
        return self.objects.n

    @property
    def d0(self) -> float:
        return self.recipe.d0

    def shards(self, count: int) -> list[Shard]:
        """The objects, dealt to so many shards."""
        if self.objects.many is not None:
            return deal_pieces(self.objects.many, count, self.recipe)
        source = self.objects.source
        if count == 1:
            return [Shard(0, [Piece(self.x, self.fx, make_deltas(source, self.d0))])]
        return [
            Shard(number, [Piece(
                self.x[rows], None if self.fx is None else self.fx[rows],
                make_deltas(source.subset(rows.astype(np.uint32)), self.d0),
            )])
            for number, rows in enumerate(deal_rows(self.n, count))
        ]  # fmt: skip

    def piece_rows(self, shards: int) -> int:
        """Objects of the smallest piece of so many shards."""
        least = self.n // shards
        return least if self.objects.many is None else least // piece_count(self.n, shards)

    def fingerprint(self) -> str:
        """Tells whether two trainings see the same inputs."""
        many = self.objects.many
        return fingerprint(self.x) if many is None else fingerprint(self.x, many.fingerprint())
