"""Clusters that enter a sparse row's program: those that partners name and the row does not.

With r_t the weighted residual at partner t and s_t(a) its mass on cluster a, the gradient of
cluster a is sum_t r_t (1 - m_t(Omega) - s_t(a)): a sum that all clusters share, less
G(a) = sum_t r_t s_t(a). A cluster may enter where G(a) is above a threshold.

Partners with r_t <= 0 can only lower G. So the others are added up first; in most rows no cluster
comes above the threshold, and the look is over. Symbols are those of `sparse_sweep`.
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit, njit_inner
from evdist.kernels.slots import slot_id, slot_mass
from evdist.kernels.sparse_rows import FIRST_ID, FIRST_MASS, SLOTS

#: Clusters that become columns together, at most.
ENTRANTS = 4
#: Up to so many clusters it is faster to go through all of them than through those named.
FEW_CLUSTERS = 256
#: Slots that are read at a time.
_FOUR = 4
#: Stands for the sum of a cluster that has a column, or has been chosen.
_TAKEN = -1e300


@njit(inline="always")
def _add_four(T, ids, j, slot, r, G, named, count):
    """G[a] += r s_j(a) for four slots; which they are is noted in `named`, if it has room.

    Free slots have numbers of their own and add nothing. The clusters of a row are different ones,
    so all four sums can be read before one is written.
    """
    i, v = np.uint64(FIRST_ID) + slot, np.uint64(FIRST_MASS) + slot
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    a, b = np.uint64(ids[j, i]), np.uint64(ids[j, i + one])
    c, d = np.uint64(ids[j, i + two]), np.uint64(ids[j, i + three])
    x, y = G[a] + r * T[j, v], G[b] + r * T[j, v + one]
    z, u = G[c] + r * T[j, v + two], G[d] + r * T[j, v + three]
    G[a], G[b], G[c], G[d] = x, y, z, u
    if named.size:
        named[count], named[count + one] = a, b
        named[count + two], named[count + three] = c, d
    return count + np.uint64(_FOUR)


@njit_inner
def _add_partners(T, ids, partner, start, which, first, last, r, G, named, count):
    """Add the partners which[first:last] to G; returns how many numbers `named` has then."""
    n = np.uint64(T.shape[0] // 2)
    for e in range(first, last):
        t = which[e]
        j = np.uint64(partner[np.uint64(start) + t])
        count = _add_four(T, ids, j, np.uint64(0), r[t], G, named, count)
        if T[j, np.uint64(FIRST_MASS + _FOUR)] > 0.0:
            count = _add_four(T, ids, j, np.uint64(_FOUR), r[t], G, named, count)
            if T[j, np.uint64(FIRST_MASS + 2 * _FOUR - 1)] > 0.0:
                for q in range(2 * _FOUR, SLOTS):
                    a = np.uint64(slot_id(ids, n, j, q))
                    G[a] += r[t] * slot_mass(T, n, j, q)
                    if named.size:
                        named[count] = a
                    count += np.uint64(1)
    return count


@njit_inner
def _any_above(G, listed, length, threshold):
    for e in range(length):
        if G[listed[e]] > threshold:
            return True
    return False


@njit_inner
def _largest(G, listed, length, threshold, entrant, total):
    """The listed clusters with the largest sums above the threshold, into `entrant`: how many."""
    found = 0
    for e in range(length):
        a = listed[e]
        x = G[a]
        # Zero: a cluster that no partner names, or the number of a free slot.
        if x > threshold and x != 0.0:
            G[a] = _TAKEN
            if found < ENTRANTS:
                found += 1
            elif x <= total[found - 1]:
                continue
            p = found - 1
            while p > 0 and total[p - 1] < x:
                total[p], entrant[p] = total[p - 1], entrant[p - 1]
                p -= 1
            total[p], entrant[p] = x, np.int64(a)
    return found


@njit_inner
def find_entrants(T, ids, partner, start, k, r, cluster, columns, threshold, look):
    """The clusters without a column whose sums G are largest and above `threshold`: how many.

    They stand in `look.entrant`. `look.G` is zero before and after.
    """
    G, named, every, which, entrant, total = look
    one = np.uint64(1)
    # Partners with positive residuals from the front on, the others from the back.
    front, back = np.uint64(0), np.uint64(k)
    for t in range(np.uint64(k)):
        which[front] = which[back] = t
        rises = np.uint64(r[t] > 0.0)
        front += rises
        back -= one - rises
    for p in range(2, columns):
        G[cluster[p]] = _TAKEN
    count = _add_partners(T, ids, partner, start, which, np.uint64(0), front, r, G, named,
                          np.uint64(0))  # fmt: skip
    few = every.size > 0
    listed = every if few else named
    length = np.uint64(every.size) if few else count
    found = 0
    if _any_above(G, listed, length, threshold):
        count = _add_partners(T, ids, partner, start, which, front + one, np.uint64(k) + one, r, G,
                              named, count)  # fmt: skip
        length = np.uint64(every.size) if few else count
        found = _largest(G, listed, length, threshold, entrant, total)
    for e in range(length):
        G[listed[e]] = 0.0
    for p in range(2, columns):
        G[cluster[p]] = 0.0
    return found
