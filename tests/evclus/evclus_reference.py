"""EVCLUS by brute force: the objective from masses, kept pairs and raw distances, in NumPy."""

from __future__ import annotations

import numpy as np
from sklearn.utils import check_random_state

from evdist import EVCLUS, FocalSets
from evdist.evclus.sampling import draw_layout


def seed_of(model: EVCLUS) -> int:
    """The seed of the layout that an integer `random_state` stands for."""
    return int(check_random_state(model.random_state).randint(2**31 - 1))


def kept_pairs(n: int, k: int, seed: int) -> np.ndarray:
    """Pairs of objects i < j that a fit keeps, each once: (p, 2)."""
    layout = draw_layout(n, min(k, n - 1), seed)
    partner, degree = layout.graph.partners(0, n)
    mine = np.repeat(layout.order, degree)
    others = layout.order[partner[np.arange(partner.shape[1]) < degree[:, None]]]
    both = np.column_stack([mine, others]).astype(np.int64)
    return np.unique(np.sort(both, axis=1), axis=0)


def distances(X: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Euclidean distances of pairs, (p,)."""
    return np.linalg.norm(X[pairs[:, 0]] - X[pairs[:, 1]], axis=1)


def phi(d: np.ndarray, d0: float) -> np.ndarray:
    """Dissimilarities in [0, 1], k-CEVCLUS eqs. (5)-(6)."""
    return 1 - np.exp(np.log(0.05) * (d / d0) ** 2)


def all_pairs(n: int) -> np.ndarray:
    return np.column_stack(np.triu_indices(n, 1))


def conflicts(mass: np.ndarray, focal_sets: FocalSets, pairs: np.ndarray) -> np.ndarray:
    """kappa_ij = sum of m_i(A) m_j(B) over disjoint A and B, (p,)."""
    apart = np.array([[not set(a) & set(b) for b in focal_sets.sets] for a in focal_sets.sets])
    m = mass.astype(float)
    return ((m[pairs[:, 0]] @ apart) * m[pairs[:, 1]]).sum(axis=1)


def mean_square(
    mass: np.ndarray,
    focal_sets: FocalSets,
    pairs: np.ndarray,
    delta: np.ndarray,
    weight: np.ndarray | None = None,
) -> float:
    """Mean over pairs of (kappa - delta)^2; with weights, a pair counts w_i w_j times."""
    w = None if weight is None else weight[pairs[:, 0]] * weight[pairs[:, 1]]
    square = (conflicts(mass, focal_sets, pairs) - delta) ** 2
    return float(np.average(square, weights=w))


def r_criterion(
    mass: np.ndarray, focal_sets: FocalSets, pairs: np.ndarray, delta: np.ndarray
) -> float:
    """The criterion as R's evclust scales it: sum of squares over the sum of delta^2."""
    return mean_square(mass, focal_sets, pairs, delta) / float(np.mean(delta**2))


def link_costs(
    mass: np.ndarray, focal_sets: FocalSets, must: np.ndarray, cannot: np.ndarray
) -> tuple[float, float]:
    """(J_ML, J_CL) of k-CEVCLUS eq. (10), with the plausibilities of eqs. (8a) and (8b)."""
    m = mass.astype(float)
    single = np.array([len(s) == 1 for s in focal_sets.sets])

    def plausibilities(pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b = m[pairs[:, 0]], m[pairs[:, 1]]
        same = 1 - conflicts(mass, focal_sets, pairs)
        empty = a[:, 0] + b[:, 0] - a[:, 0] * b[:, 0]
        apart = 1 - empty - (a * b)[:, single].sum(axis=1)
        return same, apart

    same, apart = plausibilities(must)
    j_ml = float((apart + 1 - same).sum())
    same, apart = plausibilities(cannot)
    return j_ml, float((same + 1 - apart).sum())
