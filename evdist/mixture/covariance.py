"""The fourteen covariance models: maximum-likelihood covariances from weighted scatter matrices.

Sigma_k = lambda_k D_k A_k D_k': volume lambda_k, shape A_k (diagonal, determinant 1), orientation
D_k (orthogonal). A model's three letters say of each whether it is Equal over components, Variable,
or the Identity.

Symbols
-------
c, d       components, coordinates
B          replicates, the leading axis of every array
sizes      (B, c) n_k, the weight of a component
W          (B, c, d, d) W_k = sum of r w (x - mu_k)(x - mu_k)'
omega      (B, c, d) diagonal of D_k' W_k D_k: the scatter along the axes of a component
volumes    (B, c) lambda_k
shapes     (B, c, d) diagonal of A_k
D          (B, c, d, d) D_k, axes in columns

Reference: Celeux and Govaert (1995), Gaussian parsimonious clustering models, Pattern
Recognition 28.

Differs: for one common orientation and different shapes (EVE, VVE) the axes are turned in planes,
each to the exact minimum, where Browne and McNicholas (2014) majorise; both lower the same
criterion at every step. The steps of the iterative models (VEI, VEE, EVE, VVE, VEV) are few and
fixed in number, warm from the last M-step: the likelihood rises at each, and a replicate does not
feel which others are computed beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.mixture.kernel import common_axes

MODELS = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV",
          "EVV", "VVV")  # fmt: skip
"""The covariance models of `GaussianMixture`.

The letters say of volume, shape and orientation whether they are Equal over components, Variable,
or the Identity.
"""

#: Inner steps from the last M-step's parameters, and from none.
_WARM, _COLD = 5, 60
#: No axis of a common shape is thinner than this part of the thickest.
_FLATTEST = 1e-14


@dataclass(frozen=True)
class Spread:
    """Covariances in factors, B replicates at a time; see the module's symbols."""

    volumes: NDArray[np.float64]
    shapes: NDArray[np.float64]
    D: NDArray[np.float64]

    def take(self, chosen: NDArray[Any]) -> Spread:
        """Some of the replicates."""
        return Spread(self.volumes[chosen], self.shapes[chosen], self.D[chosen])


def count_parameters(model: str, c: int, d: int) -> int:
    """nu, free parameters: weights, means, volumes, shapes and orientations."""
    number = {"E": 1, "V": c, "I": 0}
    volume, shape, orientation = tuple(model)
    spread = number[volume] + number[shape] * (d - 1) + number[orientation] * d * (d - 1) // 2
    return (c - 1) + c * d + spread


def simplest(model: str, c: int, d: int) -> str:
    """The first model that is the same one for c components in d dimensions.

    One component has nothing to be equal to: EII, EEI and EEE are left; in one dimension EII and
    VII are.
    """
    volume, shape, orientation = tuple(model)
    if c == 1:
        volume, shape, orientation = "E", shape.replace("V", "E"), orientation.replace("V", "E")
    return volume + ("II" if d == 1 else shape + orientation)


def estimate(
    model: str,
    sizes: NDArray[Any],
    W: NDArray[Any],
    floor: NDArray[Any],
    last: Spread | None = None,
) -> tuple[Spread, NDArray[np.bool_]]:
    """Covariances of one model that maximise the likelihood of the scatter matrices.

    Parameters
    ----------
    model : str
    sizes : (B, c), above zero
    W : (B, c, d, d)
    floor : (B,)
        Smallest variance along an axis.
    last : Spread, optional
        Where the iterative models start.

    Returns
    -------
    spread : Spread
    collapsed : (B,) bool
        Whether a variance had to be kept from falling below the floor.
    """
    volume, shape, orientation = tuple(model)
    D = _axes(model, sizes, W, floor, last)
    if orientation == "I":
        omega = np.diagonal(W, axis1=-2, axis2=-1).copy()
        if shape == "I":
            omega[:] = omega.mean(axis=-1, keepdims=True)
            shape = volume
    else:
        omega = _along(D, W)
    low = floor[:, None, None]
    if volume == "V" and shape == "E":
        start = None if last is None else last.volumes
        volumes, shapes, collapsed = _shared_shape(sizes, omega, low, start)
        return Spread(volumes, shapes, D), collapsed
    n = sizes.sum(axis=-1, keepdims=True)
    if shape == "E":
        sizes, omega = n, omega.sum(axis=-2, keepdims=True)
    least = low * sizes[..., None]
    collapsed = (omega <= least).any(axis=(-2, -1))
    omega = np.maximum(omega, least)
    # |omega_k|^(1/d) is n_k lambda_k, or its share of n lambda where the volume is common.
    root = np.exp(np.log(omega).mean(axis=-1))
    volumes = root / sizes if volume == "V" else root.sum(axis=-1, keepdims=True) / n
    c, d = W.shape[1:3]
    shapes = np.broadcast_to(omega / root[..., None], (len(W), c, d))
    return Spread(np.broadcast_to(volumes, (len(W), c)), shapes, D), collapsed


def _along(D: NDArray[Any], W: NDArray[Any]) -> NDArray[np.float64]:
    """Diagonals of D_k' W_k D_k, (B, c, d)."""
    return np.maximum((D * (W @ D)).sum(axis=-2), 0.0)


def _axes(
    model: str, sizes: NDArray[Any], W: NDArray[Any], floor: NDArray[Any], last: Spread | None
) -> NDArray[np.float64]:
    """D (B, c, d, d) of a model: the identity, one for each component, or one for all."""
    c, d = W.shape[1:3]
    if model[2] == "I":
        return np.broadcast_to(np.eye(d), W.shape)
    if model[2] == "V":
        # Largest variance first, for all components: equal shapes pair equal ranks.
        return np.ascontiguousarray(np.linalg.eigh(W)[1][..., ::-1])
    if model == "EEE" or last is None:
        D = np.linalg.eigh(W.sum(axis=1))[1][..., ::-1]
    else:
        D = last.D[:, 0]
    if model == "VEE":
        D = _weighted_axes(sizes, W, floor, D, last)
    elif model in ("EVE", "VVE"):
        D = np.array(D, order="C")
        each = _for_each(D, c)
        G = np.swapaxes(each, -1, -2) @ W @ each
        common_axes(G, sizes, model == "EVE", floor, _COLD if last is None else _WARM, D)
    return _for_each(D, c)


def _for_each(D: NDArray[Any], c: int) -> NDArray[np.float64]:
    """(B, d, d) -> (B, c, d, d), copied: products of contiguous matrices have the same bits for
    any number of replicates."""
    return np.repeat(D[:, None], c, axis=1)


def _weighted_axes(
    sizes: NDArray[Any], W: NDArray[Any], floor: NDArray[Any], D: NDArray[Any], last: Spread | None
) -> NDArray[np.float64]:
    """VEE: eigenvectors of sum_k W_k / lambda_k, volumes and axes in turn."""
    volumes = None if last is None else last.volumes
    for _ in range(_COLD if last is None else _WARM):
        omega = _along(_for_each(D, W.shape[1]), W)
        volumes, _, _ = _shared_shape(sizes, omega, floor[:, None, None], volumes, steps=1)
        D = np.linalg.eigh((W / volumes[..., None, None]).sum(axis=1))[1][..., ::-1]
    return D


def _shared_shape(
    sizes: NDArray[Any],
    omega: NDArray[Any],
    low: NDArray[Any],
    volumes: NDArray[Any] | None,
    steps: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Volumes of their own and one shape: each in turn given the other (VEI, VEE, VEV)."""
    if steps is None:
        steps = _COLD if volumes is None else _WARM
    low = low[..., 0]
    if volumes is None:
        volumes = omega.mean(axis=-1) / sizes
    volumes = np.maximum(volumes, low)
    for _ in range(steps):
        pooled = (omega / volumes[..., None]).sum(axis=-2, keepdims=True)
        most = np.maximum(pooled.max(axis=-1, keepdims=True), np.finfo(float).tiny)
        pooled = np.maximum(pooled, _FLATTEST * most)
        shape = pooled / np.exp(np.log(pooled).mean(axis=-1, keepdims=True))
        fresh = (omega / shape).mean(axis=-1) / sizes
        volumes = np.maximum(fresh, low)
    thinnest = fresh * shape[..., 0, :].min(axis=-1, keepdims=True)
    return volumes, np.broadcast_to(shape, omega.shape), (thinnest <= low).any(axis=-1)
