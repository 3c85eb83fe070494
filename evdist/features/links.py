"""The criterion of pairwise constrained component analysis, and its minimisation.

Reference: Mignon, Jurie (2012), PCCA, which NN-EVCLUS, section 3.3, takes as its [38].

Symbols
-------
Delta   (p, d) differences of the linked objects
s       (p,) +1 for a must-link, -1 for a cannot-link
L       (r, d) linear map
b       sharpness of the criterion (beta in Mignon and Jurie)

Differs: Mignon and Jurie, and R's evclust, take gradient steps from a small random L. L = 0 is a
saddle point: what such steps find is decided by the directions in which E falls fastest there.
L-BFGS starts from just these, so that nothing is random and turning X turns L. With few features
there are local minima, so that a second descent comes down from more features; the lower one wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from scipy.linalg import eigh

#: Spreads below this share of the largest are rounding errors.
_NOISE = 1e-10
#: The second descent comes from so many features at least, or twice as many as are asked for.
_MORE = 10


@dataclass(frozen=True)
class Search:
    """How to minimise: features, sharpness, and when to stop."""

    n_components: int
    sharpness: float
    tol: float
    max_iter: int


@dataclass(frozen=True)
class Map:
    """A linear map L (r, d), its loss, and how it was found."""

    L: NDArray[np.float64]
    loss: float
    n_iter: int
    converged: bool


def pcca_loss(
    L: NDArray[Any], Delta: NDArray[Any], s: NDArray[Any], b: float
) -> tuple[float, NDArray[np.float64]]:
    """E(L) = sum of log(1 + exp(b s (|L delta|^2 - 1))) / b, and its gradient (r, d).

    A must-link should be shorter than 1, a cannot-link longer.
    """
    Z = Delta @ L.T
    excess = b * s * ((Z * Z).sum(axis=1) - 1)
    slope = special.expit(excess) * s
    return float(np.logaddexp(0, excess).sum() / b), 2 * (slope[:, None] * Z).T @ Delta


def solve_pcca(Delta: NDArray[Any], s: NDArray[Any], search: Search) -> Map:
    """The lower of two descents, turned so that its rows are orthogonal, the longest first.

    E depends on L'L alone, so that any rotation of the features is as good. With r = d all minima
    are global (E is convex in L'L); with fewer features they need not be.
    """
    size = np.sqrt((Delta * Delta).sum(axis=1).mean())
    if not size > 0:
        raise ValueError("Linked objects are all equal; link objects that differ.")
    # The steps of L-BFGS depend on the unit of X, the result should not. And what lies outside the
    # span of the links no link can change: it would be noise in the features of other objects.
    sides, widths, axes = np.linalg.svd(Delta / size, full_matrices=False)
    within = widths > _NOISE * widths[0]
    span = sides[:, within] * widths[within]
    L = np.zeros((search.n_components, Delta.shape[1]))
    best = _best(span, s, search)
    L[: len(best.L)] = _principal(best.L) @ axes[within] / size
    # Signs by what does not change when X is turned: the widest link of a feature is positive.
    Z = Delta @ L.T
    widest = np.take_along_axis(Z, np.abs(Z).argmax(axis=0)[None], axis=0)[0]
    L[widest < 0] *= -1
    return Map(L, best.loss, best.n_iter, best.converged)


def _best(Delta: NDArray[Any], s: NDArray[Any], search: Search) -> Map:
    """The lower of two descents, with at most as many features as dimensions."""
    d = Delta.shape[1]
    r = min(search.n_components, d)
    start = _steepest(Delta, s, search.sharpness, min(d, max(2 * r, _MORE)))
    first = _descend(_scaled(start[:r], Delta), Delta, s, search)
    if len(start) == r:
        return first
    more = _principal(_descend(_scaled(start, Delta), Delta, s, search).L)
    second = _descend(more[:r], Delta, s, search)
    # Links that a kernel can satisfy leave only rounding to choose by.
    return second if second.loss < first.loss - 1e-3 * max(first.loss, 1.0) else first


def _steepest(Delta: NDArray[Any], s: NDArray[Any], b: float, r: int) -> NDArray[np.float64]:
    """Directions (r, d) in which E falls fastest from L = 0, where its Hessian is that of L S L'.

    A direction in which E rises gets a small length instead: a row of zeros would never change.
    """
    S = (Delta * (s * special.expit(-b * s))[:, None]).T @ Delta
    values, vectors = eigh(S, subset_by_index=(0, r - 1))
    lengths = np.sqrt(np.maximum(-values, 1e-3 * (np.abs(values).max() or 1.0)))
    return lengths[:, None] * vectors.T


def _scaled(L: NDArray[Any], Delta: NDArray[Any]) -> NDArray[np.float64]:
    """L such that links have length 1 in the quadratic mean."""
    return L / np.sqrt(((Delta @ L.T) ** 2).sum(axis=1).mean())


def _principal(L: NDArray[Any]) -> NDArray[np.float64]:
    """The same L'L with orthogonal rows, the longest first."""
    _, lengths, axes = np.linalg.svd(L, full_matrices=False)
    return lengths[:, None] * axes


def _descend(start: NDArray[Any], Delta: NDArray[Any], s: NDArray[Any], search: Search) -> Map:
    def flat(entries: NDArray[Any]) -> tuple[float, NDArray[np.float64]]:
        loss, gradient = pcca_loss(entries.reshape(start.shape), Delta, s, search.sharpness)
        return loss, gradient.ravel()

    # With a kernel E has no minimum: cannot-links grow for ever, ever more slowly. The change of E
    # alone says when to stop.
    found = optimize.minimize(
        flat, start.ravel(), jac=True, method="L-BFGS-B",
        options={"ftol": search.tol, "gtol": 0.0, "maxiter": search.max_iter,
                 "maxfun": 20 * search.max_iter},
    )  # fmt: skip
    return Map(found.x.reshape(start.shape), float(found.fun), int(found.nit), found.status != 1)
