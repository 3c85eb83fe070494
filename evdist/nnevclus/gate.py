"""The one-class SVM that tells NN-EVCLUS which inputs are like those it was trained on.

Reference: Denoeux (2021), NN-EVCLUS, section 3.1, "Outlier detection".

Symbols
-------
s, a    (q, d) anchors and (q,) their weights; f(x) = sum_i a_i exp(-g |x - s_i|^2) - rho

The exact machine has its support vectors for anchors. Above EXACT objects a linear machine on
Nystroem features takes over: its features are linear in the kernel values to q anchors, so it has
the same form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.svm import OneClassSVM

from evdist.nnevclus.rows import one_thread

__all__ = ["Gate", "fit_gate"]

#: Objects up to which the exact machine is trained: its time grows with their square.
EXACT = 5000
#: Anchors of the approximate machine.
ANCHORS = 300
_ROWS = 1024


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
            for lo in range(0, len(x), _ROWS):
                rows = np.asarray(x[lo : lo + _ROWS], dtype=float)
                # Blocks of one size: f of an object must not depend on who stands beside it.
                block = np.pad(rows, ((0, _ROWS - len(rows)), (0, 0)))
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
