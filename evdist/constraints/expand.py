"""Constraint expansion: links between the neighbours of linked objects.

Reference: Li, Li, Denoeux (2018), k-CEVCLUS, section 3.2 and algorithm 2.

Symbols
-------
N_K(i)   object i and its K nearest neighbours
Delta    d_ir + d_js, how far the pair (r, s) lies from the linked pair (i, j)

Differs:

* The paper gives the candidates of a link twice. Section 3.2: the pairs of N_K(i) x N_K(j) of two
  different objects that are not yet linked; algorithm 2: those of (N_K(i) - N_K(j)) x
  (N_K(j) - N_K(i)). They part where neighbourhoods overlap; we follow the text, as R's evclust
  does.
* A pair has no direction: (r, s) is linked when (s, r) is.
* Equal distances go to the lower object, equal Delta to the lower r, then the lower s. The paper
  leaves ties open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.constraints.check import Pairs, check_links, pair_keys
from evdist.constraints.neighbours import Neighbours, nearest, object_count


def expand_constraints(
    X: ArrayLike | tuple[ArrayLike, ArrayLike],
    must_link: Any,
    cannot_link: Any,
    K: int,
    *,
    metric: str | Callable[[NDArray[Any], NDArray[Any]], float] = "euclidean",
) -> tuple[Pairs, Pairs]:
    """Add to every link the K most similar pairs; k-CEVCLUS, algorithm 2.

    Must-links are expanded first, then cannot-links, each in the order given; a pair that has
    become linked on the way is passed over. Where the neighbourhoods of a link have fewer than K
    pairs to offer, all are added. Only the neighbours of linked objects are searched for.

    The new links are guesses, good ones where K is small: they may contradict each other through
    third objects, which :func:`check_links` would refuse but the penalty of a fit can weigh.

    Parameters
    ----------
    X : (n, d) array, (n, n) array, or (index, distance)
        Attributes; or, with ``metric="precomputed"``, a square matrix of dissimilarities (where
        it is not symmetric, (D + D') / 2 counts); or neighbours found elsewhere, a tuple of two
        (n, q) arrays, q >= K: row i holds neighbours of object i and their dissimilarities.
        An object among its own neighbours does not count.
    must_link, cannot_link : (p, 2) integers or None
        Pairs of objects, checked as :func:`check_links` does.
    K : int
        Links to add to each; the paper found 5 a good choice and more than 10 useless. 0 adds
        none.
    metric : str or callable
        A metric of :class:`sklearn.neighbors.NearestNeighbors`. Not used when X is
        (index, distance).

    Returns
    -------
    ml : (p', 2) int64
        The given must-links, then the new ones.
    cl : (q', 2) int64
    """
    n = object_count(X)
    ml, cl = check_links(must_link, cannot_link, n)
    if not 0 <= K < n:
        raise ValueError(f"K must be 0 to n - 1 = {n - 1} neighbours, got {K}.")
    if K == 0 or not len(ml) + len(cl):
        return ml, cl
    around = nearest(X, np.unique(np.concatenate([ml, cl])), K, metric)
    linked = set(pair_keys(np.concatenate([ml, cl]), n).tolist())
    more_ml = _expand(ml, around, linked, n)
    return np.concatenate([ml, more_ml]), np.concatenate([cl, _expand(cl, around, linked, n)])


def _expand(links: Pairs, around: Neighbours, linked: set[int], n: int) -> Pairs:
    """New links around each of `links`; `linked`, the keys of all links, grows with them."""
    size = around.index.shape[1]
    new: list[tuple[int, int]] = []
    for i, j in around.row_of(links).tolist():
        r, s = around.index[i], around.index[j]
        delta = around.distance[i][:, None] + around.distance[j]
        wanted = size - 1  # each neighbourhood holds the object itself and K others
        # Nearest pairs first: the walk ends after about K of the (K + 1)^2.
        for t in np.lexsort((np.tile(s, size), np.repeat(r, size), delta.ravel())).tolist():
            a, b = int(r[t // size]), int(s[t % size])
            key = min(a, b) * n + max(a, b)
            if a == b or key in linked:
                continue
            linked.add(key)
            new.append((a, b))
            wanted -= 1
            if not wanted:
                break
    return np.array(new, np.int64).reshape(-1, 2)
