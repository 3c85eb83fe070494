"""Attributes on a device, made ready for a metric, and the dissimilarities of kept pairs.

A metric is a sum over coordinates of rows that were transformed once, as in
`evdist.kernels.distances`: cosine and correlation distances are those of normalised rows,
Mahalanobis the Euclidean distance of whitened data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.gpu.arrays import Graph, Partners, tile_count, tiles
from evdist.evclus.gpu.cuda_rows import Rows
from evdist.evclus.gpu.kept import Make

__all__ = ["CODES", "DeviceMetric", "ReadyRows", "gamma_of", "made_from", "matrix", "sample"]
__all__ += ["tiles_of"]

#: Metric -> (sum over coordinates, what is done to the sum), as `Metric.code` has them.
CODES = {
    "euclidean": (0, 1),
    "sqeuclidean": (0, 0),
    "cityblock": (1, 0),
    "chebyshev": (2, 0),
    "hamming": (3, 3),
    "cosine": (0, 2),
    "correlation": (0, 2),
    "mahalanobis": (0, 1),
}
#: Rows summed, and numbers transformed, at a time.
_ROWS = 1 << 20
_NUMBERS = 1 << 25


@dataclass(frozen=True)
class DeviceMetric:
    """A metric made ready for some data; `centre` (d,) and `whiten` (d, d) float64."""

    name: str
    centre: Tensor
    whiten: Tensor | None = None

    @classmethod
    def of(cls, X: Tensor, name: str) -> DeviceMetric:
        """Ready `name`, a key of CODES, for the rows of X (n, d)."""
        if name not in CODES:
            raise ValueError(f"metric must be one of {', '.join(sorted(CODES))}, got {name!r}.")
        d = X.shape[1]
        centre = torch.zeros(d, dtype=torch.float64, device=X.device)
        if name not in ("cosine", "correlation", "hamming"):
            for part in X.split(_ROWS):
                centre += part.sum(0, dtype=torch.float64)
            centre /= len(X)
        return cls(name, centre, _whitening(X, centre) if name == "mahalanobis" else None)

    @property
    def code(self) -> tuple[int, int]:
        return CODES[self.name]

    def rows(self, X: Tensor, first: int = 0) -> Tensor:
        """Rows whose coordinate sums give the metric, (n, d) float32."""
        Z = X.double() - self.centre
        if self.name in ("cosine", "correlation"):
            size = Z.norm(dim=1, keepdim=True)
            if self.name == "correlation":
                Z = Z - Z.mean(1, keepdim=True)
            length = Z.norm(dim=1, keepdim=True)
            # The mean of equal numbers need not be that number in its last bit.
            flat = (length <= 1e-14 * size).flatten()
            if bool(flat.any()):
                row = first + int(flat.nonzero()[0])
                what = "constant" if self.name == "correlation" else "zero"
                raise ValueError(
                    f"Row {row} of X is {what}: its {self.name} dissimilarity to others is "
                    "undefined. Remove such rows or choose another metric."
                )
            Z = Z / length
        elif self.whiten is not None:
            Z = Z @ self.whiten
        return Z.float()


@dataclass(frozen=True)
class ReadyRows:
    """Rows that were made ready for their metric before."""

    code: tuple[int, int]

    def rows(self, X: Tensor, first: int = 0) -> Tensor:
        return X.float()


def _whitening(X: Tensor, centre: Tensor) -> Tensor:
    d = X.shape[1]
    S = torch.zeros(d, d, dtype=torch.float64, device=X.device)
    for part in X.split(_ROWS):
        Z = part.double() - centre
        S += Z.T @ Z
    S /= max(len(X) - 1, 1)
    spread = S.diagonal().sqrt()
    unit = torch.where(spread > 0, spread, 1.0)
    values, vectors = torch.linalg.eigh(S / unit / unit[:, None])
    if values[0] <= 1e-12 * values[-1]:
        raise ValueError(
            "The covariance matrix of X is singular, so the Mahalanobis distance is undefined. "
            "Remove constant or linearly dependent columns, or choose another metric."
        )
    return vectors / values.sqrt() / unit[:, None]


def tiles_of(X: Tensor | np.ndarray, metric: DeviceMetric | ReadyRows, order: Tensor) -> Tensor:
    """Rows `order` of X, ready for the metric, in tiles (T, d, 32); a block at a time."""
    n, d = len(order), X.shape[1]
    out = torch.zeros(tile_count(n), d, 32, dtype=torch.float32, device=order.device)
    rows = max(32, _NUMBERS // d // 32 * 32)
    for lo in range(0, n, rows):
        # X may lie in the memory of the host: only a block of it travels at a time.
        some = order[lo : lo + rows]
        if isinstance(X, np.ndarray):
            part = torch.from_numpy(X[some.cpu().numpy()]).to(order.device)
        else:
            part = X[some.to(X.device)].to(order.device)
        found = tiles(metric.rows(part, lo))
        out[lo // 32 : lo // 32 + len(found)] = found[: len(out) - lo // 32]
    return out


def gamma_of(d0: float) -> float:
    """phi(d) = 1 - exp(-gamma d^2), gamma = -log(0.05) / d0^2; k-CEVCLUS eqs. (5)-(6)."""
    return -math.log(0.05) / d0**2


def sample(
    rows: Rows, table: Tensor, graph: Graph, code: tuple[int, int], d0: float | None,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Dissimilarities of all kept pairs, (k, n); transformed unless d0 is None."""
    out = torch.empty(graph.k, graph.n, dtype=dtype, device=table.device)
    gamma = 0.0 if d0 is None else gamma_of(d0)
    for colour, partners in enumerate(graph.colours):
        lo, hi = graph.bounds[colour : colour + 2]
        rows.distances(
            table, table, out, partners, code, gamma,
            lo=lo, first=lo, rows=hi - lo, place=0, spread=1,
        )  # fmt: skip
    return out


def made_from(rows: Rows, table: Tensor, graph: Graph, code: tuple[int, int], d0: float) -> Make:
    """Makes transformed dissimilarities of kept pairs from attributes in tiles (T, d, 32)."""
    gamma = gamma_of(d0)

    def make(colour: int, a: int, b: int, out: Tensor) -> None:
        rows.distances(
            table, table, out, graph.colours[colour], code, gamma,
            lo=graph.bounds[colour] + a, first=0, rows=b - a, place=a, spread=1,
        )  # fmt: skip

    return make


def matrix(rows: Rows, table: Tensor, n: int, code: tuple[int, int]) -> Tensor:
    """All dissimilarities of a few objects, (n, n)."""
    partners = Partners.landmarks(np.arange(n), n, table.device)
    out = torch.empty(n, n, device=table.device)
    rows.distances(table, table, out, partners, code, 0.0, lo=0, first=0, rows=n, place=0, spread=0)
    return out
