"""Whether an object is near the cluster that it came to.

With many clusters an object has partners in few of them. Mass on a cluster without partners
conflicts with every partner, as mass on the empty set does, and where partners have mass on Omega a
little less, which fits their dissimilarities a little better. So the sweeps may bring an outlier to
a cluster that it was never compared with, and call it a sure member: 1 to 5 in a hundred of the
outliers among 16 to 100 Gaussians.

An object that has come to another cluster than that of its group, where it began, is therefore
compared with members of both. Where it is farther than d0 from those of the new cluster, and nearer
to those of its group, nothing speaks for the new one: of its mass there the share 1 - phi(d) goes
to its group, d the distance to the nearest member compared, and the rest to the empty set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.sources import Source
from evdist.evclus.rows.sweep import GRID
from evdist.kernels.distances import transform
from evdist.kernels.sparse_rows import decode, encode, most_mass

#: Members of a cluster that an object is compared with.
MEMBERS = 16
#: An object with this mass on a cluster has come to it.
MOST = 0.5
#: Objects that are looked at at a time.
_BLOCK = 1 << 18


def confirm(
    mass: NDArray[np.float32],
    family: FocalSets,
    sparse: bool,
    began: NDArray[np.int32],
    source: Source,
    some: NDArray[np.uint32],
    d0: float,
) -> None:
    """Take mass from clusters that an object came to and is far from.

    Parameters
    ----------
    mass : (n, f) by object, or encoded rows if `sparse`; changed in place
    began : (n,) group of each object, numbered like the clusters
    some : objects among which members of the clusters are looked for
    """
    single = family.singletons

    def top(part: NDArray[np.float32]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The cluster of the largest mass of each row, and that mass."""
        if sparse:
            return most_mass(part)
        label = part[:, single].argmax(axis=1)
        return label, part[np.arange(len(part)), single[label]]

    label, most = top(mass[some])
    stayed = (label == began[some]) & (most >= MOST)
    members, known = _members(some[stayed], label[stayed], family.n_clusters)
    came: list[NDArray[Any]] = []
    now: list[NDArray[np.int64]] = []
    for lo in range(0, len(mass), _BLOCK):
        home = began[lo : lo + _BLOCK]
        label, most = top(mass[lo : lo + _BLOCK])
        at = np.flatnonzero((label != home) & (most >= MOST) & known[label] & known[home])
        came.append(lo + at)
        now.append(label[at])
    rows, label = np.concatenate(came).astype(np.uint32), np.concatenate(now)
    home = began[rows]
    there, here = (_nearest(source, rows, members, to) for to in (label, home))
    far = (there > d0) & (here < there)
    rows, label, home, delta = rows[far], label[far], home[far], here[far]
    transform(delta, d0, delta)
    found = decode(mass[rows], family.n_clusters) if sparse else mass[rows]
    at, old = np.arange(len(rows)), single[label]
    moved = found[at, old]
    back = np.floor(moved * (1.0 - delta) * GRID) / GRID
    found[at, old] = 0.0
    found[at, single[home]] += back
    found[:, 0] += moved - back
    mass[rows] = encode(found) if sparse else found


def _members(
    objects: NDArray[np.uint32], label: NDArray[np.int64], c: int
) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
    """Objects of each cluster, (c, MEMBERS), evenly spaced; and which clusters have any."""
    members = np.zeros((c, MEMBERS), np.uint32)
    known = np.zeros(c, bool)
    order = np.argsort(label, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(label[order])) + 1):
        if len(mine):
            places = np.linspace(0, len(mine) - 1, MEMBERS).astype(int)
            members[label[mine[0]]] = objects[mine[places]]
            known[label[mine[0]]] = True
    return members, known


def _nearest(
    source: Source, rows: NDArray[np.uint32], members: NDArray[np.uint32], label: NDArray[Any]
) -> NDArray[np.float32]:
    """Distance of each object to the nearest of the members of its cluster."""
    found = [np.zeros(0, np.float32)]
    for lo in range(0, len(rows), _BLOCK):
        some = slice(lo, lo + _BLOCK)
        found.append(source.distances(rows[some], members[label[some]]).min(axis=1))
    return np.concatenate(found)
