"""EM for one covariance model: from given parameters, on weighted rows, many replicates at once.

One iteration is one pass over the rows: posteriors and the sums of r, r z, r z z' are taken block
by block (evdist.mixture.kernel), and the M-step sees nothing but those sums. Blocks have a fixed
number of rows and their sums are added in order, so the threads make no difference to any bit, and
neither do the other replicates.

Collapse. A volume, or a variance along an axis, that would fall below FLOOR times the smallest
variance of a coordinate (that is not constant) is lifted there. A fit whose last M-step had to do
so, or that lost all the weight of a component, has `failed` set, with the reason; its parameters
are finite all the same.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.kernels.threads import thread_count
from evdist.mixture.covariance import Spread, estimate
from evdist.mixture.kernel import accumulate
from evdist.mixture.parameters import Parameters, log_factors, whitening

#: Smallest variance of a component along an axis, as a part of the smallest of a coordinate.
FLOOR = 1e-9
#: A component with less than this part of the weight has lost its objects.
_EMPTY = 1e-9
#: Rows of a block, the unit of work of a thread.
_ROWS = 8192


@dataclass(frozen=True)
class EMResult:
    """Where EM stopped: what `fit_em` gives.

    Attributes
    ----------
    parameters : Parameters
        The mixture.
    loglik : float
        Of these parameters.
    n_iter : int
        M-steps made.
    converged : bool
        Whether `tol` ended EM, not `max_iter`.
    failed : str or None
        Why the fit is not to be used; None for a good one.
    """

    parameters: Parameters
    loglik: float
    n_iter: int
    converged: bool
    failed: str | None


class _State(NamedTuple):
    """Parameters of B replicates."""

    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    spread: Spread

    def take(self, chosen: NDArray[Any]) -> _State:
        return _State(self.weights[chosen], self.means[chosen], self.spread.take(chosen))

    def parameters(self, model: str, b: int) -> Parameters:
        s = self.spread
        return Parameters(model, self.weights[b], self.means[b], s.volumes[b], s.shapes[b], s.D[b])


class _Sums(NamedTuple):
    """What the rows say: sums of r, r z and r z z', and the log-likelihoods."""

    R: NDArray[np.float64]
    Z: NDArray[np.float64]
    ZZ: NDArray[np.float64]
    loglik: NDArray[np.float64]


def fit_em(
    X: ArrayLike,
    parameters: Parameters,
    *,
    sample_weight: ArrayLike | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = 1,
) -> EMResult:
    """Fit the model of `parameters` to weighted rows, starting there.

    Parameters
    ----------
    X : (n, d) array
        The rows.
    parameters : Parameters
        The mixture to start from; its model is the one that is fitted.
    sample_weight : (n,) array, zero or more
        Such as the counts of a bootstrap sample; rows of weight zero cost nothing.
    tol : float
        Stop when an iteration raises the log-likelihood L by less than tol * (1 + abs(L)).
    max_iter : int, default=1000
        Maximum number of iterations.
    n_jobs : int or None
        Threads; None is all cores. The result does not depend on it.
    """
    X = np.ascontiguousarray(X, dtype=float)
    weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(X),):
        raise ValueError(f"sample_weight must have shape ({len(X)},), got {weight.shape}.")
    return fit_em_many(
        X, parameters, weight[None], tol=tol, max_iter=max_iter, n_jobs=n_jobs
    )[0]  # fmt: skip


def fit_em_many(
    X: ArrayLike,
    parameters: Parameters,
    counts: ArrayLike,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_jobs: int | None = 1,
) -> list[EMResult]:
    """:func:`fit_em` for many weightings of the same rows, each from the same parameters.

    Parameters
    ----------
    X : (n, d) array
        The rows.
    parameters : Parameters
        The mixture to start from.
    counts : (B, n) array, zero or more
        One row of weights for each replicate.
    tol : float, default=1e-6
        As in `fit_em`.
    max_iter : int, default=1000
        As in `fit_em`.
    n_jobs : int or None, default=1
        Threads; None is all cores. The result does not depend on it.

    Returns
    -------
    list of B EMResult
        The same, bit for bit, as B calls of `fit_em`.
    """
    X, W = np.ascontiguousarray(X, dtype=float), np.ascontiguousarray(counts, dtype=float)
    _check(X, parameters, W)
    start = _State(parameters.weights[None], parameters.means[None], parameters.spread)
    state = start.take(np.zeros(len(W), dtype=np.intp))
    with ThreadPoolExecutor(thread_count(n_jobs)) as pool:
        rows = _Rows(X, W, pool, thread_count(n_jobs))
        return _iterate(rows, parameters.model, state, tol, max_iter)


def _check(X: NDArray[Any], parameters: Parameters, W: NDArray[Any]) -> None:
    d = parameters.n_features
    if X.ndim != 2 or X.shape[1] != d:
        raise ValueError(f"X must have shape (n, {d}) for these parameters, got {X.shape}.")
    finite = np.isfinite(X).all(axis=1)
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(f"X must be finite, but row {row} is {X[row].tolist()}; leave it out.")
    if W.ndim != 2 or W.shape[1] != len(X):
        raise ValueError(f"counts must have shape (B, {len(X)}), got {W.shape}.")
    bad = ~(np.isfinite(W) & (W >= 0))
    if bad.any():
        b, i = np.argwhere(bad)[0].tolist()
        raise ValueError(
            f"Weights must be finite and not negative, but row {i} has {W[b, i]} (replicate {b})."
        )
    if not W.any(axis=1).all():
        b = int(W.any(axis=1).argmin())
        raise ValueError(f"Weights must not all be zero, but those of replicate {b} are.")


class _Rows:
    """The data and its weights, cut into blocks."""

    def __init__(self, X: NDArray[Any], W: NDArray[Any], pool: ThreadPoolExecutor, n_threads: int):
        self.X, self.W = X, W
        self.blocks = -(-len(X) // _ROWS)
        self._pool, self._n_threads = pool, n_threads
        self.floor = np.array([FLOOR * smallest_variance(X, w) for w in W])

    def sums(self, replicates: NDArray[Any], state: _State) -> _Sums:
        """Sums of some replicates, whose parameters are `state`'s."""
        b, (c, d), q = len(replicates), state.means.shape[1:], self.blocks
        out = _Sums(
            np.zeros((b, q, c)), np.zeros((b, q, c, d)), np.zeros((b, q, c, d, d)), np.zeros((b, q))
        )
        U, a = whitening(state.spread), log_factors(state.weights, state.spread)
        which, block = np.divmod(np.arange(b * q), q)
        items = np.stack([which, replicates[which], block], axis=1)

        def run(part: NDArray[Any]) -> None:
            accumulate(self.X, self.W, part, _ROWS, U, state.means, a, *out)

        parts = np.array_split(items, min(self._n_threads, len(items)))
        if len(parts) == 1:
            run(parts[0])
        else:
            list(self._pool.map(run, parts))
        return _Sums(*(s.sum(axis=1) if q > 1 else s[:, 0] for s in out))


def smallest_variance(X: NDArray[Any], w: NDArray[Any]) -> float:
    """Smallest variance of a column that is not constant (one, where all are); rows weighted."""
    total, centre = w.sum(), X[int(w.argmax())]
    first, second = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for lo in range(0, len(X), _ROWS):
        Y, v = X[lo : lo + _ROWS] - centre, w[lo : lo + _ROWS]
        first += v @ Y
        second += v @ (Y * Y)
    variance = second / total - (first / total) ** 2
    # Rounding leaves a constant column with a trace of variance.
    varies = variance > 1e-14 * second / total
    return float(variance[varies].min()) if varies.any() else 1.0


def _iterate(rows: _Rows, model: str, state: _State, tol: float, max_iter: int) -> list[EMResult]:
    """The EM loop; a replicate that stops leaves it."""
    B = len(rows.W)
    results: list[EMResult | None] = [None] * B
    active = np.arange(B)
    before = np.full(B, -np.inf)
    collapsed = np.zeros(B, dtype=bool)
    for n_iter in range(max_iter + 1):
        sums = rows.sums(active, state)
        small = sums.loglik - before <= tol * (1 + np.abs(sums.loglik))
        lost = (sums.R <= _EMPTY * sums.R.sum(axis=1, keepdims=True)).any(axis=1)
        over = small | lost | (n_iter == max_iter)
        for i in np.flatnonzero(over).tolist():
            reason = None
            if lost[i]:
                reason = f"component {int(sums.R[i].argmin())} has lost all its weight"
            elif collapsed[i]:
                reason = "a component has collapsed: a variance met its floor"
            results[active[i]] = EMResult(
                state.parameters(model, i), float(sums.loglik[i]), n_iter, bool(small[i]), reason
            )
        if over.all():
            break
        if over.any():
            keep = ~over
            active, state = active[keep], state.take(keep)
            sums = _Sums(*(s[keep] for s in sums))
        before = sums.loglik
        state, collapsed = _m_step(model, sums, state, rows.floor[active])
    return [r for r in results if r is not None]


def _m_step(
    model: str, sums: _Sums, state: _State, floor: NDArray[Any]
) -> tuple[_State, NDArray[np.bool_]]:
    """Weights, means and covariances from the sums; z = U_k (x - mu_k), of the last parameters."""
    R, s = sums.R, state.spread
    L = s.D * np.sqrt(s.volumes[..., None] * s.shapes)[..., None, :]
    shift = sums.Z / R[..., None]
    lower = np.tril(sums.ZZ)
    ZZ = lower + np.swapaxes(np.tril(lower, -1), -1, -2)
    ZZ -= R[..., None, None] * shift[..., :, None] * shift[..., None, :]
    W = L @ ZZ @ np.swapaxes(L, -1, -2)
    W = 0.5 * (W + np.swapaxes(W, -1, -2))
    means = state.means + (L @ shift[..., None])[..., 0]
    spread, collapsed = estimate(model, R, W, floor, s)
    return _State(R / R.sum(axis=1, keepdims=True), means, spread), collapsed


def from_posterior(
    X: NDArray[Any], P: NDArray[Any], model: str, sample_weight: NDArray[Any] | None = None
) -> Parameters:
    """The M-step alone: parameters of a model from (n, c) posterior probabilities.

    Parameters
    ----------
    X : (n, d) array
        The rows.
    P : (n, c) array
        Probability of each component given each row.
    model : str
        One of `MODELS`.
    sample_weight : (n,) array, optional
        Weights of the rows; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> from evdist.mixture import from_posterior
    >>> X = np.array([[0.0, 0], [0, 2], [1, 1], [8, 8], [9, 8], [9, 9]])
    >>> from_posterior(X, np.eye(2)[[0, 0, 0, 1, 1, 1]], "EII").means.round(2)
    array([[0.33, 1.  ],
           [8.67, 8.33]])
    """
    X = np.ascontiguousarray(X, dtype=float)
    w = np.ones(len(X)) if sample_weight is None else sample_weight
    P = P * w[:, None]
    sizes = P.sum(axis=0)
    if not (sizes > 0).all():
        raise ValueError(f"Component {int(sizes.argmin())} has no weight; give each some rows.")
    means = (P.T @ X) / sizes[:, None]
    W = np.stack([((X - m) * p[:, None]).T @ (X - m) for m, p in zip(means, P.T, strict=True)])
    floor = np.array([FLOOR * smallest_variance(X, w)])
    spread, _ = estimate(model, sizes[None], W[None], floor)
    return _State((sizes / sizes.sum())[None], means[None], spread).parameters(model, 0)
