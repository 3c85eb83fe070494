"""How rows of X become inputs of the network of NN-EVCLUS: learnt once, applied to old and new.

The gate is a one-class SVM that tells which inputs are like those the network was trained on.

Reference: Denoeux (2021), NN-EVCLUS, section 3.1, "Outlier detection".

Symbols
-------
s, a    (q, d) anchors and (q,) their weights; f(x) = sum_i a_i exp(-g |x - s_i|^2) - rho

Differs: inputs are centred and divided by one number, so that the mean variance of their columns
is one. It moves no distance against another, and weights start where the data are.

The exact machine has its support vectors for anchors. Above EXACT objects a linear machine on
Nystroem features takes over: its features are linear in the kernel values to q anchors, so it has
the same form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM

from evdist.engine.device import find_device
from evdist.features import DissimilarityPCA
from evdist.nnevclus.network import ROWS, Network, network_masses, one_thread

#: Objects up to which the exact machine is trained: its time grows with their square.
EXACT = 5000
#: Anchors of the approximate machine.
ANCHORS = 300
#: Rows whose masses are computed at once where there are many.
_MASSES = 64 * ROWS


@dataclass(frozen=True)
class Gate:
    """f(x), scaled to standard deviation one on the training objects."""

    anchors: NDArray[np.float64]
    weight: NDArray[np.float64]
    rho: float
    g: float

    def __call__(self, x: NDArray, device: torch.device) -> NDArray[np.float32]:
        """f of the rows of x (n, d): positive inside the region of the data, (n,).

        Two matrix products for a block of rows, in float64, on the device of the network.
        """
        s, a = (
            torch.tensor(v, dtype=torch.float64, device=device) for v in (self.anchors, self.weight)
        )
        norm, found = (s * s).sum(dim=1), []
        with one_thread():
            for lo in range(0, len(x), ROWS):
                rows = np.asarray(x[lo : lo + ROWS], dtype=float)
                # Blocks of one size: f of an object must not depend on the objects beside it.
                block = np.pad(rows, ((0, ROWS - len(rows)), (0, 0)))
                t = torch.from_numpy(block).to(device)
                square = (t * t).sum(dim=1)[:, None] + norm - 2 * (t @ s.T)
                found.append(torch.exp(square.clamp_(min=0).mul_(-self.g)) @ a - self.rho)
        return torch.cat(found)[: len(x)].float().cpu().numpy()


def fit_gate(x: NDArray, outliers: float, width: float, seed: int, device: torch.device) -> Gate:
    """A one-class SVM with Gaussian kernel.

    Parameters
    ----------
    x : (n, d)
        Scaled so that the mean variance of its columns is one.
    outliers : float
        nu: at most this share of the objects lies outside.
    width : float
        g times d: the kernel is exp(-width |x - x'|^2 / d).
    device : torch.device, where f of the training objects is computed
    """
    x = np.asarray(x, dtype=float)
    g = width / x.shape[1]
    if len(x) <= EXACT:
        svm = OneClassSVM(kernel="rbf", gamma=g, nu=outliers).fit(x)
        gate = Gate(svm.support_vectors_, svm.dual_coef_[0], -float(svm.intercept_[0]), g)
    else:
        features = Nystroem(gamma=g, n_components=min(ANCHORS, len(x)), random_state=seed).fit(x)
        svm = SGDOneClassSVM(nu=outliers, random_state=seed).fit(features.transform(x))
        weight = features.normalization_.T @ np.ravel(svm.coef_)
        gate = Gate(features.components_, weight, float(svm.offset_[0]), g)
    spread = float(gate(x, device).std(dtype=float))
    scale = 1.0 / spread if spread > 0 else 1.0
    return replace(gate, weight=gate.weight * scale, rho=gate.rho * scale)


# ---------------------------------------------------------------------- from X to inputs
@dataclass(frozen=True)
class Preparation:
    """Principal components of dissimilarities, one centre and one scale, the one-class SVM.

    Attributes
    ----------
    pca : None where the rows are attributes
    centre, scale : (d,) and float
        The mean variance of the columns of (x - centre) / scale is one.
    gate : None without one
    raw : bool
        Whether the network takes the attributes as they are: a user's body knows its data.
    """

    pca: DissimilarityPCA | None
    centre: NDArray[np.float64]
    scale: float
    gate: Gate | None
    raw: bool

    @classmethod
    def of(
        cls,
        X: NDArray,
        *,
        n_components: int | None,
        gate: tuple[float, float] | None,
        raw: bool,
        seed: int,
        device: torch.device,
    ) -> Self:
        """From the training rows X; `n_components` where they are dissimilarities, (n, n).

        `gate` is (share of outliers, width of the kernel).
        """
        pca = None
        if n_components is not None:
            p = min(n_components, X.shape[1])
            pca = DissimilarityPCA(p, metric="precomputed").fit(X)
            X = pca.transform(X)
        centre = X.mean(axis=0, dtype=np.float64)
        spread = float(np.sqrt(np.mean((X - centre) ** 2)))
        scale = spread if spread > 0 else 1.0
        machine = None if gate is None else fit_gate((X - centre) / scale, *gate, seed, device)
        return cls(pca, centre, scale, machine, raw)

    def __call__(
        self, X: NDArray, device: torch.device
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """x (n, d) and f(x) (n,), None without a gate."""
        if self.pca is not None:
            X = self.pca.transform(X)
        scaled = (X - self.centre) / self.scale
        fx = None if self.gate is None else self.gate(scaled, device)
        return np.ascontiguousarray(X if self.raw else scaled, dtype=np.float32), fx

    # ------------------------------------------------------------------ on disk
    def state(self) -> tuple[dict[str, Any], dict[str, NDArray]]:
        """Values that JSON can write, and arrays."""
        values: dict[str, Any] = {"scale": self.scale, "raw": self.raw}
        arrays = {"centre": self.centre}
        if self.pca is not None:
            arrays |= {"pca_mean": self.pca.mean_, "pca_axes": self.pca.components_}
        if self.gate is not None:
            values |= {"rho": self.gate.rho, "g": self.gate.g}
            arrays |= {"anchors": self.gate.anchors, "anchor_weight": self.gate.weight}
        return values, arrays

    @classmethod
    def from_state(cls, values: dict[str, Any], arrays: dict[str, NDArray]) -> Self:
        """What :meth:`state` gave."""
        pca = gate = None
        if "pca_mean" in arrays:
            axes = arrays["pca_axes"]
            pca = DissimilarityPCA(len(axes), metric="precomputed")
            pca.mean_, pca.components_ = arrays["pca_mean"], axes
            pca.n_features_in_, pca._n_features_out = axes.shape[1], len(axes)
        if "anchors" in arrays:
            rho, g = float(values["rho"]), float(values["g"])
            gate = Gate(arrays["anchors"], arrays["anchor_weight"], rho, g)
        return cls(pca, arrays["centre"], float(values["scale"]), gate, bool(values["raw"]))


@dataclass(frozen=True)
class Masses:
    """From rows to masses, by a trained network; `device` as a user names it."""

    network: Network
    prepare: Preparation
    device: str

    def __call__(self, X: NDArray, first: int = 0) -> NDArray[np.float32]:
        """Masses (rows, f) of rows of X, numbered from `first` on."""
        device = torch.device(find_device(self.device) or "cpu")
        x, fx = self.prepare(X, device)
        return network_masses(self.network, x, fx, device)

    def in_blocks(self, X: NDArray) -> NDArray[np.float32]:
        """Of many rows, without a copy of them all."""
        starts = range(0, len(X), _MASSES)
        return np.concatenate([self(X[lo : lo + _MASSES]) for lo in starts])
