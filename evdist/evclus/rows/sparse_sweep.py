"""One block of a sweep over sparse rows: lists of (cluster, mass), whatever the number of clusters.

A row has mass on the empty set, on Omega and on a few clusters. With s_j(a) the mass of partner j
on cluster a, its conflict with row i is

    kappa_ij = m_i(0) + m_i(Omega) m_j(0) + sum_a m_i(a) (1 - m_j(Omega) - s_j(a)),

so a row's program needs one column for the empty set (1), one for Omega (m_j(0)) and one for each
cluster that the row or its partners name (1 - m_j(Omega), less s_j(a) where j names a). A row
starts with the columns of its own clusters. When the program is solved on the columns it has,
`entrants` finds the clusters with the most negative multipliers, and they become columns. At the
end there is none: the row is the minimiser over all clusters, as a dense row is
(`sweep.update_rows`). With `promise` above zero it is not: a row looks once, and a cluster whose
gradient is below by less than that, per pair, does not become a column.

Nearly all partners name at most eight clusters. These are compared with a column's cluster all at
once, without asking which of them are free.

Symbols
-------
T       (2 n, LANES) float32, encoded rows line by line: see `evdist.kernels.slots`
ids     the same memory as uint16
C       (COLUMNS, k) columns of the row's program, see `evdist.kernels.columns`; column 0 the empty
        set, 1 Omega

Exactness is that of `sweep`: all masses are on its grid, conflicts are exact in float64, and a row
is kept only where its own terms fall. A row that would need more than SLOTS clusters keeps the
largest; `sparse_rows.full_rows` counts such rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.evclus.rows.entrants import ENTRANTS, FEW_CLUSTERS, find_entrants
from evdist.evclus.rows.sweep import most_partners
from evdist.kernels.columns import (
    change_between,
    cluster_columns,
    column_sums,
    combine_columns,
    residuals_between,
)
from evdist.kernels.grid import quantise
from evdist.kernels.jit import njit, njit_inner
from evdist.kernels.lanes import LANES
from evdist.kernels.simplex import MAX_ROUNDS, minimise_on_working_set, support
from evdist.kernels.slots import put_slot, slot_id, slot_mass
from evdist.kernels.sparse_rows import FIRST_MASS, FREE, MASSES_AHEAD, SLOTS
from evdist.kernels.vector import residuals

#: Cluster numbers and those of free slots.
_NUMBERS = FREE + SLOTS
#: As in `sweep`.
_TOL, _NOISE = 1e-8, 1e-6
#: Columns of a program.
COLUMNS = 31


class _Look(NamedTuple):
    """Room for `find_entrants`."""

    G: NDArray  # (_NUMBERS,) sums by cluster
    named: NDArray  # clusters that the partners name, some of them several times; or
    every: NDArray  # all clusters, where they are few
    which: NDArray  # (k + 1,) partners
    entrant: NDArray  # (ENTRANTS,) clusters that become columns, and their sums
    total: NDArray


class _Scratch(NamedTuple):
    """Room for one row's program."""

    C: NDArray
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
    weighted: NDArray  # a column times the weights of the pairs
    cluster: NDArray  # of each column
    look: _Look


@njit
def _scratch(degree, clusters):
    k, few = _up_to_lanes(degree), clusters <= FEW_CLUSTERS
    look = _Look(
        np.zeros(_NUMBERS), np.zeros(0 if few else k * SLOTS, np.uint64),
        np.arange(clusters if few else 0).astype(np.uint64),
        np.zeros(k + 1, np.uint64), np.zeros(ENTRANTS, np.int64), np.zeros(ENTRANTS),
    )  # fmt: skip
    return _Scratch(
        np.zeros((COLUMNS, k), np.float32), np.zeros((COLUMNS, COLUMNS)),
        np.zeros(k), np.zeros(k), np.zeros(k), np.ones(k, np.float32), np.zeros(k, np.float32),
        np.zeros(k), np.zeros(COLUMNS), np.zeros(COLUMNS), np.zeros(COLUMNS),
        np.zeros(COLUMNS, np.uint64), np.empty((COLUMNS, COLUMNS + 1)), np.empty(COLUMNS),
        np.zeros(k, np.float32), np.zeros(k, np.float32), np.zeros(COLUMNS, np.int64),
        look,
    )  # fmt: skip


@njit(inline="always")
def _up_to_lanes(k):
    return (k + LANES - 1) // LANES * LANES


@njit_inner
def _own_columns(T, ids, i, m, cluster):
    """The columns of row i's own clusters, and its masses in them; returns how many columns."""
    n = T.shape[0] // 2
    m[0], m[1] = T[i, 0], T[i, 1]
    p = 2
    for q in range(SLOTS):
        mass = slot_mass(T, n, i, q)
        if mass <= 0.0:
            break  # free slots come last
        cluster[p] = np.int64(slot_id(ids, n, i, q))
        m[p] = mass
        p += 1
    return p


@njit_inner
def _first_columns(T, partner, start, k, C, base):
    """Columns 0 and 1, and `base`; zero beyond the last partner."""
    empty, omega = np.uint64(0), np.uint64(1)
    for t in range(np.uint64(k)):
        C[empty, t] = np.float32(1.0)
    for t in range(np.uint64(k)):
        j = np.uint64(partner[np.uint64(start) + t])
        C[omega, t] = T[j, np.uint64(0)]
        base[t] = np.float32(1.0) - T[j, np.uint64(1)]
    for t in range(np.uint64(k), np.uint64(_up_to_lanes(k))):
        C[empty, t] = C[omega, t] = base[t] = np.float32(0.0)


@njit_inner
def _cluster_columns(T, ids, partner, start, k, C, base, cluster, first, columns):
    """The columns from `first` on; zero beyond the last partner."""
    # The first lines of the partners of the next row come into the cache meanwhile.
    ahead = k if first == 2 else 0
    stride = np.int64(C.shape[1])
    if cluster_columns(T, partner, start, k, ahead, base, cluster, first, columns, C, stride):
        _add_second_lines(T, ids, partner, start, k, C, base, cluster, first, columns)
    for p in range(np.uint64(first), np.uint64(columns)):
        for t in range(np.uint64(k), np.uint64(_up_to_lanes(k))):
            C[p, t] = np.float32(0.0)


@njit_inner
def _add_second_lines(T, ids, partner, start, k, C, base, cluster, first, columns):
    """What partners with more than eight clusters say in their second lines."""
    n = T.shape[0] // 2
    for t in range(k):
        j = np.int64(partner[start + t])
        # Free slots come last: with one in the first line there is no second.
        slots = SLOTS if slot_mass(T, n, j, MASSES_AHEAD - 1) > 0.0 else MASSES_AHEAD
        for q in range(MASSES_AHEAD, slots):
            a = slot_id(ids, n, j, q)
            for p in range(first, columns):
                if cluster[p] == a:
                    C[p, t] = base[t] - slot_mass(T, n, j, q)


@njit_inner
def _gram_rows(C, count, w, weighted, chosen, a, size, S, columns):
    """Rows chosen[a:size] of Sigma = C W C'. Without weights `w` is empty."""
    stride = np.int64(C.shape[1])
    for e in range(a, size):
        p = np.int64(chosen[e])
        if w.size:
            for t in range(np.uint64(count)):
                weighted[t] = w[t] * C[np.uint64(p), t]
            column_sums(C, stride, 0, columns, count, weighted, 0, S, p * COLUMNS)
        else:
            column_sums(C, stride, 0, columns, count, C, p * stride, S, p * COLUMNS)


@njit_inner
def _first_gram_rows(C, count, w, weighted, chosen, size, S, columns):
    """`_gram_rows` where `chosen` ascends and lacks no column but 0 or 1.

    Without weights Sigma is symmetric to the last bit.
    """
    if w.size:
        _gram_rows(C, count, w, weighted, chosen, 0, size, S, columns)
        return
    stride = np.int64(C.shape[1])
    for e in range(size):
        p = np.int64(chosen[e])
        own = max(p, 2)
        column_sums(C, stride, 0, 2, count, C, p * stride, S, p * COLUMNS)
        column_sums(C, stride, own, columns, count, C, p * stride, S, p * COLUMNS)
        for q in range(2, own):
            S[p, q] = S[q, p]


@njit_inner
def _bound(S, g, work, size, columns, slack):
    """The multiplier of the working set less tolerance and `slack`: a gradient below may enter."""
    nu = scale = 0.0
    for a in range(size):
        nu += g[work[a]]
        scale = max(scale, S[work[a], work[a]])
    for p in range(columns):
        scale = max(scale, abs(g[p]))
    return nu / size - _TOL * scale - slack


@njit_inner
def _row_program(i, start, k, T, ids, partner, delta, weight, promise, scratch):
    """Minimise over row i. Returns (gain, columns).

    `new` and `cluster` hold the minimiser, rounded to the grid.
    """
    (
        C, S, kappa, after, target, w, r, residual, g, m, new, work, L, d, base, weighted, cluster,
        room,
    ) = scratch  # fmt: skip
    n = T.shape[0] // 2
    stride, count = np.int64(C.shape[1]), np.int64(_up_to_lanes(k))
    columns = _own_columns(T, ids, i, m, cluster)
    _first_columns(T, partner, start, k, C, base)
    _cluster_columns(T, ids, partner, start, k, C, base, cluster, 2, columns)
    for p in range(columns):
        new[p] = m[p]
    size = support(m, columns, work)
    combine_columns(C, stride, columns, count, m, kappa)
    pair_weight, pairs = w[:0], np.float64(k)
    if weight.size:
        pairs = 0.0
        for t in range(k):
            w[t] = weight[i] * weight[partner[start + t] % n]
            pairs += w[t]
        pair_weight = w
    residuals(kappa, delta, start, k, w, target, r)
    for t in range(k, count):
        target[t] = 0.0
        r[t] = np.float32(0.0)
    column_sums(C, stride, 0, columns, count, r, 0, g, 0)
    _first_gram_rows(C, count, pair_weight, weighted, work, size, S, columns)
    for looks in range(MAX_ROUNDS):
        for _ in range(MAX_ROUNDS):
            size, enter = minimise_on_working_set(
                S, g, new, columns, size, _TOL, _NOISE, work, L, d
            )
            if enter < 0:
                break
            work[size] = enter
            _gram_rows(C, count, pair_weight, weighted, work, size, size + 1, S, columns)
            size += 1
        if promise == np.inf or (promise > 0.0 and looks > 0):
            break
        # What the clusters without a column would see.
        combine_columns(C, stride, columns, count, new, after)
        common = residuals_between(after, target, w, base, count, residual, r)
        below = _bound(S, g, work, size, columns, promise * pairs)
        found = find_entrants(
            T, ids, partner, start, k, residual, cluster, columns, common - below, room
        )
        # The widest program does with the columns it has.
        found = min(found, COLUMNS - columns)
        if found == 0:
            break
        first, before = columns, size
        for e in range(found):
            cluster[columns] = room.entrant[e]
            new[columns] = 0.0
            work[size] = columns
            size += 1
            columns += 1
        _cluster_columns(T, ids, partner, start, k, C, base, cluster, first, columns)
        column_sums(C, stride, first, columns, count, r, 0, g, 0)
        _gram_rows(C, count, pair_weight, weighted, work, before, size, S, columns)
        for p in range(first, columns):
            for q in range(first):
                S[q, p] = S[p, q]
    _keep_largest(new, columns)
    quantise(new, columns)
    combine_columns(C, stride, columns, count, new, after)
    return change_between(kappa, after, target, w, count), columns


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
    n = T.shape[0] // 2
    # Where the first line had a free slot, all of the second are free.
    slots = SLOTS if T[i, FIRST_MASS + MASSES_AHEAD - 1] > 0.0 else MASSES_AHEAD
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
        put_slot(T, ids, n, i, q, last, m[least])
        q += 1
    for p in range(q, slots):
        put_slot(T, ids, n, i, p, FREE + p, 0.0)


@njit(error_model="numpy")
def update_sparse(T, ids, clusters, block, weight, rows, change, rest=0.0, promise=0.0):
    """Minimise the objective over each of the given rows in turn, as `sweep.update_rows` does.

    A cluster that a row does not name may get mass where its gradient is below that of the row's
    own clusters by more than `promise` per pair; above zero, the row looks for them once. With an
    infinite `promise` it does not look.
    """
    scratch = _scratch(most_partners(block), clusters)
    _update_sparse(T, ids, block, weight, rows, change, rest, promise, scratch)


@njit_inner
def _update_sparse(T, ids, block, weight, rows, change, rest, promise, scratch):
    row0, first, degree, partner, delta, _ = block
    for i in rows:
        row = i - row0
        if -change[row] < rest:
            change[row] = 0.0
            continue
        gain, columns = _row_program(
            i, first[row], degree[row], T, ids, partner, delta, weight, promise, scratch
        )
        if gain < 0.0:
            _write(T, ids, i, scratch.new, scratch.cluster, columns)
        change[row] = min(gain, 0.0)
