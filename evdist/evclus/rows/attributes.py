"""Attributes on a device, and the dissimilarities of kept pairs that are computed from them.

Rows were made ready for their metric on the host (`evdist.kernels.distances.Metric`); a device
only sums over coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from weakref import ref

import numpy as np
import torch
from torch import Tensor

from evdist.evclus.rows.arrays import Graph, tile_count, tiles
from evdist.evclus.rows.cuda import Kernels
from evdist.evclus.rows.kept import Make

#: Numbers that travel at a time.
_NUMBERS = 1 << 25
#: Bytes of a table at most that stays on a device for the next stage.
_KEEP = 1 << 31
#: Numbers of a part of what travels back, and parts on their way.
_STAGED, _STAGES = 1 << 21, 8


def on_device(order: np.ndarray, device: torch.device) -> Tensor:
    """Numbers of objects (n,), below 2^31, as int64 on a device: half of that travels."""
    return torch.as_tensor(order.astype(np.int32), device=device).long()


def positions_of(order: Tensor) -> Tensor:
    """Object -> position, from position -> object, (n,) int64."""
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order), device=order.device)
    return position


class _Sent:
    """The table whose rows a device got last: the next stage of a fit wants them too.

    They go when they are taken, when another table is sent, and with the table itself.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._what: tuple[ref, torch.device, Tensor] | None = None

    def put(self, table: np.ndarray, rows: Tensor) -> None:
        with self._lock:
            self._what = (ref(table, self._forget), rows.device, rows)

    def take(self, table: np.ndarray, device: torch.device) -> Tensor | None:
        with self._lock:
            what = self._what
            if what is None or what[0]() is not table or what[1] != device:
                return None
            self._what = None
            return what[2]

    def _forget(self, gone: ref) -> None:
        what = self._what
        if what is not None and what[0] is gone:
            self._what = None


_SENT = _Sent()


def sent_rows(table: np.ndarray, d: int, device: torch.device, size: int) -> Iterator[Tensor]:
    """The first d numbers of all rows of a table on a device, `size` rows at a time.

    Where the table is small they stay there until `table_tiles` takes them.
    """
    keep = table.nbytes <= _KEEP and device.type == "cuda"
    if keep:
        # With their padding: as they lie.
        rows = torch.as_tensor(table).to(device)
        _SENT.put(table, rows)
        yield from rows[:, :d].split(size)
        return
    for lo in range(0, len(table), size):
        yield torch.as_tensor(table[lo : lo + size]).to(device)[:, :d]


def table_tiles(
    table: np.ndarray, d: int, device: torch.device, order: np.ndarray | None
) -> Tensor:
    """`tiles_of` the first d numbers of a table's rows."""
    rows = _SENT.take(table, device)
    if rows is None or order is None:
        return tiles_of(table[:, :d], device, order)
    found = torch.zeros(tile_count(len(rows)), d, 32, dtype=torch.float32, device=device)
    at = positions_of(on_device(order, device))
    found[at >> 5, :, at & 31] = rows[:, :d]
    return found


def gathered(rows: Tensor, at: Tensor) -> np.ndarray:
    """rows[at] in the host's memory: (n, w), w numbers of each of n rows.

    Rows of a GPU travel through page-locked memory, from where threads copy them: new memory of the
    host takes longer to touch than the bus to cross.
    """
    n, w = len(at), rows.shape[1]
    if rows.device.type != "cuda" or n * w < 4 * _STAGED:
        return rows[at].cpu().numpy()
    out = torch.from_numpy(np.empty((n, w), np.float32))
    size = _STAGED // w
    staged = [torch.empty(size, w, pin_memory=True) for _ in range(_STAGES)]
    jobs: list[Future | None] = [None] * _STAGES

    def take(part: Tensor, room: Tensor, there: torch.cuda.Event) -> None:
        there.synchronize()
        part.copy_(room[: len(part)])

    with ThreadPoolExecutor(_STAGES) as pool:
        for number, lo in enumerate(range(0, n, size)):
            stage, part = number % _STAGES, out[lo : lo + size]
            before = jobs[stage]
            if before is not None:
                before.result()
            staged[stage][: len(part)].copy_(rows[at[lo : lo + size]], non_blocking=True)
            there = torch.cuda.Event()
            there.record(torch.cuda.current_stream(rows.device))
            jobs[stage] = pool.submit(take, part, staged[stage], there)
        for job in jobs:
            if job is not None:
                job.result()
    return out.numpy()


def tiles_of(rows: np.ndarray, device: torch.device, order: np.ndarray | None = None) -> Tensor:
    """Rows (n, d) of the host in tiles (T, d, 32), in the order of positions; a block at a time.

    `order` is position -> row. Rows travel as they lie and are put in order on the device.
    """
    n, d = rows.shape
    out = torch.zeros(tile_count(n), d, 32, dtype=torch.float32, device=device)
    position = None if order is None else positions_of(on_device(order, device))
    size = max(32, _NUMBERS // d // 32 * 32)
    for lo in range(0, n, size):
        part = torch.as_tensor(rows[lo : lo + size]).to(device, torch.float32)
        if position is None:
            found = tiles(part)
            out[lo // 32 : lo // 32 + len(found)] = found[: len(out) - lo // 32]
        else:
            at = position[lo : lo + size]
            out[at >> 5, :, at & 31] = part
    return out


def gamma_of(d0: float) -> float:
    """phi(d) = 1 - exp(-gamma d^2), gamma = -log(0.05) / d0^2; k-CEVCLUS eqs. (5)-(6)."""
    return -math.log(0.05) / d0**2


def sample(
    kernels: Kernels, table: Tensor, graph: Graph, code: tuple[int, int], d0: float | None,
    dtype: torch.dtype,
) -> Tensor:  # fmt: skip
    """Dissimilarities of all kept pairs, (k, n); transformed unless d0 is None."""
    out = torch.empty(graph.k, graph.n, dtype=dtype, device=table.device)
    gamma = 0.0 if d0 is None else gamma_of(d0)
    for colour, partners in enumerate(graph.colours):
        lo, hi = graph.bounds[colour : colour + 2]
        kernels.distances(
            table, table, out, partners, code, gamma,
            lo=lo, first=lo, rows=hi - lo, place=0, spread=1,
        )  # fmt: skip
    return out


def made_from(
    kernels: Kernels, table: Tensor, graph: Graph, code: tuple[int, int], d0: float
) -> Make:
    """Makes transformed dissimilarities of kept pairs from attributes in tiles (T, d, 32)."""
    gamma = gamma_of(d0)

    def make(colour: int, a: int, b: int, out: Tensor) -> None:
        kernels.distances(
            table, table, out, graph.colours[colour], code, gamma,
            lo=graph.bounds[colour] + a, first=0, rows=b - a, place=a, spread=1,
        )  # fmt: skip

    return make
