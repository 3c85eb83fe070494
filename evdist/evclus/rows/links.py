"""Must-links and cannot-links on a device: k-CEVCLUS, eqs. (12)-(20).

With Q = C + E, a must-link costs penalty m_i'Q m_j and a cannot-link penalty (2 - m_i'Q m_j). The
rows of one step share no link, so their gradients are computed before the step, for all at once.
Sums are added by halves, so that the bits of a row do not tell how many others there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

#: Numbers gathered at a time.
_ROOM = 1 << 26


@dataclass(frozen=True)
class DeviceLinks:
    """Links of the rows that have any, in float64.

    Attributes
    ----------
    rows : (r,) int64, positions with links, ascending
    other : (r, w) int64, sign : (r, w)
        Their partners, with +1 for a must-link, -1 for a cannot-link and 0 for an unused place.
    Q : (f, f)
    penalty : float
    """

    rows: Tensor
    other: Tensor
    sign: Tensor
    Q: Tensor
    penalty: float

    @classmethod
    def of(
        cls,
        first: np.ndarray,
        other: np.ndarray,
        sign: np.ndarray,
        Q: np.ndarray,
        penalty: float,
        device: torch.device,
    ) -> DeviceLinks:
        """From compressed rows: row i owns entries first[i] .. first[i + 1] - 1."""
        count = np.diff(first)
        rows = np.flatnonzero(count)
        width = int(count.max(initial=1))
        t = np.arange(width)
        there = t < count[rows, None]
        at = np.where(there, first[rows, None] + t, 0)
        return cls(
            torch.as_tensor(rows, device=device),
            torch.as_tensor(other[at].astype(np.int64), device=device),
            torch.as_tensor(np.where(there, sign[at], 0.0), device=device),
            torch.as_tensor(np.array(Q, float), device=device),
            penalty,
        )

    def gradient(self, mass: Tensor, which: Tensor) -> Tensor:
        """Of the penalty in the rows rows[which]: (len(which), f), mass (T, f, 32).

        penalty sum_j sign_j Q m_j, eq. (20b).
        """
        f = mass.shape[1]
        parts = []
        for part in which.split(max(1, _ROOM // (f * max(f, self.other.shape[1])))):
            j = self.other[part]
            m = _by_halves(mass[j >> 5, :, j & 31].double() * self.sign[part][:, :, None])
            parts.append(_by_halves(m[:, :, None] * self.Q.T))
        return torch.cat(parts) * self.penalty

    def total(self, mass: Tensor) -> float:
        """The penalty of all links, each counted once."""
        every = torch.arange(len(self.rows), device=mass.device)
        m = mass[self.rows >> 5, :, self.rows & 31].double()
        linear = (self.gradient(mass, every) * m).sum()
        # A cannot-link costs 2 - m_i'(C + E)m_j, eq. (16).
        constant = 2 * self.penalty * (self.sign < 0).sum()
        return float(linear + constant) / 2


def _by_halves(x: Tensor) -> Tensor:
    """Sums (r, f) over the middle axis of (r, w, f)."""
    while x.shape[1] > 1:
        half = x.shape[1] // 2
        rest = x[:, 2 * half :]
        x = torch.cat([x[:, :half] + x[:, half : 2 * half], rest], dim=1)
    return x[:, 0]
