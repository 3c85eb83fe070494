"""Whether an object is near the cluster that it came to.

With many clusters an object has partners in few of them. Mass on a cluster without partners
conflicts with every partner, as mass on the empty set does, and where partners have mass on Omega a
little less, which fits their dissimilarities a little better. So the sweeps may bring an outlier to
a cluster that it was never compared with, and call it a sure member: 1 to 3 in a hundred of the
outliers among 16 to 100 Gaussians.

An object that has come to another cluster than that of its group, where it began, is therefore
compared with members of both. Where it is farther than d0 from those of the new cluster, and nearer
to those of its group, nothing speaks for the new one: of its mass there the share 1 - phi(d) goes
to its group, d the distance to the nearest member compared, and the rest to the empty set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.kernels.distances import transform
from evdist.kernels.grid import GRID
from evdist.kernels.looks import most_mass
from evdist.kernels.sparse_rows import decode, encode

#: Members of a cluster that an object is compared with.
MEMBERS = 16
#: An object with this mass on a cluster has come to it.
MOST = 0.5
#: Objects that are looked at at a time.
_BLOCK = 1 << 18

#: Dissimilarities of objects (rows,) to landmarks (rows, MEMBERS).
Distances = Callable[[NDArray[np.uint32], NDArray[np.uint32]], NDArray[np.float32]]


def top(
    mass: NDArray[np.float32], family: FocalSets, sparse: bool
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The cluster of the largest mass of each row, and that mass."""
    if sparse:
        return most_mass(mass)
    single = family.singletons
    label = mass[:, single].argmax(axis=1)
    return label, mass[np.arange(len(mass)), single[label]]


@dataclass(frozen=True)
class Members:
    """Landmarks that have stayed in the cluster of their group.

    Attributes
    ----------
    family : FocalSets
    sparse : bool
        Whether rows of masses are encoded (`evdist.kernels.sparse_rows`).
    number : (c, MEMBERS) numbers of landmarks, evenly spaced among those of the cluster
    known : (c,) whether a cluster has any
    """

    family: FocalSets
    sparse: bool
    number: NDArray[np.uint32]
    known: NDArray[np.bool_]

    @classmethod
    def of(
        cls, mass: NDArray[np.float32], began: NDArray[Any], family: FocalSets, sparse: bool
    ) -> Members:
        """Of landmarks with these masses that began in these groups."""
        c = family.n_clusters
        found = cls(family, sparse, np.zeros((c, MEMBERS), np.uint32), np.zeros(c, bool))
        label, most = top(mass, family, sparse)
        stayed = np.flatnonzero((label == began) & (most >= MOST))
        order = stayed[np.argsort(label[stayed], kind="stable")]
        for mine in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
            if len(mine):
                places = np.linspace(0, len(mine) - 1, MEMBERS).astype(int)
                found.number[label[mine[0]]] = mine[places]
                found.known[label[mine[0]]] = True
        return found

    def confirm(
        self, mass: NDArray[np.float32], began: NDArray[Any], d0: float, distances: Distances
    ) -> None:
        """Take mass of objects from clusters that they came to and are far from, in place."""
        for lo in range(0, len(mass), _BLOCK):
            some = slice(lo, lo + _BLOCK)
            label, most = top(mass[some], self.family, self.sparse)
            home = began[some].astype(np.int64)
            came = (label != home) & (most >= MOST) & self.known[label] & self.known[home]
            rows = np.flatnonzero(came)
            if len(rows):
                self._judge(mass, (lo + rows).astype(np.uint32), label[rows], home[rows], d0,
                            distances)  # fmt: skip

    def _judge(
        self,
        mass: NDArray[np.float32],
        rows: NDArray[np.uint32],
        label: NDArray[np.int64],
        home: NDArray[np.int64],
        d0: float,
        distances: Distances,
    ) -> None:
        """Change `rows` of the masses, which came from `home` to `label`, where that is far."""
        there, here = (distances(rows, self.number[to]).min(axis=1) for to in (label, home))
        far = (there > d0) & (here < there)
        rows, label, home, delta = rows[far], label[far], home[far], here[far]
        transform(delta, d0, delta)
        single = self.family.singletons
        found = decode(mass[rows], self.family.n_clusters) if self.sparse else mass[rows]
        at, old = np.arange(len(rows)), single[label]
        moved = found[at, old]
        back = np.floor(moved * (1.0 - delta) * GRID) / GRID
        found[at, old] = 0.0
        found[at, single[home]] += back
        found[:, 0] += moved - back
        mass[rows] = encode(found) if self.sparse else found
