"""Rows that links force out of their colour.

Rows of one colour share no kept pair and are updated at the same time. A link may join two of
them; then one of the two is put off to a step of its own. Few rows should be put off, and into few
steps, since each step is a point where all workers wait.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evdist.constraints.check import Pairs
from evdist.kernels.graph import greedy_colours

#: Kept pairs of some rows: (rows,) positions -> (rows, k) partners and (rows,) degrees.
PartnersOf = Callable[[NDArray[np.int64]], tuple[NDArray, NDArray]]

#: Rows whose partners are looked at together.
_BLOCK = 8192


def late_rows(
    ml: Pairs, cl: Pairs, position: NDArray, graph_bounds: NDArray, partners_of: PartnersOf
) -> list[NDArray[np.int64]]:
    """Rows to be updated after the colours, in groups that share no link and no kept pair.

    The colours without these rows, then the groups, are the steps of an exact sweep: within each
    no two rows share a term of the objective, and each row is in one of them. With colours of
    one row (all pairs kept) no row is late.

    Parameters
    ----------
    ml, cl : (p, 2), (q, 2) int64
        Links between objects.
    position : (n,) integers
        Position of each object.
    graph_bounds : (B + 1,) integers
        First position of each colour, and n.
    partners_of : callable
        Kept pairs of any rows, such as :meth:`evdist.kernels.graph.PairGraph.partners_of`.

    Returns
    -------
    list of (g,) int64, positions in increasing order; as :meth:`evdist.evclus.problem.Plan.of`
    takes them
    """
    links = np.asarray(position, np.int64)[np.concatenate([ml, cl])]
    colour = np.searchsorted(graph_bounds, links, side="right")
    rows = _cover(links[colour[:, 0] == colour[:, 1]])
    if not len(rows):
        return []
    first, other = _shared_terms(rows, links, partners_of)
    # By falling degree: the usual order for few groups. A stable sort leaves ties to lower rows.
    visit = np.argsort(-np.diff(first), kind="stable")
    group = greedy_colours(first, other, visit)
    return [rows[group == g] for g in range(group.max() + 1)]


def _cover(links: Pairs) -> NDArray[np.int64]:
    """Rows that together touch every link: always the row with most links left, ties to lower."""
    left: dict[int, set[int]] = {}
    for a, b in links.tolist():
        left.setdefault(a, set()).add(b)
        left.setdefault(b, set()).add(a)
    heap = [(-len(partners), row) for row, partners in left.items()]
    heapq.heapify(heap)
    chosen = []
    while heap:
        degree, row = heapq.heappop(heap)
        partners = left[row]
        if -degree != len(partners) or not partners:
            continue  # an old entry: a partner was chosen since, and a new entry was made
        chosen.append(row)
        for other in partners:
            left[other].remove(row)
            heapq.heappush(heap, (-len(left[other]), other))
        partners.clear()
    return np.sort(np.array(chosen, np.int64))


def _shared_terms(
    rows: NDArray[np.int64], links: Pairs, partners_of: PartnersOf
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The graph of links and kept pairs among `rows`, numbered 0, 1, ..., as compressed rows."""
    edges = [links, links[:, ::-1]]
    for lo in range(0, len(rows), _BLOCK):
        mine = rows[lo : lo + _BLOCK]
        partner, degree = partners_of(mine)
        kept = np.arange(partner.shape[1]) < np.asarray(degree)[:, None]
        pairs = np.column_stack([np.repeat(mine, degree), partner[kept].astype(np.int64)])
        edges.append(pairs[_number(rows, pairs[:, 1]) >= 0])
    both = _number(rows, np.concatenate(edges))
    both = both[(both >= 0).all(axis=1)]
    both = both[np.argsort(both[:, 0], kind="stable")]
    first = np.concatenate([[0], np.cumsum(np.bincount(both[:, 0], minlength=len(rows)))])
    return first, np.ascontiguousarray(both[:, 1])


def _number(rows: NDArray[np.int64], positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Place of each position in the sorted `rows`, -1 where it is not one of them."""
    at = np.minimum(np.searchsorted(rows, positions), len(rows) - 1)
    return np.where(rows[at] == positions, at, -1)
