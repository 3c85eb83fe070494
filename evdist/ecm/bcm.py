"""Belief c-means: a set of clusters is near to objects far from clusters that lie close together.

Reference: Liu, Dezert, Mercier, Pan (2012), Belief c-means, Pattern Recognition Letters 33;
NN-EVCLUS takes it as its [34].

    J(M, V) = sum_i w_i [ sum_j m_ij^beta D_ij^2 + delta^2 m_i0^beta ]
    D_ij^2  = ( sum_{k in A_j} |x_i - v_k|^2 + gamma sum_{k < l in A_j} |v_k - v_l|^2 )
              / ( |A_j| + gamma |A_j| (|A_j| - 1) / 2 )

D_ij^2 is a weighted mean of the squared distances of the object to the clusters of A_j and of
these among each other; it has no centre of the set. An object between two clusters is nearer to
each of them than they are to each other, and is divided between the two; one far from both, where
they are close together, goes to their set. With s_j = mean_k |v_k - vbar_j|^2 (k in A_j), the sum
over pairs is |A_j|^2 s_j, so that

    D_ij^2  = p_j ( mean_{k in A_j} |x_i - v_k|^2 + gamma |A_j| s_j ),
    p_j     = 1 / ( 1 + gamma (|A_j| - 1) / 2 ):

the sums over objects are those of ECM with other weights of the sets and another s_j. For given
masses, with W_j = sum_i w_i m_ij^beta and u_j = p_j W_j / |A_j|, dJ/dv_k = 0 reads

    sum_{A_j holds k} u_j ( v_k + gamma sum_{l in A_j} (v_k - v_l) ) = B_k,
    B_k = sum_i w_i x_i sum_{A_j holds k} p_j m_ij^beta / |A_j|,

a linear system H V = B, whose solution is the minimum of J over V: no iteration can raise J.

Differs: the article was not at hand. The principle is that of its abstract, D_ij^2 the mean that
follows from it; whether the article weighs large sets beyond that (ECM's alpha) is not known.
Which sets there are is the choice of focal sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evdist.ecm.gamma import GammaClusterer, GammaModel
from evdist.ecm.kernel import Costs
from evdist.ecm.solver import Floats


@dataclass(frozen=True, eq=False)
class BeliefModel(GammaModel):
    """As a model of ECM, a set being as far as its clusters are from the object and each other.

    Parameters
    ----------
    gamma : float
        Weight of the distances between the clusters of a set, at least 0.
    """

    @cached_property
    def part(self) -> Floats:
        """p_j, (f,); 1 for single clusters."""
        return 1.0 / (1.0 + self.gamma * np.maximum(self.focal_sets.cardinality - 1, 0) / 2.0)

    @cached_property
    def costs(self) -> Costs:
        """As in ECM, p_j in the place of |A_j|^alpha."""
        plain = super().costs
        return plain._replace(weight=self.part, share=self.part * plain.share)

    @cached_property
    def spread(self) -> Floats:
        """-gamma |A_j| s_j, which the kernel takes from the mean of the squared distances; (f,)."""
        return -self.gamma * self.focal_sets.cardinality * super().spread

    def system(self, F: Floats, size: Floats, W: Floats) -> Floats:
        u = self.part * W / size
        return np.diag(F.T @ (u * (1 + self.gamma * size))) - self.gamma * F.T @ (u[:, None] * F)


class BCM(GammaClusterer):
    """Belief c-means: sets of clusters for objects far from clusters that are close together.

    In ECM the mass of an object halfway between two clusters goes to the set of both. Here it is
    divided between the two, and the set takes objects so far from both that the difference of the
    two distances is negligible. Liu, Dezert, Mercier and Pan (2012).

    Experimental: a reconstruction. The article was not at hand: the principle is that of its
    abstract, and its formulas may differ.

    Parameters
    ----------
    n_clusters : int, default=4
        Number of clusters.
    gamma : float, default=1
        Weight of the distances between the clusters of a set relative to those to the object.
    beta : float above 1 or "auto", default="auto"
        Fuzzifier: near 1, almost all mass is on one set. "auto" is 2, and less where there are
        many attributes; see `ECM`.
    delta : float or "auto", default="auto"
        Distance to the empty set, in the units of X: objects farther from all prototypes are
        outliers. "auto" is the root mean square of the distances between two objects.
    focal_sets : {"simple", "pairs", "full"} or FocalSets, default="pairs"
        The sets of clusters that may get mass: empty set, singletons and all clusters together
        ("simple"); also all pairs; all sets.
    init : "k-means++" or (n_clusters, d) array of prototypes, default="k-means++"
        Prototypes to start from.
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
    beta_, delta_ : float
        The fuzzifier and the distance to the empty set that were used.
    objective_ : float
        The objective at the end.
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
    >>> from evdist import BCM
    >>> X = [[0.0, 0.0], [0.0, 0.2], [2.0, 0.0], [2.0, 0.2], [1.0, 0.1], [1.0, 9.0]]
    >>> model = BCM(2, init=[[0.0, 0.1], [2.0, 0.1]], delta=20, max_iter=1, tol=1).fit(X)
    >>> model.credal_partition_.mass[4:].round(1)  # ∅, {0}, {1}, both: halfway, far off
    array([[0. , 0.4, 0.4, 0.2],
           [0. , 0.3, 0.3, 0.4]], dtype=float32)
    """

    _model_type = BeliefModel
