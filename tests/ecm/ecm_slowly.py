"""ECM as the slides write it, object by object: slow, plain, and all in float64."""

from __future__ import annotations

import numpy as np

from evdist import FocalSets
from evdist.ecm.solver import Model


def costs(X, model: Model) -> np.ndarray:
    """|A_j|^alpha d_ij^2, and delta^2 for the empty set; (n, f)."""
    out = np.empty((len(X), len(model.focal_sets)))
    for j, members in enumerate(model.focal_sets):
        if not members:
            out[:, j] = model.delta**2
            continue
        k = list(members)
        v = model.prototypes[k].mean(axis=0)
        S = np.eye(X.shape[1]) if model.metric is None else model.metric[k].mean(axis=0)
        out[:, j] = len(k) ** model.alpha * np.einsum("ia,ab,ib->i", X - v, S, X - v)
    return out


def masses(X, model: Model) -> np.ndarray:
    """Slides, "update equations"; no object may lie on a prototype."""
    power = costs(X, model) ** (-1.0 / (model.beta - 1.0))
    return power / power.sum(axis=1, keepdims=True)


def objective(X, model: Model, M, w=None) -> float:
    """Slides, "objective criterion"."""
    each = (M**model.beta * costs(X, model)).sum(axis=1)
    return float(each.sum() if w is None else w @ each)


def some_model(rng, c: int, d: int, family: str, **parameters) -> Model:
    """Prototypes at random."""
    return Model(getattr(FocalSets, family)(c), rng.standard_normal((c, d)), **parameters)
