"""Credal c-means: a set of clusters is far from objects that are far from any of its clusters.

Reference: Liu, Pan, Dezert, Mercier (2015), Credal c-means clustering method based on belief
functions, Knowledge-Based Systems 74, section 3.

    J(M, V) = sum_i w_i [ sum_j m_ij^beta D_ij^2 + delta^2 m_i0^beta ]
    D_ij^2  = ( sum_{k in A_j} |x_i - v_k|^2 + gamma |x_i - vbar_j|^2 ) / (|A_j| + gamma)

In ECM only the last distance counts, so that the centre of a set may lie on another cluster. As
|x - vbar_j|^2 is mean_k |x - v_k|^2 - s_j with s_j = mean_k |v_k - vbar_j|^2 (k in A_j),

    D_ij^2  = mean_{k in A_j} |x_i - v_k|^2 - s_j gamma / (|A_j| + gamma):

the sums over objects are those of ECM with alpha = 0 and another s_j. For given masses, with
W_j = sum_i w_i m_ij^beta and u_j = W_j / (|A_j| + gamma), dJ/dv_k = 0 reads

    sum_{A_j holds k} u_j v_k + sum_l sum_{A_j holds k, l} u_j gamma / |A_j|^2 v_l = B_k,
    B_k = sum_i w_i x_i sum_{A_j holds k} m_ij^beta / |A_j|,

a linear system H V = B, whose solution is the minimum of J over V: no iteration can raise J.

Differs: the paper lets sets have at most T_c clusters; here that is the choice of focal sets
(T_c = 2: "pairs").
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evdist.ecm.gamma import GammaClusterer, GammaModel
from evdist.ecm.solver import Floats


@dataclass(frozen=True, eq=False)
class CredalModel(GammaModel):
    """As a model of ECM with alpha = 0, sets being as far as their clusters.

    Parameters
    ----------
    gamma : float
        Weight of the distance to the centre of a set, at least 0.
    """

    @cached_property
    def spread(self) -> Floats:
        """s_j gamma / (|A_j| + gamma), (f,)."""
        size = np.maximum(self.focal_sets.cardinality, 1)
        return super().spread * self.gamma / (size + self.gamma)

    def system(self, F: Floats, size: Floats, W: Floats) -> Floats:
        u = W / (size + self.gamma)
        return np.diag(F.T @ u) + F.T @ ((u * self.gamma / size**2)[:, None] * F)


class CCM(GammaClusterer):
    """Credal c-means: like ECM, but the distance to a set also counts those to its clusters.

    In ECM an object of one cluster may lie at the centre of a set of two other clusters and be
    assigned to that set; here the distances to the single clusters of a set count too. Liu, Pan,
    Dezert and Mercier (2015).

    Parameters
    ----------
    n_clusters : int, default=4
        Number of clusters.
    gamma : float, default=1
        Weight of the distance to the centre of a set relative to those to its clusters.
    beta : float above 1 or "auto", default="auto"
        Fuzzifier: near 1, almost all mass is on one set. "auto" is 2, and less where there are
        many attributes; see `ECM`.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of X: objects farther from all prototypes are
        outliers. "auto" is the root mean square of the distances between two objects.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="pairs"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets.
    init : "k-means++" or (n_clusters, d) array of prototypes
        CCM-bp is init=X[evdist.delta_bel(X, K).largest(n_clusters)].
    n_init : int, default=5
        Number of "k-means++" starts, compared on at most 20,000 objects; the best is continued.
    tol : float, default=1e-5
        Stop when the relative decrease of the objective is smaller than this.
    max_iter : int, default=200
        Maximum number of iterations.
    n_jobs : int, default=None
        Threads; None is all cores. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts: an int gives the same result every time.
    callbacks : sequence of callables, default=()
        Each is called after every iteration with a `Progress`.
    verbose : bool, default=False
        Show progress: a bar in a terminal, lines elsewhere.

    Attributes
    ----------
    credal_partition_ : CredalPartition
        Masses of the objects.
    labels_ : (n,) int array
        Cluster of maximum plausibility.
    prototypes_ : (c, d) array
        Centres of the clusters.
    delta_ : float
        The distance to the empty set that was used.
    objective_ : float
        The sum over objects of the cost of their masses.
    history_ : list of float
        The objective before the first and after every iteration; it never rises.
    n_iter_ : int
        Iterations done.
    converged_ : bool
        Whether `tol` ended the fit, not `max_iter`.
    n_features_in_ : int
        Columns of X.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from evdist import CCM
    >>> X, _ = make_blobs(300, centers=3, random_state=0)
    >>> CCM(n_clusters=3, random_state=0).fit(X).credal_partition_.mass.shape
    (300, 8)
    """

    _model_type = CredalModel
