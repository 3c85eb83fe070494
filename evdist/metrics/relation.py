"""Relational representation: what a credal partition says about each pair of objects.

The question "are objects i and j in the same cluster?" has the frame Theta = {s, not s}. Masses
on it are rows of four numbers, in the order of FocalSets.full(2):

    empty set, {s}, {not s}, Theta

The partition answers with the bilinear forms (k-CEVCLUS, eqs. (12)-(16); slides, "Pairwise mass
function"), kappa_ij = m_i' C m_j being the degree of conflict of m_i and m_j:

    m_ij(empty)   = m_i' B m_j  = m_i(empty) + m_j(empty) - m_i(empty) m_j(empty)
    m_ij({s})     = m_i' S m_j  = sum_k m_i({k}) m_j({k})
    m_ij({not s}) = kappa_ij - m_ij(empty)
    m_ij(Theta)   = 1 - kappa_ij - m_ij({s})
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief.focal import FocalSets
from evdist.metrics.pairs import all_pairs, same_objects, take_rows
from evdist.partition import CredalPartition

#: The frame {s, not s} with its power set; C and jaccard of pairwise masses come from here.
THETA = FocalSets.full(2)

#: Above this, all pairs would take more than 1.6 GB.
MAX_ALL_PAIRS_OBJECTS = 10_000

#: Of more focal sets only those that have mass are compared: the matrix of all pairs of sets would
#: take more than 134 MB.
MANY_SETS = 1 << 12

#: Rows of all-pairs tables made at once.
ROWS_PER_BLOCK = 256

#: Bytes of masses gathered at once for given pairs; a lazy partition is read once for each.
GATHER_BYTES = 1 << 27


@dataclass(frozen=True)
class Relation:
    """What `relational_representation` gives: masses on {s, not s} for pairs of objects.

    Parameters
    ----------
    i, j : (p,) int
        The two objects of each pair.
    mass : (p, 4) float
        Masses of the empty set, {s}, {not s} and Theta.
    """

    i: NDArray[Any]
    j: NDArray[Any]
    mass: NDArray[Any]

    @property
    def belief(self) -> NDArray[Any]:
        """Bel_ij({s}): how surely i and j are in one cluster, (p,)."""
        return self.mass[:, 1]

    @property
    def plausibility(self) -> NDArray[Any]:
        """Pl_ij({s}) = 1 - kappa_ij: how possibly i and j are in one cluster, (p,)."""
        return self.mass[:, 1] + self.mass[:, 3]


def pair_forms(x: NDArray[Any], y: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """Pairwise masses of the rows of ``x`` with those of ``y``, both (p, f): (p, 4)."""
    alone = focal.cardinality == 1
    # Sums along rows, and not einsum, whose bits depend on where in memory its operands lie.
    conflict = (x @ focal.C * y).sum(axis=1)
    same = (x[:, alone] * y[:, alone]).sum(axis=1)
    return _four(x[:, 0] + y[:, 0] - x[:, 0] * y[:, 0], same, conflict)


def _four(empty: NDArray[Any], same: NDArray[Any], conflict: NDArray[Any]) -> NDArray[Any]:
    """(p, 4) from m_ij(empty), m_ij({s}) and kappa_ij, each (p,)."""
    # Both differences are sums of products of masses: only rounding can make them negative.
    apart = np.maximum(conflict - empty, 0.0)
    theta = np.maximum(1.0 - conflict - same, 0.0)
    return np.stack([empty, same, apart, theta], axis=1)


def pairwise_mass(
    partition: CredalPartition, i: NDArray[Any] | None = None, j: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Mass functions on {s, not s} of pairs of objects (slides, "Pairwise mass function").

    Parameters
    ----------
    partition : CredalPartition
        Whose objects are compared.
    i, j : (p,) int, optional
        The pairs. By default all n(n-1)/2 of them, in the order (0,1), (0,2), ..., (1,2), ...,
        which is that of R's ``dist`` and of ``scipy.spatial.distance.pdist``.

    Returns
    -------
    (p, 4) float64
        Masses of the empty set, {s}, {not s} and Theta.

    Examples
    --------
    >>> from evdist import CredalPartition
    >>> from evdist.metrics import pairwise_mass
    >>> partition = CredalPartition.from_labels([0, 0, 1])
    >>> pairwise_mass(partition)  # of objects 0-1, 0-2, 1-2
    array([[0., 1., 0., 0.],
           [0., 0., 1., 0.],
           [0., 0., 1., 0.]])
    """
    n = same_objects(partition)
    if i is None and j is None and n <= MAX_ALL_PAIRS_OBJECTS:
        return _all_pairs_mass(np.asarray(partition.mass, dtype=float), partition.focal_sets)
    i, j = _pairs(i, j, n)
    out = np.empty((len(i), 4))
    size = max(1, GATHER_BYTES // (16 * len(partition.focal_sets)))
    for start in range(0, len(i), size):
        part = slice(start, start + size)
        x, y = np.split(take_rows(partition, np.concatenate([i[part], j[part]])), 2)
        out[part] = pair_forms(x, y, partition.focal_sets)
    return out


def _all_pairs_mass(M: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """Pairwise masses of all rows i < j: products of matrices instead of gathered rows."""
    n = len(M)
    if len(focal) <= MANY_SETS:
        alone, MC = M[:, focal.cardinality == 1], M @ focal.C
    else:
        used = np.union1d(0, np.flatnonzero(M.any(axis=0)))
        M, F = M[:, used], focal.matrix[used].astype(float)
        alone, MC = M[:, F.sum(axis=1) == 1], M @ (F @ F.T == 0)
    out, done = np.empty((n * (n - 1) // 2, 4)), 0
    for start in range(0, n, ROWS_PER_BLOCK):
        rows, columns = slice(start, start + ROWS_PER_BLOCK), slice(start, n)
        e, f = M[rows, :1], M[None, columns, 0]
        after = np.arange(start, n) > np.arange(n)[rows, None]
        empty = (e + f - e * f)[after]
        same = (alone[rows] @ alone[columns].T)[after]
        conflict = (M[rows] @ MC[columns].T)[after]
        out[done : done + len(same)] = _four(empty, same, conflict)
        done += len(same)
    return out


def pairwise_belief(
    partition: CredalPartition, i: NDArray[Any] | None = None, j: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Bel_ij({s}) for the pairs of :func:`pairwise_mass`, (p,).

    Parameters
    ----------
    partition : CredalPartition
        Whose objects are compared.
    i, j : (p,) int, optional
        The pairs, by default all.

    Examples
    --------
    >>> from evdist import CredalPartition
    >>> from evdist.metrics import pairwise_belief
    >>> pairwise_belief(CredalPartition.from_labels([0, 0, 1]))
    array([1., 0., 0.])
    """
    return pairwise_mass(partition, i, j)[:, 1]


def pairwise_plausibility(
    partition: CredalPartition, i: NDArray[Any] | None = None, j: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Pl_ij({s}) = 1 - kappa_ij for the pairs of :func:`pairwise_mass`, (p,).

    Parameters
    ----------
    partition : CredalPartition
        Whose objects are compared.
    i, j : (p,) int, optional
        The pairs, by default all.

    Examples
    --------
    >>> from evdist import CredalPartition
    >>> from evdist.metrics import pairwise_plausibility
    >>> pairwise_plausibility(CredalPartition.from_labels([0, 0, 1]))
    array([1., 0., 0.])
    """
    mass = pairwise_mass(partition, i, j)
    return mass[:, 1] + mass[:, 3]


def relational_representation(
    partition: CredalPartition, i: NDArray[Any] | None = None, j: NDArray[Any] | None = None
) -> Relation:
    """The tuple R = (m_ij) of slides, "Relational representation", for all or given pairs.

    Parameters
    ----------
    partition : CredalPartition
        Whose objects are compared.
    i, j : (p,) int, optional
        The pairs, by default all.

    Examples
    --------
    >>> from evdist import CredalPartition
    >>> from evdist.metrics import relational_representation
    >>> relational_representation(CredalPartition.from_labels([0, 0, 1])).belief
    array([1., 0., 0.])
    """
    i, j = _pairs(i, j, same_objects(partition))
    return Relation(i, j, pairwise_mass(partition, i, j))


def _pairs(
    i: NDArray[Any] | None, j: NDArray[Any] | None, n: int
) -> tuple[NDArray[Any], NDArray[Any]]:
    if i is None and j is None:
        if n > MAX_ALL_PAIRS_OBJECTS:
            raise ValueError(
                f"All pairs of {n} objects are {n * (n - 1) // 2}; at most "
                f"{MAX_ALL_PAIRS_OBJECTS} objects are allowed. Name the pairs with i and j."
            )
        return all_pairs(n)
    if i is None or j is None:
        raise ValueError("Pairs need both i and j, or neither for all pairs; got only one.")
    i, j = np.atleast_1d(np.asarray(i)), np.atleast_1d(np.asarray(j))
    if i.ndim != 1 or i.shape != j.shape:
        raise ValueError(f"i and j must be vectors of one length, got {i.shape} and {j.shape}.")
    for index in (i, j):
        bad = np.flatnonzero((index < 0) | (index >= n))
        if bad.size:
            raise ValueError(f"Objects are numbered 0..{n - 1}; pair {bad[0]} has {index[bad[0]]}.")
    same = np.flatnonzero(i == j)
    if same.size:
        raise ValueError(
            f"A pair needs two different objects; pair {same[0]} has {i[same[0]]} twice."
        )
    return i, j
