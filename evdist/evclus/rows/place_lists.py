"""New objects placed on a device against landmarks whose rows are lists of clusters.

Each object meets the members of the clusters whose middles are nearest, and k uniform landmarks:
`evdist.evclus.landmarks.Placing` says which.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from evdist.data.sources import AttributeSource
from evdist.evclus.groups import START
from evdist.evclus.landmarks import NEAR_CLUSTERS, Placing
from evdist.evclus.rows.arrays import Graph, Partners
from evdist.evclus.rows.attributes import gamma_of, tiles_of
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.list_state import labelled_rows
from evdist.evclus.rows.lists import Lists, list_kernels_on
from evdist.kernels.distances import transform
from evdist.kernels.sparse_rows import WORDS

#: Numbers of a block: distances to the middles, or to the landmarks that are met.
_ROOM = 1 << 27
#: Objects that the host compares at a time.
_HOST_ROWS = 1 << 14


def place_lists(placing: Placing, device: torch.device) -> Tensor:
    """Encoded rows (n, WORDS) of all objects of a placing."""
    landmarks, n = placing.landmarks, placing.n
    assert landmarks.members is not None
    kernels = list_kernels_on(device)
    known = torch.as_tensor(np.array(landmarks.mass), device=device)
    out = torch.empty(n, WORDS, device=device)
    L, attributes = len(known), placing.attributes
    met = landmarks.members.shape[1] * min(NEAR_CLUSTERS, len(landmarks.members))
    k = met + len(placing.shifts)
    meet: _OnHost | _OnDevice = _OnHost(placing, device)
    size = _HOST_ROWS
    if attributes is not None:
        size = max(1024, _ROOM // max(k, len(landmarks.members)) // 1024 * 1024)
        meet = _OnDevice(placing, attributes, device)
    none = Graph(0, k, 0, (0, 0), ())
    for lo in range(0, n, size):
        hi = min(lo + size, n)
        listed, delta, label = meet(lo, hi)
        T = torch.cat([known, labelled_rows(label, START, device)])
        kernels.settle(T)
        state = Lists(
            none, T, delta[None], torch.zeros(1, len(T), device=device),
            landmarks.focal_sets.n_clusters, first=L,
        )  # fmt: skip
        kernels.assign(state, Partners.of_list(listed), L)
        out[lo:hi] = T[L:]
    at = torch.as_tensor(placing.known, device=device)
    if len(at):
        out[at] = known
    return out


class _OnDevice:
    """Objects with attributes."""

    def __init__(self, placing: Placing, attributes: np.ndarray, device: torch.device):
        self._placing, self._device = placing, device
        source = placing.landmarks.source
        assert isinstance(source, AttributeSource) and placing.landmarks.members is not None
        self._code = source.metric.code[:2]
        self._mine = tiles_of(attributes, device)
        self._others = tiles_of(source.rows, device)
        self._members = torch.as_tensor(placing.landmarks.members.astype(np.int32), device=device)
        self._labels = placing.landmarks.labels()
        self._kernels = kernels_on(device, 2)

    def __call__(self, lo: int, hi: int) -> tuple[Tensor, Tensor, np.ndarray]:
        """Landmarks (k, rows) that objects meet, dissimilarities, the nearest middle's cluster."""
        rows, members = hi - lo, self._members
        middles = members[:, :1].expand(-1, rows).contiguous()
        D = self._distances(middles, lo, rows, 0.0)
        near = []
        for _ in range(min(NEAR_CLUSTERS, len(members))):
            near.append(D.argmin(0))
            D.scatter_(0, near[-1][None], math.inf)
        placing = self._placing
        start = torch.arange(lo, hi, device=self._device) * int(placing.spread)
        shifts = torch.as_tensor(placing.shifts, device=self._device)
        uniform = (start + shifts[:, None]) % len(placing.landmarks.mass)
        theirs = [members[at].T for at in near]
        listed = torch.cat([*theirs, uniform.int()]).contiguous()
        delta = self._distances(listed, lo, rows, gamma_of(placing.landmarks.d0))
        label = self._labels[members[near[0], 0].cpu().numpy()]
        return listed, delta, label

    def _distances(self, listed: Tensor, lo: int, rows: int, gamma: float) -> Tensor:
        out = torch.empty(listed.shape, device=self._device)
        self._kernels.distances(
            self._mine, self._others, out, Partners.of_list(listed), self._code, gamma,
            lo=lo, first=0, rows=rows, place=0, spread=1,
        )  # fmt: skip
        return out


class _OnHost:
    """Objects that only the host can compare."""

    def __init__(self, placing: Placing, device: torch.device):
        self._placing, self._device = placing, device

    def __call__(self, lo: int, hi: int) -> tuple[Tensor, Tensor, np.ndarray]:
        placing = self._placing
        chosen = placing.chosen(lo, hi)
        D = placing.distances(lo, hi, chosen)
        delta = np.empty(D.shape, np.float32)
        transform(np.ascontiguousarray(D).reshape(-1), placing.landmarks.d0, delta.reshape(-1))
        listed = torch.as_tensor(chosen.astype(np.int32).T.copy(), device=self._device)
        return (
            listed,
            torch.as_tensor(delta.T.copy(), device=self._device),
            placing.label(chosen),
        )
