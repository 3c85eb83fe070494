"""Bootstrap percentile intervals of pairwise probabilities, one block of rows at a time.

Reference: Denoeux, Calibrated model-based evidential clustering using bootstrapping, eq. (4) and
algorithm 1.

Symbols
-------
c, B    components of the mixture, bootstrap replicates
post    (w, c, B) float32, posterior probabilities of w objects under every replicate; those below
        TINY, which change no sum in float32, are zero
live    (w, c) bool, whether a component has any probability in any replicate
P_ij    sum_k post_ik post_jk, one value for each replicate: (B,)
"""

from __future__ import annotations

import numpy as np

from evdist.kernels.jit import njit
from evdist.mixture.kernel import posteriors

#: Half the distance of one to the float32 below it.
TINY = np.float32(2.0**-25)
_ENDLESS = 2**31 - 1


@njit(error_model="numpy")
def gaussian_replicates(X, U, mu, a, post):
    """Posterior probabilities of the rows of X (w, d) under B Gaussian mixtures, into `post`.

    U, mu, a are (B, c, d, d), (B, c, d) and (B, c): see `evdist.mixture.kernel`.
    """
    w = X.shape[0]
    B, c, _ = mu.shape
    P = np.empty((w, c))
    density = np.empty(w)
    for b in range(B):
        posteriors(X, 0, w, U[b], mu[b], a[b], P, density)
        for i in range(w):
            for k in range(c):
                post[i, k, b] = P[i, k]


@njit
def mark_live(post, live):
    """Put probabilities below TINY at zero, and say which components are left: live (w, c)."""
    w, c, B = post.shape
    for i in range(w):
        for k in range(c):
            any_left = False
            for b in range(B):
                if post[i, k, b] < TINY:
                    post[i, k, b] = np.float32(0.0)
                else:
                    any_left = True
            live[i, k] = any_left


def ranks(B: int, confidence: float) -> tuple[int, float, int, float]:
    """Place and fraction of the quantiles (1 -+ confidence) / 2 among B sorted values (R's type 7).

    The quantile is v[place] + fraction (v[place + 1] - v[place]).
    """
    tail = 0.5 * (1.0 - confidence)
    low = tail * (B - 1)
    high = (1.0 - tail) * (B - 1)
    return int(low), low - int(low), int(high), high - int(high)


@njit(error_model="numpy")
def _neighbours(bits, place, least, most, found):
    """Values number `place` and `place + 1` of the sorted ones, by halving, into `found` (2,).

    `bits` are the same numbers as integers, whose order is that of numbers that are not negative.
    Counting those up to a middle runs in vector registers, and a middle that falls between the two
    values ends the search: about ten passes, where exchanging values takes a wrong branch for each.
    """
    B = bits.size
    under, upto = np.int64(least) - 1, np.int64(most)  # at most `place` are <= under
    count = B
    while upto - under > 1 and count != place + 1:
        middle = np.int32((under + upto) // 2)
        n = 0
        for b in range(B):
            n += bits[b] <= middle
        if n > place:
            upto, count = np.int64(middle), n
        else:
            under = np.int64(middle)
    end = np.int32(upto)
    value, after = np.int32(least), np.int32(most)
    for b in range(B):
        x = bits[b]
        value = max(value, x if x <= end else np.int32(0))
        after = min(after, x if x > end else np.int32(_ENDLESS))
    found[0] = value
    found[1] = value if count > place + 1 else after  # several may be the same


@njit(error_model="numpy")
def interval_rows(post, live, mine, other, degree, low, low_part, high, high_part, target):
    """Intervals of the pairs of some rows, as targets of the two residuals of each pair.

    Parameters
    ----------
    post, live : (w, c, B), (w, c)
    mine : (rows,) int64
        Where each row stands in `post`.
    other : (rows, k) int64
        Where its partners stand; row r has degree[r] of them.
    low, low_part, high, high_part : see `ranks`
    target : (rows, 2 k) float32
        Out: of row r, the lower bounds P^l of its pairs, then 1 - P^u (eq. (13)); the rest zero.
    """
    _, c, B = post.shape
    v = np.empty(B, np.float32)
    bits = v.view(np.int32)
    pair = np.empty(2, np.float32)
    pair_bits = pair.view(np.int32)
    for row in range(mine.size):
        i, k = mine[row], degree[row]
        for t in range(k):
            j = other[row, t]
            shared = False
            for h in range(c):
                if live[i, h] and live[j, h]:
                    if shared:
                        for b in range(B):
                            v[b] += post[i, h, b] * post[j, h, b]
                    else:
                        for b in range(B):
                            v[b] = post[i, h, b] * post[j, h, b]
                        shared = True
            if not shared:
                target[row, t] = np.float32(0.0)
                target[row, k + t] = np.float32(1.0)
                continue
            least = most = bits[0]
            for b in range(1, B):
                least = min(least, bits[b])
                most = max(most, bits[b])
            _neighbours(bits, low, least, most, pair_bits)
            below = np.float64(pair[0]) + low_part * (np.float64(pair[1]) - np.float64(pair[0]))
            _neighbours(bits, high, least, most, pair_bits)
            above = np.float64(pair[0]) + high_part * (np.float64(pair[1]) - np.float64(pair[0]))
            # Rounding may carry a sum of products beyond one.
            target[row, t] = min(below, 1.0)
            target[row, k + t] = 1.0 - min(above, 1.0)
        for t in range(2 * k, target.shape[1]):
            target[row, t] = np.float32(0.0)
