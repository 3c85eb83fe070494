"""The credal partition whose pairwise masses come nearest to a given relation.

Minimise, over masses M = (m_1, ..., m_n) on the simplex, the mean over kept pairs of

    d^2(m_ij, r_ij) = 1/2 (m_ij - r_ij)' J (m_ij - r_ij)        (Jousselme, squared)

which maximises the credal Rand index in its squared form (slides, "Combination method"). Masses on
Theta sum to one, so the first three coordinates z = (empty, {s}, {not s}) carry everything: with
d = z - z', the distance is 1/2 d' K d, K = P' J P, P the map of d to four coordinates. Given the
other rows z_ij is linear in m_i, and with K = L L'

    L' z_ij = H_j m_i,    H_j = L' [B m_j, S m_j, (C - B) m_j]'     (3, f)

so each row solves 1/2 m'Sm - u'm on the simplex, S = sum_j H_j' H_j, u = sum_j H_j' L' z(r_ij).
Pairs are symmetric, hence every row update lowers the criterion or leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief.focal import FocalSets
from evdist.combine.graph import PairGraph
from evdist.kernels.simplex import solve_simplex
from evdist.metrics.relation import THETA

#: Bytes of gathered rows of H at once.
GATHER_BYTES = 1 << 25

_P = np.vstack([np.eye(3), -np.ones((1, 3))])
#: K = L L', so that d^2 = 1/2 |L' (z - z')|^2.
_L = np.linalg.cholesky(_P.T @ THETA.jaccard @ _P)


@dataclass(frozen=True)
class Nearest:
    """What `nearest_partition` gives: masses, the criterion, and whether it settled.

    Parameters
    ----------
    mass : (n, f) array
        The masses found.
    history : tuple of float
        Mean over kept pairs of the squared Jousselme distance, before the first sweep and after
        each; never rises.
    converged : bool
        Whether `tol` ended the descent, not `max_iter`.
    """

    mass: NDArray[Any]
    history: tuple[float, ...]
    converged: bool


def nearest_partition(
    graph: PairGraph,
    target: NDArray[Any],
    start: NDArray[Any],
    focal_sets: FocalSets,
    *,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> Nearest:
    """Descend from ``start`` to masses whose pairwise mass functions are near ``target``.

    Parameters
    ----------
    graph : PairGraph
        Kept pairs, (n, k).
    target : (n, k, 4)
        r_ij for each kept pair: masses of the empty set, {s}, {not s}, Theta.
    start : (n, f) array
        Masses to start from.
    focal_sets : FocalSets
        The sets that the columns of `start` are for.
    max_iter : int
        Sweeps over all rows.
    tol : float
        Stop when a sweep lowers the criterion by less than this share of it.

    Examples
    --------
    >>> from evdist import CredalPartition, FocalSets
    >>> from evdist.combine import all_pairs_graph, nearest_partition
    >>> from evdist.metrics import pairwise_mass
    >>> graph, focal = all_pairs_graph(3), FocalSets.simple(2)
    >>> known = CredalPartition.from_labels([0, 0, 1])
    >>> pairs = pairwise_mass(known, [0, 0, 1], [1, 2, 2])  # of objects 0-1, 0-2, 1-2
    >>> target = pairs[[[0, 0, 1], [0, 0, 2], [1, 2, 0]]]  # [i, j]: the pair of i and j
    >>> start = [[0, .6, .4, 0], [0, .5, .5, 0], [0, .3, .7, 0]]
    >>> nearest_partition(graph, target, start, focal).mass.argmax(axis=1)
    array([1, 1, 2])
    """
    M = np.array(start, dtype=float)
    H = _linear_maps(M, focal_sets)
    goal = target[..., :3] @ _L.astype(target.dtype)
    history = [_criterion(graph, goal, M, H)]
    for _ in range(max_iter):
        for rows in graph.steps:
            for part in _parts(rows, H, graph):
                A, t = _gather(graph, goal, H, part)
                At = A.transpose(0, 2, 1)
                S, u = At @ A, (At @ t[..., None])[..., 0]
                for r, i in enumerate(part):
                    M[i] = solve_simplex(S[r], u[r], M[i])
            H[rows] = _linear_maps(M[rows], focal_sets)
        history.append(_criterion(graph, goal, M, H))
        if history[-2] - history[-1] <= tol * history[-1] or history[-1] < 1e-15:
            return Nearest(M, tuple(history), True)
    return Nearest(M, tuple(history), False)


def _linear_maps(M: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """H_j for every row of M: (n, 3, f)."""
    empty = M[:, :1] + np.zeros(len(focal))
    empty[:, 0] = M.sum(axis=1)
    forms = np.stack([empty, M * np.diagonal(focal.S), M @ focal.C - empty], axis=1)
    return _L.T @ forms


def _gather(
    graph: PairGraph, goal: NDArray[Any], H: NDArray[Any], rows: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of the least-squares problems of some objects: (r, 3k, f) and (r, 3k)."""
    partner = graph.partner[rows]
    A, t = H[partner], goal[rows].astype(float)
    A[partner < 0] = 0.0
    t[partner < 0] = 0.0
    return A.reshape(len(rows), -1, H.shape[2]), t.reshape(len(rows), -1)


def _parts(rows: NDArray[Any], H: NDArray[Any], graph: PairGraph) -> Iterator[NDArray[Any]]:
    size = max(1, GATHER_BYTES // (8 * graph.partner.shape[1] * H.shape[1] * H.shape[2]))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _criterion(graph: PairGraph, goal: NDArray[Any], M: NDArray[Any], H: NDArray[Any]) -> float:
    """Mean over kept pairs of the squared Jousselme distance."""
    total = 0.0
    for rows in _parts(np.arange(len(M)), H, graph):
        A, t = _gather(graph, goal, H, rows)
        residual = (A @ M[rows][..., None])[..., 0] - t
        total += 0.5 * float(np.vdot(residual, residual))
    return total / int((graph.partner >= 0).sum())
