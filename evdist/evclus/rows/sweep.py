"""One block of a sweep: every row's quadratic program, solved and written back.

EVCLUS minimises the stress by updating one mass function at a time with the others fixed
(Li, Li, Denoeux 2018, k-CEVCLUS, eqs. (18)-(20)). For row i, with A the gathered rows of M C' of
its partners and d the step away from the present masses,

    g(m + d) - g(m) = d' Sigma d + 2 d' (A' W r + u / 2),   Sigma = A' W A,   r = A m - delta.

Symbols
-------
M       (n, f) float32, masses, each on the grid of `evdist.kernels.grid`
table   (v n, F) float32, v projections of M one below the other: row i + q n is m_i P_q. EVCLUS
        has one, P = C, so that kappa_ij = m_i . table[j]; F is f padded to whole cache lines
P       (v, f, F) float32, the projections
partner row of `table` behind each kept pair, uint32; row i owns first[i] .. first[i] + degree[i],
        or shares them with other rows: see `Block`
delta   transformed dissimilarity of each kept pair, float32
weight  (n,) float32, weight of each object, empty when all are one; a pair weighs w_i w_j
link    must-link (sign +1) and cannot-link (sign -1) partners of each row: penalty terms

Why the objective never rises: masses are multiples of 2**-24 that sum to one, so conflicts are
exact in float64 (products of 24-bit numbers, sums below one). Each candidate row is judged by the
exact change of its own terms and kept only if they fall.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evdist.kernels.grid import project_row, quantise
from evdist.kernels.jit import njit, njit_inner
from evdist.kernels.simplex import MAX_ROUNDS, minimise_on_working_set, support
from evdist.kernels.vector import (
    change_of_squares,
    column_squares,
    dots,
    dots_in_table,
    fetch_row,
    gather_rows,
    gram_rows_1,
    gram_rows_2,
    gram_rows_3,
    gram_rows_4,
    gram_rows_5,
    gram_rows_6,
    residuals,
    weighted_sum,
)

#: Relative error allowed in a row's optimality conditions: that of masses rounded to the grid.
_TOL = 1e-8
#: Relative error of Sigma: sums of CHUNK products in float32, with room for the elimination.
_NOISE = 1e-6


#: `Block.at` where each row has partners of its own.
_OWN = np.zeros(0, np.int64)


class Block(NamedTuple):
    """Kept pairs of the rows row0, row0 + 1, ...: what one task works on.

    With `at`, rows share lists of partners (`evdist.kernels.partner_lists`): those of row i are
    partner[at[i - row0]] + i, partner[at[i - row0] + 1] + i, ... modulo 2^32.
    """

    row0: int
    first: NDArray[np.int64]
    degree: NDArray[np.int64]
    partner: NDArray[np.uint32]
    delta: NDArray[np.float32]
    at: NDArray[np.int64] = _OWN


class Links(NamedTuple):
    """Constraint partners of all rows, in compressed rows; `first` is empty when none exist."""

    first: NDArray[np.int64]
    other: NDArray[np.int64]
    sign: NDArray[np.float64]
    Q: NDArray[np.float64]
    penalty: float


def no_links(f: int) -> Links:
    """The Links of a fit without constraints."""
    none = np.zeros(0, np.int64)
    return Links(none, none, np.zeros(0), np.zeros((f, f)), 0.0)


class _Scratch(NamedTuple):
    A: NDArray
    kappa: NDArray
    target: NDArray
    w: NDArray
    r: NDArray
    S: NDArray
    g: NDArray
    m: NDArray
    new: NDArray
    work: NDArray
    L: NDArray
    d: NDArray
    u: NDArray


@njit
def _scratch(f, width, degree):
    # Vectors take four pairs at a time; the pairs beyond a row's degree are kept at zero.
    rows = degree + 4
    w = np.empty(rows, np.float32)
    for t in range(rows):
        w[t] = np.float32(1.0)
    return _Scratch(
        np.zeros((rows, width), np.float32), np.zeros(rows), np.zeros(rows),
        w, np.zeros(rows, np.float32),
        np.empty((f, width)), np.empty(width), np.zeros(width), np.zeros(width),
        np.empty(f, np.uint64), np.empty((f, f + 1)), np.empty(width), np.zeros(f),
    )  # fmt: skip


@njit_inner
def most_partners(block):
    most = 1
    for k in block.degree:
        most = max(most, k)
    return most


# The helpers below take arrays one by one and never slice them: a view, or a tuple of arrays
# handed on, costs reference counts that take longer than the arithmetic.


@njit_inner
def gram_rows(A, k, w, chosen, a, count, S):
    """Rows `chosen[a:count]` of Sigma = A' W A."""
    width = A.shape[1]
    while a < count:
        left = count - a
        if left >= 6:
            gram_rows_6(A, width, k, w, chosen, a, S)
            a += 6
        elif left == 5:
            gram_rows_5(A, width, k, w, chosen, a, S)
            a += 5
        elif left == 4:
            gram_rows_4(A, width, k, w, chosen, a, S)
            a += 4
        elif left == 3:
            gram_rows_3(A, width, k, w, chosen, a, S)
            a += 3
        elif left == 2:
            gram_rows_2(A, width, k, w, chosen, a, S)
            a += 2
        else:
            gram_rows_1(A, width, k, w, chosen, a, S)
            a += 1


@njit_inner
def _solve_row(A, k, w, f, m, S, g, work, L, d):
    """Move `m` to the minimiser of its row program; rows of Sigma are made as they are needed."""
    size = support(m, f, work)
    gram_rows(A, k, w, work, np.int64(0), size, S)
    for _ in range(MAX_ROUNDS + f):
        size, enter = minimise_on_working_set(S, g, m, f, size, _TOL, _NOISE, work, L, d)
        if enter < 0:
            break
        work[size] = enter
        gram_rows(A, k, w, work, size, size + 1, S)
        size += 1
    quantise(m, f)


@njit_inner
def _listed(first, at, row, i):
    """Where the partners of row i begin, and what is added to them."""
    if at.size:
        return at[row], np.int64(i)
    return first[row], np.int64(0)


@njit_inner
def _following(at, row, i, end):
    """Where the partners of the row after i begin, and what is added: only to fetch them.

    `end` is where those of row i end: without lists those of the next row follow there.
    """
    if at.size:
        return at[min(row + 1, at.size - 1)], np.int64(i + 1)
    return end, np.int64(0)


@njit_inner
def _gather(table, partner, start, shift, k, A):
    """The partners' rows of the table into A, and zeros up to a multiple of four."""
    gather_rows(table, table.shape[1], partner, start, shift, k, A)
    for t in range(k, _up_to_four(k)):
        for b in range(A.shape[1]):
            A[t, b] = np.float32(0.0)


@njit(inline="always")
def _up_to_four(k):
    return (k + 3) // 4 * 4


@njit_inner
def _pair_weights(weight, partner, n, i, start, shift, k, w):
    """w_t = w_i w_j for the pairs of row i."""
    for t in range(k):
        w[t] = weight[i] * weight[np.uint32(partner[start + t] + shift) % n]


@njit_inner
def _add_link_terms(M, links, i, g, f):
    """g += penalty sum_j sign_j Q m_j over the links of row i, k-CEVCLUS eq. (20b)."""
    for t in range(links.first[i], links.first[i + 1]):
        x = links.penalty * links.sign[t]
        for a in range(f):
            total = 0.0
            for b in range(f):
                total += links.Q[a, b] * M[links.other[t], b]
            g[a] += x * total


@njit(error_model="numpy")
def update_rows(M, table, P, block, weight, links, rows, change, rest=0.0):
    """Minimise the objective over each of the given rows of a block in turn, the others fixed.

    Rows of one colour share no pair and no link, so any split of them over threads or workers
    gives the same bits. `change[i - row0]` receives the exact change of the objective, zero or
    negative, that row i brought. A row that last brought less than `rest` is left alone.
    """
    scratch = _scratch(M.shape[1], table.shape[1], most_partners(block))
    _update_rows(M, table, P, block, weight, links, rows, change, rest, scratch)


@njit_inner
def _update_rows(M, table, P, block, weight, links, rows, change, rest, scratch):
    n, f = M.shape
    width = table.shape[1]
    row0, first, degree, partner, delta, at = block
    A, kappa, target, w, r, S, g, m, new, work, L, d, u = scratch
    for i in rows:
        row = i - row0
        if -change[row] < rest:
            change[row] = 0.0
            continue
        start, k = first[row], degree[row]
        listed, shift = _listed(first, at, row, i)
        k4 = _up_to_four(k)
        for j in range(f):
            m[j] = new[j] = M[i, j]
        fetch_row(table, width, i)
        _gather(table, partner, listed, shift, k, A)
        # The partners of the next row are fetched behind the two passes over this row's.
        following, moved = _following(at, row, i, start + k)
        dots(A, width, f, k4, m, kappa, table, partner, following, moved)
        if weight.size:
            _pair_weights(weight, partner, n, i, listed, shift, k, w)
        residuals(kappa, delta, start, k, w, target, r)
        weighted_sum(A, width, k, r, g)
        if links.first.size:
            for j in range(f):
                u[j] = 0.0
            _add_link_terms(M, links, i, u, f)
            for j in range(f):
                g[j] += 0.5 * u[j]
        _solve_row(A, k, w, f, new, S, g, work, L, d)
        gain = change_of_squares(
            A, width, f, k4, new, kappa, target, w, table, partner, following + k4 // 2, moved
        )
        for j in range(f):
            gain += u[j] * (new[j] - m[j])
        change[row] = min(gain, 0.0)
        if gain < 0.0:
            for j in range(f):
                M[i, j] = new[j]
            project_row(new, f, P, table, n, i)


@njit(error_model="numpy")
def assign_rows(M, table, block, lo, hi):
    """Give each row lo..hi-1 the minimiser of its own program against a fixed table.

    The start is the best single focal set: the answer does not depend on what M held before.
    Used to place objects against landmarks: for the start of a fit, for new objects. A row
    without pairs goes to the empty set.
    """
    scratch = _scratch(M.shape[1], table.shape[1], most_partners(block))
    _assign_rows(M, table, block, lo, hi, scratch)


@njit_inner
def _assign_rows(M, table, block, lo, hi, scratch):
    f = M.shape[1]
    width = table.shape[1]
    row0, first, degree, partner, delta, at = block
    A, kappa, target, w, r, S, g, m, _, work, L, d, _ = scratch
    for i in range(lo, hi):
        row = i - row0
        start, k = first[row], degree[row]
        listed, shift = _listed(first, at, row, i)
        _gather(table, partner, listed, shift, k, A)
        # A 0 - delta: with it, g = -A' delta is the gradient at m = 0.
        residuals(kappa, delta, start, k, w, target, r)
        weighted_sum(A, width, k, r, g)
        column_squares(A, width, k, d)
        for j in range(f):
            m[j] = 0.0
        best = 0
        for j in range(f):
            if d[j] + 2.0 * g[j] < d[best] + 2.0 * g[best]:
                best = j
        m[best] = 1.0
        work[0] = best
        gram_rows(A, k, w, work, np.int64(0), np.int64(1), S)
        for j in range(f):
            g[j] += S[best, j]
        _solve_row(A, k, w, f, m, S, g, work, L, d)
        for j in range(f):
            M[i, j] = m[j]


@njit(error_model="numpy")
def block_objective(M, table, block, weight, links, cuts):
    """Sums over the pairs of the rows from each of `cuts` to the next, (cuts - 1, 2): weighted
    squared residuals, and link penalties.

    Every pair is kept by both of its rows, so the objective is half the sum over all blocks.
    """
    out = np.empty((len(cuts) - 1, 2))
    scratch = _scratch(M.shape[1], table.shape[1], most_partners(block))
    for q in range(len(out)):
        lo, hi = cuts[q], cuts[q + 1]
        out[q] = _block_objective(M, table, block, weight, links, lo, hi, scratch)
    return out


@njit_inner
def _block_objective(M, table, block, weight, links, lo, hi, scratch):
    n, f = M.shape
    width = table.shape[1]
    row0, first, degree, partner, delta, at = block
    _, kappa, _, w, _, _, _, m, _, _, _, _, u = scratch
    stress = penalty = 0.0
    for i in range(lo, hi):
        row = i - row0
        start, k = first[row], degree[row]
        listed, shift = _listed(first, at, row, i)
        for j in range(f):
            m[j] = M[i, j]
        dots_in_table(table, width, f, partner, listed, shift, _up_to_four(k), m, kappa)
        if weight.size:
            _pair_weights(weight, partner, n, i, listed, shift, k, w)
        for t in range(k):
            residual = kappa[t] - delta[start + t]
            stress += w[t] * residual * residual
        if links.first.size:
            for j in range(f):
                u[j] = 0.0
            _add_link_terms(M, links, i, u, f)
            for j in range(f):
                penalty += u[j] * m[j]
            for t in range(links.first[i], links.first[i + 1]):
                # A cannot-link costs 2 - m_i'(C + E)m_j, k-CEVCLUS eq. (16).
                penalty += links.penalty * (1.0 - links.sign[t])
    return stress, penalty
