"""Active learning: which pairs of objects to show to a person next.

Reference: Denoeux, slides "Belief functions and clustering" (2017), "Active learning": a pair of an
object that is classified with high uncertainty and one that is classified with low uncertainty.

Symbols
-------
N_i    doubt about object i in [0, 1]: one less its plausibility margin
pl     (pool, c) contour of the most uncertain objects
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import spatial

from evdist.belief import FocalSets
from evdist.constraints.check import Pairs, as_pairs, pair_keys
from evdist.partition import CredalPartition
from evdist.partition.rows import as_table, gather_rows, select_rows
from evdist.partition.views import approximations, pignistic

Floats = NDArray[np.float64]

#: At most so many of the most uncertain objects are candidates for a question.
POOL = 50_000
#: Distances held at once.
_DISTANCES = 1 << 22


def propose_links(
    partition: CredalPartition,
    n_pairs: int = 10,
    *,
    X: Any = None,
    known: Any = None,
    random_state: int | np.random.Generator | None = None,
) -> Pairs:
    """Propose pairs (uncertain object, sure object) to ask about: same cluster or not?

    Uncertain objects are taken one by one, each the one with the largest product of its doubt,
    1 - ``partition.margin()``, and its distance to the objects already taken or linked: not the
    same neighbourhood twice. The distance is that of the attributes, without X that of the
    contours. No object is asked about twice in one call; one of margin 1 is not asked about.

    The sure object comes from the most plausible cluster of the uncertain one, or from the next
    one where the link is known. It is the object with the greatest pignistic probability of that
    cluster; given X, of the objects in its lower approximation, the one nearest to their mean.

    The masses and X are read in blocks and may be larger than the memory.

    Parameters
    ----------
    partition : CredalPartition
        Whose uncertain objects are asked about.
    n_pairs : int, default=10
        How many pairs to propose.
    X : (n, d) table, optional
        Attributes: a NumPy, Dask or zarr array or a DataFrame.
    known : (p, 2) integers, optional
        Links that are already known, of either kind; these are not proposed.
    random_state : int, Generator or None
        Breaks ties between equally uncertain objects; None takes the lower object.

    Returns
    -------
    (q, 2) int64 array
        First the uncertain and then the sure object; q < n_pairs only when there are no more
        uncertain objects.
    """
    n = partition.n_objects
    if n_pairs < 1:
        raise ValueError(f"n_pairs must be at least 1, got {n_pairs}.")
    if X is not None:
        X = as_table(X)
        if len(X.shape) != 2 or X.shape[0] != n:
            raise ValueError(f"X must have one row for each of the {n} objects, got {X.shape}.")
    links = as_pairs(known, n, "known")
    pool, N = _most_uncertain(1.0 - np.asarray(partition.margin()), random_state)
    if not len(pool):
        return np.empty((0, 2), np.int64)
    pl = np.asarray(partition[pool].plausibility)
    sure = _surest(partition) if X is None else _central(partition, X)
    place, sure_place = (pl, None) if X is None else (_rows(X, pool), _rows(X, sure))
    asked = np.unique(links)
    if not len(asked):
        gap = np.full(len(pool), np.inf)
    elif X is None:
        gap = _gap(place, np.asarray(partition[asked].plausibility))
    else:
        gap = _gap(place, _rows(X, asked))

    taken = set(pair_keys(links, n).tolist())
    pairs: list[tuple[int, int]] = []
    left = np.ones(len(pool), bool)
    while len(pairs) < n_pairs and left.any():
        t = _next(N, gap, left)
        left[t] = False
        away = None if sure_place is None else np.linalg.norm(sure_place - place[t], axis=1)
        i = int(pool[t])
        for k in _candidate_clusters(pl[t], away):
            j = int(sure[k])
            key = min(i, j) * n + max(i, j)
            if i != j and key not in taken:
                taken.add(key)
                pairs.append((i, j))
                gap = np.minimum(gap, _gap(place, place[[t]]))
                break
    return np.array(pairs, np.int64).reshape(-1, 2)


# ---------------------------------------------------------------------- uncertain objects
def _most_uncertain(
    N: Floats, random_state: int | np.random.Generator | None
) -> tuple[NDArray[np.int64], Floats]:
    """Objects with the greatest N > 0, at most POOL, by falling N; and their N."""
    order = np.flatnonzero(N > 0)
    if random_state is not None:
        order = np.random.default_rng(random_state).permutation(order)
    pool = order[np.argsort(-N[order], kind="stable")[:POOL]]
    return pool, N[pool]


def _next(N: Floats, gap: Floats, left: NDArray[np.bool_]) -> int:
    """The object left with the largest N_i gap_i; ties to the first, the most uncertain."""
    # An infinite gap, that of a first question, must not hide the differences in N.
    score = np.where(left, N * (1.0 if np.isinf(gap).all() else gap), -1.0)
    return int(score.argmax())


def _gap(place: Floats, taken: Floats) -> Floats:
    """Distance of each row of `place` to the nearest row of `taken`; (pool,)."""
    step = max(1, _DISTANCES // len(taken))
    parts = [
        spatial.distance.cdist(place[lo : lo + step], taken).min(axis=1)
        for lo in range(0, len(place), step)
    ]
    return np.concatenate(parts)


# ---------------------------------------------------------------------- sure objects
def _candidate_clusters(pl: Floats, away: Floats | None) -> list[int]:
    """Clusters by falling plausibility, ties to the nearer sure object, then the lower number."""
    number = np.arange(len(pl))
    return np.lexsort((number, number if away is None else away, -pl)).tolist()


def _surest(partition: CredalPartition) -> NDArray[np.int64]:
    """The object of greatest pignistic probability in each cluster, ties to the lower; (c,).

    Not the one of least nonspecificity: that of an object halfway between two clusters, m({0}) =
    m({1}) = 1/2, is 0.
    """
    surest = partial(_surest_of_block, focal=partition.focal_sets)
    return _least(gather_rows(surest, partition.mass))


def _least(blocks: list[tuple[Floats, NDArray[np.int64]]]) -> NDArray[np.int64]:
    """Row of the smallest value of each cluster, from those of the blocks; (c,)."""
    value = np.array([v for v, _ in blocks])
    row = np.array([r for _, r in blocks])
    return row[value.argmin(axis=0), np.arange(row.shape[1])]


def _surest_of_block(
    block: NDArray[Any], first: int, focal: FocalSets
) -> tuple[Floats, NDArray[np.int64]]:
    """1 - BetP of the surest row of each cluster, and the row; (c,)."""
    doubt = 1.0 - pignistic(block, focal)
    row = doubt.argmin(axis=0)
    return doubt[row, np.arange(len(row))], row + first


def _central(partition: CredalPartition, X: Any) -> NDArray[np.int64]:
    """In each cluster, of the objects surely in it, the one nearest to their mean; (c,).

    A cluster without sure objects has its surest one.
    """
    c = partition.n_clusters
    lower = partial(_lower_of_block, focal=partition.focal_sets)
    cluster = np.concatenate(gather_rows(lower, partition.mass))
    size = np.bincount(cluster, minlength=c + 1)[:c]
    # The blocks of a table are fixed by its width, so the sum has the same bits everywhere.
    total = sum(gather_rows(partial(_sum_of_block, cluster=cluster, c=c), X))
    centre = total / np.maximum(size, 1)[:, None]
    found = _least(gather_rows(partial(_central_of_block, cluster=cluster, centre=centre), X))
    return np.where(size > 0, found, _surest(partition))


def _lower_of_block(block: NDArray[Any], first: int, focal: FocalSets) -> NDArray[np.int64]:
    """The cluster that an object is surely in, c where there is none; (b,)."""
    lower = approximations(block, focal, "mass", "lower")
    return np.where(lower.any(axis=1), lower.argmax(axis=1), focal.n_clusters)


def _sum_of_block(block: NDArray[Any], first: int, cluster: NDArray[np.int64], c: int) -> Floats:
    """Sums of the rows of each cluster; (c, d)."""
    block = block.astype(float)
    bad = np.argwhere(~np.isfinite(block))
    if len(bad):
        row, column = bad[0]
        raise ValueError(
            f"X must be finite, but X[{first + row}, {column}] is {block[row, column]}. Correct or "
            "fill it, or leave X out."
        )
    mine = cluster[first : first + len(block)]
    return np.array([block[mine == k].sum(axis=0) for k in range(c)])


def _central_of_block(
    block: NDArray[Any], first: int, cluster: NDArray[np.int64], centre: Floats
) -> tuple[Floats, NDArray[np.int64]]:
    """Distance to its centre of the most central row of each cluster, and the row; (c,)."""
    mine = cluster[first : first + len(block)]
    value, row = np.full(len(centre), np.inf), np.zeros(len(centre), np.int64)
    for k in np.unique(mine[mine < len(centre)]):
        of_k = np.flatnonzero(mine == k)
        away = np.linalg.norm(block[of_k] - centre[k], axis=1)
        value[k], row[k] = away.min(), first + of_k[away.argmin()]
    return value, row


def _rows(table: Any, rows: NDArray[np.int64]) -> Floats:
    return np.asarray(select_rows(table, rows), dtype=np.float64)
