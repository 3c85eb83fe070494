"""Means over ALL pairs of objects, exact, in one pass over the rows.

Every pairwise mass is a bilinear form m_i' Q m_j, so sums over pairs need no pairs. With
g = sum_i m_i and, for two partitions with masses m and n, G = sum_i m_i n_i' (f, f'):

    sum_{i != j} m_i' Q m_j                      = g' Q g - sum_i m_i' Q m_i
    sum_{i != j} (m_i' Q m_j) (n_i' R n_j)       = <G' Q G, R> - sum_i (m_i' Q m_i) (n_i' R n_i)

where <X, R> = sum_ab X_ab R_ab: write out the product of sums on the left, the two factors over i
(and over j) gather into entries of G. All forms are combinations of four: 1 (all ones), B, S
and C. Only C is dense; the others are read off rows, columns and diagonals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief.focal import FocalSets
from evdist.metrics.pairs import row_blocks, same_objects
from evdist.metrics.relation import pair_forms
from evdist.partition import CredalPartition

#: Rows: empty, {s}, {not s}, Theta. Columns: the forms 1, B, S, C.
_FORMS = np.array(
    [
        [0.0, 1.0, 0.0, 0.0],
        [0.0, 0.0, 1.0, 0.0],
        [0.0, -1.0, 0.0, 1.0],
        [1.0, 0.0, -1.0, -1.0],
    ]
)


def first_moments(partition: CredalPartition) -> NDArray[Any]:
    """Mean over all pairs of the pairwise mass function: (4,)."""
    n = same_objects(partition)
    focal = partition.focal_sets
    g, diagonal = np.zeros(len(focal)), np.zeros(4)
    for (m,) in row_blocks(partition):
        g += m.sum(axis=0)
        diagonal += pair_forms(m, m, focal).sum(axis=0)
    return (_FORMS @ _contract(np.outer(g, g), focal) - diagonal) / (n * (n - 1))


def second_moments(a: CredalPartition, b: CredalPartition) -> NDArray[Any]:
    """Mean over all pairs of the products m_ij(A) m'_ij(A'): (4, 4), A along the rows.

    Any quadratic function of the pairwise masses has its exact mean from this table. Time
    O(n (f^2 + f f' + f'^2)), memory O(f f' + f^2) and one block of rows.
    """
    n = same_objects(a, b)
    fa, fb = a.focal_sets, b.focal_sets
    G, diagonal = np.zeros((len(fa), len(fb))), np.zeros((4, 4))
    # One read is enough for a partition with itself.
    blocks = ((x, x) for (x,) in row_blocks(a)) if a is b else row_blocks(a, b)
    for x, y in blocks:
        G += x.T @ y
        diagonal += pair_forms(x, x, fa).T @ pair_forms(y, y, fb)
    table = np.stack([_contract(H, fb) for H in _congruences(G, fa)])
    return (_FORMS @ table @ _FORMS.T - diagonal) / (n * (n - 1))


def _congruences(G: NDArray[Any], focal: FocalSets) -> tuple[NDArray[Any], ...]:
    """G' Q G for the forms Q = 1, B, S, C; four (f', f') arrays."""
    total, empty, alone = G.sum(axis=0), G[0], G[focal.cardinality == 1]
    cross = np.outer(empty, total)
    return (
        np.outer(total, total),
        cross + cross.T - np.outer(empty, empty),
        alone.T @ alone,
        G.T @ (focal.C @ G),
    )


def _contract(H: NDArray[Any], focal: FocalSets) -> NDArray[Any]:
    """<H, Q> for the forms Q = 1, B, S, C and symmetric H (f, f): (4,)."""
    alone = focal.cardinality == 1
    return np.array(
        [
            H.sum(),
            H[0].sum() + H[:, 0].sum() - H[0, 0],
            np.diagonal(H)[alone].sum(),
            np.vdot(H, focal.C),
        ]
    )
