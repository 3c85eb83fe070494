"""The evidential neural network classifier: prototypes with memberships and reliabilities.

References: Denoeux (2000), A neural network classifier based on Dempster-Shafer theory; Denoeux,
slides "Evidential machine learning" (2021), section "Evidential neural network classifier".

======  ====================================================================  ==========
symbol  meaning                                                               shape
======  ====================================================================  ==========
P       prototypes                                                            (r, d)
U       memberships, u_ik = b_ik^2 / sum_l b_il^2                             (r, c)
alpha   reliabilities, 1 / (1 + exp(-x_i)), between 0 and 1                   (r,)
gamma   exp(g_i), positive                                                    (r,)
mu      weight of the regularisation                                          scalar
======  ====================================================================  ==========

The free parameters (P, b, x, g) minimise, by L-BFGS,

    J = 1/n ( sum_ik (pl_ik - y_ik)^2 + mu sum_i alpha_i ).

Differs: gamma is exp(g), not g^2, which has a flat point at 0; J is divided by n. The first
prototypes are means inside the classes; R's evclass takes those of all objects by default, and
compares pignistic probabilities with the classes where the slides compare plausibilities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special
from sklearn import cluster

from evdist.eknn.network_kernel import forward, gradient
from evdist.engine.loop import Solution
from evdist.engine.progress import Clock

#: |x| at most: alpha never reaches 1, where a prototype would forbid all classes but its own.
_MOST_SURE = 20.0
#: log(gamma) moves no farther from where it starts: beyond, a prototype says all or nothing.
_REACH = 30.0
#: Memberships of a prototype's own class at first; the others share the rest.
_OWN = 0.9


@dataclass(frozen=True)
class Network:
    """The free parameters; what they mean is derived."""

    P: NDArray[np.float64]
    b: NDArray[np.float64]
    x: NDArray[np.float64]
    g: NDArray[np.float64]

    @property
    def alpha(self) -> NDArray[np.float64]:
        return special.expit(self.x)

    @property
    def gamma(self) -> NDArray[np.float64]:
        return np.exp(self.g)

    @property
    def U(self) -> NDArray[np.float64]:
        return self.b**2 / (self.b**2).sum(axis=1, keepdims=True)

    def flat(self) -> NDArray[np.float64]:
        return np.concatenate([self.P.ravel(), self.b.ravel(), self.x, self.g])

    def at(self, theta: NDArray[np.float64]) -> Network:
        """A network of the same shape with other parameters."""
        (r, d), c = self.P.shape, self.b.shape[1]
        P, b, x, g = np.split(theta, [r * d, r * (d + c), r * (d + c + 1)])
        return Network(P.reshape(r, d), b.reshape(r, c), x, g)


def first_network(
    X: NDArray[np.float64], y: NDArray[np.int32], per_class: NDArray[np.int64], seed: int
) -> Network:
    """Prototypes at the means of k-means clusters of each class; alpha 1/2, gamma by spread.

    A prototype's first reach is the mean squared distance of its own objects and of one more, as
    far as the objects of its class are from their mean: alone with one object or with copies of
    one, it would reach no other object, and L-BFGS would stop at the first step.
    """
    c = len(per_class)
    whole = _spread(X) or 1.0
    P, own, reach = [], [], []
    for k in range(c):
        rows = X[y == k]
        means = cluster.KMeans(int(per_class[k]), n_init=5, random_state=seed).fit(rows)
        d2 = ((rows - means.cluster_centers_[means.labels_]) ** 2).sum(axis=1)
        count = np.bincount(means.labels_, minlength=len(means.cluster_centers_))
        inside = np.bincount(means.labels_, d2, minlength=len(count))
        P.append(means.cluster_centers_)
        reach.append((inside + (_spread(rows) or whole)) / (count + 1.0))
        own += [k] * len(means.cluster_centers_)
    U = np.full((len(own), c), (1.0 - _OWN) / max(c - 1, 1))
    U[np.arange(len(own)), own] = _OWN if c > 1 else 1.0
    g = -np.log(np.concatenate(reach))
    return Network(np.concatenate(P), np.sqrt(U), np.zeros(len(own)), g)


def _spread(X: NDArray[np.float64]) -> float:
    """Mean squared distance of the rows from their mean."""
    return float(((X - X.mean(axis=0)) ** 2).sum(axis=1).mean())


def objective(
    network: Network,
    X: NDArray[np.float64],
    y: NDArray[np.int32],
    w: NDArray[np.float64],
    mu: float,
) -> tuple[float, NDArray[np.float64]]:
    """J and its gradient with respect to the free parameters, in the order of `flat`."""
    P, U, alpha, gamma = network.P, network.U, network.alpha, network.gamma
    dP, dU = np.zeros_like(P), np.zeros_like(U)
    dalpha, dgamma = np.zeros(len(P)), np.zeros(len(P))
    total = gradient(X, y, w, P, alpha, gamma, U, dP, dalpha, dgamma, dU)
    total += mu * alpha.sum()
    dalpha += mu
    # u = b^2 / B: du_k / db_l = 2 b_l ([k = l] - u_k) / B; alpha' = alpha (1 - alpha).
    B = (network.b**2).sum(axis=1, keepdims=True)
    db = 2.0 * network.b / B * (dU - (dU * U).sum(axis=1, keepdims=True))
    slope = np.concatenate([dP.ravel(), db.ravel(), dalpha * alpha * (1.0 - alpha), dgamma * gamma])
    n = w.sum()
    return total / n, slope / n


def fit_network(
    start: Network,
    X: NDArray[np.float64],
    y: NDArray[np.int32],
    w: NDArray[np.float64],
    *,
    mu: float,
    tol: float,
    max_iter: int,
    clock: Clock | None = None,
) -> Solution[Network]:
    """Minimise J from `start`."""
    history = [objective(start, X, y, w, mu)[0]]

    def heard(intermediate_result: optimize.OptimizeResult) -> None:
        history.append(float(intermediate_result.fun))
        if clock is not None:
            clock.tell(len(history) - 1, history[-1], history[-1] - history[-2])

    free = [(None, None)] * (start.P.size + start.b.size)
    bounds = [*free, *[(-_MOST_SURE, _MOST_SURE)] * len(start.x)]
    bounds += [(g - _REACH, g + _REACH) for g in start.g]
    found = optimize.minimize(
        lambda theta: objective(start.at(theta), X, y, w, mu),
        start.flat(), jac=True, method="L-BFGS-B", callback=heard, bounds=bounds,
        options={"maxiter": max_iter, "maxfun": 10 * max_iter, "ftol": tol, "gtol": 1e-9},
    )  # fmt: skip
    return Solution(start.at(found.x), history, found.status == 0)


def masses(network: Network, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Masses of the empty set (zero), the single classes and all classes: (n, c + 2)."""
    c = network.b.shape[1]
    if c == 1:
        return np.tile([0.0, 1.0], (len(X), 1))
    out = np.zeros((len(X), c + 1))
    forward(X, network.P, network.alpha, network.gamma, network.U, out)
    return np.concatenate([np.zeros((len(X), 1)), out], axis=1)
