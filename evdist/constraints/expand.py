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
* Algorithm 2 looks for pairs that are linked already, not for links that follow from others: what
  it adds may contradict through third objects. Such a guess is passed over, unless
  ``consistent=False`` asks for algorithm 2 to the letter.
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
    consistent: bool = True,
) -> tuple[Pairs, Pairs]:
    """Add to every link the K most similar pairs; k-CEVCLUS, algorithm 2.

    Must-links are expanded first, then cannot-links, each in the order given; a pair that has
    become linked on the way is passed over. Where the neighbourhoods of a link have fewer than K
    pairs to offer, all are added. Only the neighbours of linked objects are searched for.

    The new links are guesses, good ones where K is small. A guess that contradicts the links before
    it, directly or through third objects, is passed over: every `fit` takes what is returned.

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
    consistent : bool, default=True
        False keeps guesses that contradict others, as algorithm 2 does: a `fit` refuses them when
        they are given to it, but EVCLUS and CECM can weigh them (their `expand_constraints`).

    Returns
    -------
    ml : (p', 2) int64
        The given must-links, then the new ones.
    cl : (q', 2) int64
        The given cannot-links, then the new ones.
    """
    n = object_count(X)
    ml, cl = check_links(must_link, cannot_link, n)
    if not 0 <= K < n:
        raise ValueError(f"K must be 0 to n - 1 = {n - 1} neighbours, got {K}.")
    if K == 0 or not len(ml) + len(cl):
        return ml, cl
    around = nearest(X, np.unique(np.concatenate([ml, cl])), K, metric)
    linked = set(pair_keys(np.concatenate([ml, cl]), n).tolist())
    groups = _Groups(ml, cl) if consistent else _AnyLink()
    more_ml = _expand(ml, around, linked, n, groups.join)
    more_cl = _expand(cl, around, linked, n, groups.part)
    return np.concatenate([ml, more_ml]), np.concatenate([cl, more_cl])


class _AnyLink:
    """Every guess is as good as any other: algorithm 2 to the letter."""

    def join(self, a: int, b: int) -> bool:
        return True

    part = join


class _Groups:
    """Objects joined by must-links, and which groups of them cannot-links keep apart."""

    def __init__(self, ml: Pairs, cl: Pairs):
        self._parent: dict[int, int] = {}
        self._apart: dict[int, set[int]] = {}
        for a, b in ml.tolist():
            self.join(a, b)
        for a, b in cl.tolist():
            self.part(a, b)

    def _group(self, a: int) -> int:
        parent = self._parent
        while parent.setdefault(a, a) != a:
            parent[a] = a = parent[parent[a]]  # halves the way for the next who asks
        return a

    def join(self, a: int, b: int) -> bool:
        """Add a must-link, unless the two groups are kept apart."""
        a, b = self._group(a), self._group(b)
        mine, other = self._apart.setdefault(a, set()), self._apart.setdefault(b, set())
        if b in mine:
            return False
        if a != b:
            if len(mine) < len(other):
                a, b, mine, other = b, a, other, mine
            self._parent[b] = a
            for group in other:
                self._apart[group].remove(b)
                self._apart[group].add(a)
            mine |= other
        return True

    def part(self, a: int, b: int) -> bool:
        """Add a cannot-link, unless the two are in one group."""
        a, b = self._group(a), self._group(b)
        if a == b:
            return False
        self._apart.setdefault(a, set()).add(b)
        self._apart.setdefault(b, set()).add(a)
        return True


def _expand(
    links: Pairs,
    around: Neighbours,
    linked: set[int],
    n: int,
    accept: Callable[[int, int], bool],
) -> Pairs:
    """New links around each of `links`; `linked`, the keys of all links, grows with them.

    `accept` adds a pair to the groups, or says that it contradicts them.
    """
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
            if a == b or key in linked or not accept(a, b):
                continue
            linked.add(key)
            new.append((a, b))
            wanted -= 1
            if not wanted:
                break
    return np.array(new, np.int64).reshape(-1, 2)
