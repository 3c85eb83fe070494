"""Quadratic programs on the simplex, solved exactly by a warm-started active-set method.

    minimise  1/2 m' S m - u' m   subject to  m >= 0,  sum(m) = 1

This is the row program of IRQP (Li, Li, Denoeux 2018, k-CEVCLUS, eqs. (19)-(20)) and of Bootclus.

Symbols
-------
S   (f, f) positive semi-definite, may be singular
g   gradient S m - u
W   working set: the components that are free to move, in `work[:s]` (unsigned: numba would have
    to ask of every signed index whether it counts from the end)
d   step that solves the program on W without the signs: S_WW d = nu 1 - g_W,  1'd = 0

S is singular whenever a focal set is useless (with no mass on the empty set the column of Omega
is zero), so each step adds a proximal term eps |d|^2 / 2. It keeps the step unique and, because
the step is measured from the current point, vanishes from the optimality conditions as d -> 0.

Only the rows of S that belong to W are ever read. The sweep makes use of it: it computes a row of
the Gram matrix when its component enters, four rows of twelve on average.
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit, njit_inner

#: Proximal term, relative to the mean diagonal of S on the working set.
_EPS = 1e-11
#: Components enter one at a time; more rounds than this only happen between ties at rounding
#: level, where every point visited is a solution.
MAX_ROUNDS = 200


@njit_inner
def _equality_step(S, g, work, s, ridge, L, d):
    """Minimise 1/2 d'(S_WW + eps I)d + g_W'd with 1'd = 0: LDL' and two solves.

    L holds the unit lower factor below its diagonal and the inverse pivots on it; column s is
    the forward solve of the right-hand side 1. eps is `ridge` times the mean diagonal. Returns
    the smallest pivot in the same unit: not above `ridge` when S_WW is singular.
    """
    mean = diagonal = 0.0
    for a in range(s):
        diagonal += S[work[a], work[a]]
        mean += g[work[a]]
    share = 1.0 / s
    diagonal *= share
    mean *= share
    eps = ridge * diagonal + 1e-200
    num = den = 0.0
    least = np.inf
    for a in range(s):
        i = work[a]
        pivot = S[i, i] + eps
        # Only differences of g matter, as 1'd = 0: they vanish at the optimum, g does not, and
        # its rounding divided by a pivot near eps would spoil the step.
        y, z = mean - g[i], 1.0
        for b in range(a):
            x = S[i, work[b]]
            for p in range(b):
                # L[a, p] still holds the unscaled entry L_ap D_p of this row.
                x -= L[a, p] * L[b, p]
            L[a, b] = x
        for b in range(a):
            scaled = L[a, b] * L[b, b]
            pivot -= scaled * L[a, b]
            L[a, b] = scaled
            y -= scaled * d[b]
            z -= scaled * L[b, s]
        # Rounding can push the last pivots of a singular S below the proximal term.
        least = min(least, pivot)
        inverse = 1.0 / max(pivot, eps)
        L[a, a], L[a, s], d[a] = inverse, z, y
        num += y * z * inverse
        den += z * z * inverse
    nu = -num / den
    drift = 0.0
    for a in range(s - 1, -1, -1):
        y = (d[a] + nu * L[a, s]) * L[a, a]
        for p in range(a + 1, s):
            y -= L[p, a] * d[p]
        d[a] = y
        drift += y
    # 1'd = 0 holds up to rounding; share the remainder so that sums never drift.
    drift *= share
    for a in range(s):
        d[a] -= drift
    return least / diagonal if diagonal > 0.0 else 1.0


@njit(error_model="numpy", inline="always")
def support(m, f, work):
    """The components with mass, ascending, into `work`; returns how many."""
    s = np.int64(0)
    for j in range(f):
        if m[j] > 0.0:
            work[s] = j
            s += 1
    return s


@njit_inner
def _contains(work, s, j):
    for a in range(s):
        if work[a] == j:
            return True
    return False


@njit_inner
def minimise_on_working_set(S, g, m, f, s, tol, noise, work, L, d):
    """Minimise over the components in `work[:s]`, dropping those that reach zero.

    Moves `m` and keeps `g` = S m - u up to date. `tol` bounds the error of the optimality
    conditions relative to the scale of S and g. `noise` is the relative error of S: where a pivot
    falls below it, S_WW is singular as far as one can tell and the proximal term is raised to it.
    Scratch: `L` (f, f+1), `d` (f,).

    Returns
    -------
    s, enter : int
        The new size of the working set, and the component outside it whose multiplier is most
        negative, -1 when there is none: then `m` is the minimiser.
    """
    scale = 0.0
    for a in range(s):
        scale = max(scale, S[work[a], work[a]])
    for j in range(f):
        scale = max(scale, abs(g[j]))
    tol *= scale
    nu = 0.0
    for _ in range(MAX_ROUNDS + f):
        if _equality_step(S, g, work, s, _EPS, L, d) < noise:
            _equality_step(S, g, work, s, noise, L, d)
        step, block = 1.0, -1
        for a in range(s):
            if d[a] < 0.0 and m[work[a]] + step * d[a] < 0.0:
                step, block = m[work[a]] / -d[a], a
        size = 0.0
        for a in range(s):
            j = work[a]
            move = step * d[a]
            size = max(size, abs(move))
            m[j] = max(m[j] + move, 0.0)
            for i in range(f):
                g[i] += move * S[j, i]
        if block >= 0:
            m[work[block]] = 0.0
            s -= 1
            for p in range(block, s):
                work[p] = work[p + 1]
            continue
        # On W the gradient is now constant up to rounding: its value is the multiplier nu.
        nu = spread = 0.0
        for a in range(s):
            nu += g[work[a]]
        nu /= s
        for a in range(s):
            spread = max(spread, abs(g[work[a]] - nu))
        if spread <= tol or size <= 1e-15:
            break
    worst, enter = nu - tol, -1
    for j in range(f):
        if g[j] < worst and not _contains(work, s, j):
            worst, enter = g[j], j
    return s, enter


@njit(error_model="numpy")
def solve_simplex(S, u, m0):
    """Minimiser of 1/2 m'Sm - u'm on the simplex, from the feasible start `m0`.

    Parameters
    ----------
    S : (f, f) float64, symmetric positive semi-definite
    u : (f,) float64
    m0 : (f,) float64, non-negative, sum one

    Returns
    -------
    (f,) float64
    """
    f = u.shape[0]
    m = m0.copy()
    work, L, d = np.empty(f, np.uint64), np.empty((f, f + 1)), np.empty(f)
    s = support(m, f, work)
    for _ in range(MAX_ROUNDS + f):
        # Afresh each time: updated gradients would carry the rounding of every round.
        g = S @ m - u
        s, enter = minimise_on_working_set(S, g, m, f, s, 1e-13, 0.0, work, L, d)
        if enter < 0:
            break
        work[s] = enter
        s += 1
    return m / m.sum()
