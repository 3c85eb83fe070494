"""Links in the form that a sweep reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.constraints.check import Pairs
from evdist.evclus.rows.sweep import Links, no_links


def link_table(
    ml: Pairs, cl: Pairs, position: NDArray, focal_sets: FocalSets, penalty: float
) -> Links:
    """Links as symmetric compressed rows, in positions.

    With Q = C + E, a must-link costs penalty m_i'Q m_j and a cannot-link penalty (2 - m_i'Q m_j);
    k-CEVCLUS, eqs. (12)-(17), where the penalty is rho. Each link stands in the rows of both of
    its ends, partners in increasing order, so that the table does not depend on the order in
    which the links were given.

    Parameters
    ----------
    ml, cl : (p, 2), (q, 2) int64
        Must-links and cannot-links between objects, see :func:`check_links`.
    position : (n,) integers
        Position of each object.
    focal_sets : FocalSets
    penalty : float
        Weight of one link, in the units of the sum of squared residuals.
    """
    if not len(ml) and not len(cl):
        return no_links(len(focal_sets))
    n = len(position)
    pairs = np.asarray(position, np.int64)[np.concatenate([ml, cl])]
    sign = np.repeat([1.0, -1.0], [len(ml), len(cl)])
    row = np.concatenate([pairs[:, 0], pairs[:, 1]])
    other = np.concatenate([pairs[:, 1], pairs[:, 0]])
    order = np.lexsort((other, row))
    first = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    Q = focal_sets.C + focal_sets.E
    return Links(first, other[order], np.tile(sign, 2)[order], Q, float(penalty))
