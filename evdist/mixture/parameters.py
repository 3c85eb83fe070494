"""The parameters of a Gaussian mixture: small, immutable, and all that is needed to use it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.mixture.covariance import MODELS, Spread, count_parameters
from evdist.mixture.kernel import posteriors


def whitening(spread: Spread) -> NDArray[np.float64]:
    """U (..., c, d, d) with U_k Sigma_k U_k' = I: rows are axes divided by standard deviations."""
    sd = np.sqrt(spread.volumes[..., None] * spread.shapes)
    return np.ascontiguousarray(np.swapaxes(spread.D, -1, -2) / sd[..., None])


def log_factors(weights: NDArray[Any], spread: Spread) -> NDArray[np.float64]:
    """log of pi_k (2 pi)^(-d/2) |Sigma_k|^(-1/2), (..., c); |A_k| is 1."""
    d = spread.shapes.shape[-1]
    return np.log(weights) - 0.5 * d * np.log(2 * np.pi * spread.volumes)


@dataclass(frozen=True, eq=False)
class Parameters:
    """A Gaussian mixture: Sigma_k = volumes_k * orientations_k diag(shapes_k) orientations_k'.

    Attributes
    ----------
    model : str
        One of MODELS.
    weights : (c,) array
        Mixing proportions, above zero.
    means : (c, d) array
        Means of the components.
    volumes : (c,) array
        Above zero.
    shapes : (c, d) array
        Above zero, of product 1 in each row.
    orientations : (c, d, d) array
        Axes in columns.
    """

    model: str
    weights: NDArray[np.float64]
    means: NDArray[np.float64]
    volumes: NDArray[np.float64]
    shapes: NDArray[np.float64]
    orientations: NDArray[np.float64]

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise ValueError(f"model must be one of {', '.join(MODELS)}, got {self.model!r}.")
        c, d = np.shape(self.means)
        shapes = {"weights": (c,), "means": (c, d), "volumes": (c,), "shapes": (c, d),
                  "orientations": (c, d, d)}  # fmt: skip
        for name, shape in shapes.items():
            value = np.array(getattr(self, name), dtype=float)
            if value.shape != shape:
                raise ValueError(f"{name} must have shape {shape}, got {value.shape}.")
            if name in ("weights", "volumes", "shapes") and not value.min() > 0:
                raise ValueError(f"{name} must be above zero, got {value.min()}.")
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def n_components(self) -> int:
        """Number of components, c."""
        return len(self.weights)

    @property
    def n_features(self) -> int:
        """Number of attributes, d."""
        return self.means.shape[1]

    @property
    def n_parameters(self) -> int:
        """nu, the number of free parameters."""
        return count_parameters(self.model, *self.means.shape)

    @cached_property
    def covariances(self) -> NDArray[np.float64]:
        """Sigma_k, (c, d, d)."""
        D, variances = self.orientations, self.volumes[:, None] * self.shapes
        return (D * variances[:, None, :]) @ np.swapaxes(D, 1, 2)

    @property
    def spread(self) -> Spread:
        """The covariances' factors, with a leading axis of one replicate."""
        return Spread(self.volumes[None], self.shapes[None], self.orientations[None])

    def posterior(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the components given each row, (n, c); rows sum to one.

        Parameters
        ----------
        X : (n, d) array
            The rows.
        """
        return self.evaluate(X)[0]

    def log_density(self, X: ArrayLike) -> NDArray[np.float64]:
        """log p(x) of each row, (n,).

        Parameters
        ----------
        X : (n, d) array
            The rows.
        """
        return self.evaluate(X)[1]

    def loglik(self, X: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Log-likelihood of the rows, each counted with its weight.

        Parameters
        ----------
        X : (n, d) array
            The rows.
        sample_weight : (n,) array, optional
            Weights of the rows; by default 1.
        """
        density = self.evaluate(X)[1]
        return float(density.sum() if sample_weight is None else np.dot(sample_weight, density))

    def evaluate(self, X: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(posterior, log_density) in one pass.

        Parameters
        ----------
        X : (n, d) array
            The rows.
        """
        X = np.ascontiguousarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X must have shape (n, {self.n_features}), got {X.shape}.")
        P, density = np.empty((len(X), self.n_components)), np.empty(len(X))
        U, a = whitening(self.spread)[0], log_factors(self.weights, self.spread)[0]
        # A copy: compiled code has another version for arrays that cannot be written.
        posteriors(X, 0, len(X), U, self.means.copy(), a, P, density)
        return P, density
