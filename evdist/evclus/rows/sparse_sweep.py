"""One block of a sweep over sparse rows: lists of (cluster, mass), whatever the number of clusters.

A row has mass on the empty set, on Omega and on a few clusters. With s_j(a) the mass of partner j
on cluster a, its conflict with row i is

    kappa_ij = m_i(0) + m_i(Omega) m_j(0) + sum_a m_i(a) (1 - m_j(Omega) - s_j(a)),

so a row's program needs one column for the empty set (1), one for Omega (m_j(0)) and one for each
cluster that the row or its partners name (1 - m_j(Omega), less s_j(a) where j names a). A row
starts with the columns of its own clusters. Those that only partners name are kept aside as a list
of entries; when the program is solved on the columns it has, the entries tell the gradient of all
others, and those with the most negative multipliers, ENTRANTS at most, become columns. At the end
no cluster has one: the row is the minimiser over all clusters, as a dense row is
(`sweep.update_rows`).

Most partners name at most four clusters, nearly all at most eight. Their slots are read four at a
time without asking which of them are free: free ones fall into the last column, which no cluster
has, and add nothing to any sum.

Symbols
-------
T       (n, WORDS) float32, encoded rows: see `evdist.kernels.sparse_rows`
ids     the same memory as uint16
A       (k, 16 or 32) columns of the row's program; column 0 the empty set, 1 Omega

Exactness is that of `sweep`: all masses are on its grid, conflicts are exact in float64, and a row
is kept only where its own terms fall. A row that would need more than SLOTS clusters keeps the
largest; `sparse_rows.full_rows` counts such rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evdist.evclus.rows.sweep import gram_rows, quantise
from evdist.kernels.inner import njit_inner
from evdist.kernels.lanes import LANES
from evdist.kernels.simplex import MAX_ROUNDS, minimise_on_working_set
from evdist.kernels.slots import id_at, mass_at
from evdist.kernels.sparse_rows import FIRST_ID, FIRST_MASS, FREE, SLOTS, WORDS
from evdist.kernels.vector import (
    change_of_squares,
    dots,
    fetch_row,
    residuals,
    spread_rows,
    weighted_sum,
)

#: Cluster numbers and those of free slots.
_NUMBERS = FREE + SLOTS
#: As in `sweep`.
_TOL, _NOISE = 1e-8, 1e-6
#: Columns of a program in narrow and wide scratch.
_NARROW, _WIDE = 16, 32
#: Slots that are read at a time.
_FOUR = 4
#: Clusters that become columns together, at most.
ENTRANTS = 4


class _Scratch(NamedTuple):
    """Room for one row's program."""

    A: NDArray
    S: NDArray
    kappa: NDArray
    after: NDArray
    target: NDArray
    w: NDArray
    r: NDArray
    residual: NDArray
    g: NDArray
    m: NDArray
    new: NDArray
    work: NDArray
    L: NDArray
    d: NDArray
    base: NDArray  # 1 - m_j(Omega) of each partner
    cluster: NDArray  # of each column
    column: NDArray  # (c,) column of each cluster, the last one for none
    G: NDArray  # (c,) sums over the entries of a cluster
    named: NDArray  # clusters that the partners name
    entrant: NDArray  # (ENTRANTS,) clusters that become columns, and their sums
    total: NDArray
    chosen: NDArray
    nothing: NDArray  # `dots` fetches rows of a table; here there is nothing to fetch


@njit_inner
def _scratch(width, degree, G):
    rows = degree + 4
    return _Scratch(
        np.zeros((rows, width), np.float32), np.zeros((width, width)),
        np.zeros(rows), np.zeros(rows), np.zeros(rows),
        np.ones(rows, np.float32), np.zeros(rows, np.float32), np.zeros(rows), np.zeros(width),
        np.zeros(width), np.zeros(width), np.zeros(width, np.uint64),
        np.empty((width, width + 1)), np.empty(width), np.zeros(rows),
        np.zeros(width, np.int64),
        np.full(_NUMBERS, width - 1, np.uint8), G, np.zeros(rows * SLOTS + 1, np.uint64),
        np.zeros(ENTRANTS, np.int64), np.zeros(ENTRANTS),
        np.zeros(ENTRANTS, np.uint64), np.zeros(1, np.uint32),
    )  # fmt: skip


@njit_inner
def _most(block):
    most = 1
    for k in block.degree:
        most = max(most, k)
    return most


@njit(cache=True, nogil=True, inline="always")
def _up_to_four(k):
    return (k + 3) // 4 * 4


@njit_inner
def _own_columns(T, ids, i, m, cluster, column):
    """The columns of row i's own clusters, and its masses in them; returns how many columns."""
    m[0], m[1] = T[i, 0], T[i, 1]
    p = 2
    for q in range(SLOTS):
        mass = T[i, mass_at(q)]
        if mass > 0.0:
            a = np.int64(ids[i, id_at(q)])
            cluster[p] = a
            column[a] = p
            m[p] = mass
            p += 1
    return p


@njit(cache=True, nogil=True, inline="always")
def _take_off(T, ids, j, t, b, A, column):
    """A[t] less the masses of partner j in the columns of the clusters that it names."""
    for q in range(np.uint64(_FOUR)):
        p = np.uint64(column[ids[j, np.uint64(FIRST_ID) + q]])
        A[t, p] = b - T[j, np.uint64(FIRST_MASS) + q]
    if T[j, np.uint64(FIRST_MASS + _FOUR)] > 0.0:
        for q in range(np.uint64(_FOUR), np.uint64(2 * _FOUR)):
            p = np.uint64(column[ids[j, np.uint64(FIRST_ID) + q]])
            A[t, p] = b - T[j, np.uint64(FIRST_MASS) + q]
        if T[j, np.uint64(FIRST_MASS + 2 * _FOUR - 1)] > 0.0:
            for q in range(2 * _FOUR, SLOTS):
                p = np.uint64(column[ids[j, id_at(q)]])
                A[t, p] = b - T[j, mass_at(q)]


@njit_inner
def _columns_of_partners(T, ids, partner, start, k, A, base, column):
    """The partners' masses in the columns there are; clusters without one fall into the last."""
    spread_rows(T, partner, start, k, A, A.shape[1], base)
    last = partner.size - 1
    for t in range(np.uint64(k)):
        j = np.uint64(partner[np.uint64(start) + t])
        # The first lines of the partners of the next row come into the cache meanwhile.
        following = np.int64(partner[min(start + k + np.int64(t), last)])
        fetch_row(T, LANES, following * (WORDS // LANES))
        _take_off(T, ids, j, t, np.float32(base[t]), A, column)


@njit_inner
def _new_columns(T, ids, partner, start, k, A, base, column, r, g, first, columns):
    """The partners' masses in the columns from `first` on, and the gradients of these."""
    for t in range(np.uint64(k)):
        j = np.uint64(partner[np.uint64(start) + t])
        b = np.float32(base[t])
        for p in range(np.uint64(first), np.uint64(columns)):
            A[t, p] = b
        # The other columns get what they have.
        _take_off(T, ids, j, t, b, A, column)
    for p in range(np.uint64(first), np.uint64(columns)):
        total = 0.0
        for t in range(np.uint64(k)):
            total += r[t] * A[t, p]
        g[p] = total


@njit(cache=True, nogil=True, inline="always")
def _add_mass(a, s, r, G, named, count):
    """G[a] += r s; a cluster is noted in `named` when it is met for the first time."""
    before = G[a]
    G[a] = before + r * s
    named[count] = a
    return count + np.uint64((before == 0.0) & (s > 0.0))


@njit_inner
def _entrants(T, ids, partner, start, k, r, base, column, none, G, named, below, entrant, total):
    """The clusters without a column whose gradients are least and below `below`: how many.

    The gradient of cluster a is sum_t r_t (base_t - s_t(a)). G is zero before and after.
    """
    common = 0.0
    count = np.uint64(0)
    for t in range(np.uint64(k)):
        j = np.uint64(partner[np.uint64(start) + t])
        rt = r[t]
        common += rt * base[t]
        for q in range(np.uint64(_FOUR)):
            a = np.uint64(ids[j, np.uint64(FIRST_ID) + q])
            count = _add_mass(a, T[j, np.uint64(FIRST_MASS) + q], rt, G, named, count)
        if T[j, np.uint64(FIRST_MASS + _FOUR)] > 0.0:
            for q in range(np.uint64(_FOUR), np.uint64(2 * _FOUR)):
                a = np.uint64(ids[j, np.uint64(FIRST_ID) + q])
                count = _add_mass(a, T[j, np.uint64(FIRST_MASS) + q], rt, G, named, count)
            if T[j, np.uint64(FIRST_MASS + 2 * _FOUR - 1)] > 0.0:
                for q in range(2 * _FOUR, SLOTS):
                    a = np.uint64(ids[j, id_at(q)])
                    count = _add_mass(a, T[j, mass_at(q)], rt, G, named, count)
    found = 0
    for e in range(count):
        a = named[e]
        # A cluster that was noted twice, since its sum was zero on the way, reads zero then. It
        # must not become two columns.
        x, G[a] = G[a], 0.0
        if x != 0.0 and x > common - below and column[a] == none:
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
def _bound(S, g, work, size, columns):
    """The multiplier of the working set less the tolerance: a gradient below it may enter."""
    nu = scale = 0.0
    for a in range(size):
        nu += g[work[a]]
        scale = max(scale, S[work[a], work[a]])
    for p in range(columns):
        scale = max(scale, abs(g[p]))
    return nu / size - _TOL * scale


@njit_inner
def _row_program(i, start, k, T, ids, partner, delta, weight, look, scratch):
    """Minimise over row i. Returns (gain, columns); no columns where there is no room for them.

    `new` and `cluster` hold the minimiser, rounded to the grid.
    """
    (
        A, S, kappa, after, target, w, r, residual, g, m, new, work, L, d, base, cluster,
        column, G, named, entrant, total, chosen, nothing,
    ) = scratch  # fmt: skip
    width = A.shape[1]
    n = T.shape[0]
    k4 = _up_to_four(k)
    columns = _own_columns(T, ids, i, m, cluster, column)
    room = columns < width
    gain = 0.0
    if room:
        _columns_of_partners(T, ids, partner, start, k, A, base, column)
        for t in range(k, k4):
            for p in range(width):
                A[t, p] = np.float32(0.0)
        size = np.int64(0)
        for p in range(columns):
            new[p] = m[p]
            if m[p] > 0.0:
                work[size] = p
                size += 1
        for p in range(columns, width):
            m[p] = new[p] = 0.0
        dots(A, width, columns, k4, m, kappa, A, nothing, 0)
        if weight.size:
            for t in range(k):
                w[t] = weight[i] * weight[partner[start + t] % n]
        residuals(kappa, delta, start, k, w, target, r)
        weighted_sum(A, width, k, r, g)
        gram_rows(A, k, w, work, np.int64(0), size, S)
        for _ in range(MAX_ROUNDS):
            for _ in range(MAX_ROUNDS):
                size, enter = minimise_on_working_set(
                    S, g, new, columns, size, _TOL, _NOISE, work, L, d
                )
                if enter < 0:
                    break
                work[size] = enter
                gram_rows(A, k, w, work, size, size + 1, S)
                size += 1
            if not look:
                break
            # What the clusters without a column would see.
            dots(A, width, columns, k4, new, after, A, nothing, 0)
            for t in range(k):
                residual[t] = w[t] * (after[t] - target[t])
            below = _bound(S, g, work, size, columns)
            found = _entrants(
                T, ids, partner, start, k, residual, base, column, width - 1, G, named, below,
                entrant, total,
            )  # fmt: skip
            if found == 0:
                break
            found = min(found, width - 1 - columns)
            if found == 0:
                # The widest program does with the columns it has.
                room = width == _WIDE
                break
            first = columns
            for e in range(found):
                cluster[columns] = entrant[e]
                column[entrant[e]] = columns
                work[size] = chosen[e] = columns
                size += 1
                columns += 1
            _new_columns(T, ids, partner, start, k, A, base, column, residual, g, first, columns)
            gram_rows(A, k, w, chosen, np.int64(0), np.int64(found), S)
            for p in range(first, columns):
                for q in range(first):
                    S[q, p] = S[p, q]
    if room:
        _keep_largest(new, columns)
        quantise(new, columns)
        gain = change_of_squares(A, width, columns, k4, new, kappa, target, w, A, nothing, 0)
    for p in range(2, columns):
        column[cluster[p]] = width - 1
    return gain, columns if room else 0


@njit_inner
def _keep_largest(m, columns):
    """At most SLOTS clusters keep mass; what the least of them lose goes to the largest."""
    count = 0
    for p in range(2, columns):
        count += m[p] > 0.0
    while count > SLOTS:
        least = most = -1
        for p in range(2, columns):
            if m[p] > 0.0 and (least < 0 or m[p] < m[least]):
                least = p
            if most < 0 or m[p] > m[most]:
                most = p
        m[most] += m[least]
        m[least] = 0.0
        count -= 1


@njit_inner
def _write(T, ids, i, m, cluster, columns):
    """Row i of the table from masses in columns; clusters ascend."""
    T[i, 0], T[i, 1] = m[0], m[1]
    q = 0
    last = -1
    while q < SLOTS:
        least = -1
        for p in range(2, columns):
            a = cluster[p]
            if m[p] > 0.0 and a > last and (least < 0 or a < cluster[least]):
                least = p
        if least < 0:
            break
        last = cluster[least]
        ids[i, id_at(q)] = last
        T[i, mass_at(q)] = m[least]
        q += 1
    for p in range(q, SLOTS):
        ids[i, id_at(p)] = FREE + p
        T[i, mass_at(p)] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def update_sparse(T, ids, block, weight, rows, change, rest=0.0, look=True):
    """Minimise the objective over each of the given rows in turn, as `sweep.update_rows` does.

    Without `look` a row moves between the clusters that it names already, and names no others.
    """
    row0, first, degree, partner, delta = block
    G = np.zeros(_NUMBERS)
    narrow = _scratch(_NARROW, _most(block), G)
    wide = _scratch(_WIDE, _most(block), G)
    for i in rows:
        row = i - row0
        if -change[row] < rest:
            change[row] = 0.0
            continue
        start, k = first[row], degree[row]
        gain, columns = _row_program(i, start, k, T, ids, partner, delta, weight, look, narrow)
        if columns:
            if gain < 0.0:
                _write(T, ids, i, narrow.new, narrow.cluster, columns)
        else:
            gain, columns = _row_program(i, start, k, T, ids, partner, delta, weight, look, wide)
            if gain < 0.0:
                _write(T, ids, i, wide.new, wide.cluster, columns)
        change[row] = min(gain, 0.0)
