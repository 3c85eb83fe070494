"""How rows of X become inputs of the network of NN-EVCLUS: learnt once, applied to old and new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evdist.features import DissimilarityPCA
from evdist.nnevclus.gate import Gate, fit_gate

__all__ = ["Preparation"]


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
        device: Any,
    ) -> Self:
        """From the training rows X; `n_components` where they are dissimilarities, (n, n).

        `gate` is (share of outliers, width of the kernel), `device` a torch.device.
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
        self, X: NDArray, device: Any
    ) -> tuple[NDArray[np.float32], NDArray[np.float32] | None]:
        """x (n, d) and f(x) (n,), None without a gate, which works on a torch.device."""
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
