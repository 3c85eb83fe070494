"""A partition's view on a device: its graph there, and its pairs, made when they are needed.

The rows of a view lie on the device only while the partition is updated, so that data and masses
may be larger than the memory of any GPU, and several GPUs share one fit.
"""

from __future__ import annotations

import numpy as np
import torch

from evdist.data.sources import AttributeSource
from evdist.evclus.partitions.graph import View
from evdist.evclus.rows.arrays import Graph, Partners
from evdist.evclus.rows.attributes import made_from, tiles_of
from evdist.evclus.rows.cuda import kernels_on
from evdist.evclus.rows.kept import Piece, Recomputed
from evdist.evclus.rows.memory import TILE_BYTES


def view_on(
    device: torch.device, view: View, source: AttributeSource, d0: float, pieces: list[Piece]
) -> tuple[Graph, Recomputed]:
    """What a `DeviceState` needs to update some pieces of a view's own rows."""
    graph = _graph(view, device)
    sums, end, d = source.metric.code
    table = tiles_of(source.table[:, :d], device)
    make = made_from(kernels_on(device, 2), table, graph, (sums, end), d0)
    # A half-sweep reads every pair once: made again costs no more than kept.
    columns = TILE_BYTES // (4 * graph.k)
    if graph.colours[0].listed is not None:
        columns = view.own  # partners lie where their dissimilarities lie: all in one tile
    like = torch.empty(graph.k, 0, device=device)
    return graph, Recomputed(make, [pieces], columns, like)


def _graph(view: View, device: torch.device) -> Graph:
    """The own rows as the one colour that is updated; those behind them only have partners in it.

    Partner h of the row at place t is place t + shift_h of a partner partition. Where some are
    near, the host lists them.
    """
    if view.near is not None:
        listed, degree = view.pairs(0, view.own)
        at = np.where(np.arange(view.k) < degree[:, None], listed.astype(np.int32), -1)
        partners = Partners.of_list(torch.as_tensor(at.T.copy(), device=device))
        bounds = tuple(view.bounds[:2].tolist())
        return Graph(view.n, view.k, int(degree.sum()), bounds, (partners,))
    block = view.blocks(view.graph.offsets)
    base, lim, shift = (
        torch.as_tensor(np.asarray(v, np.int32), device=device)
        for v in (view.bounds[block], np.diff(view.bounds)[block], view.graph.shifts)
    )
    partners = Partners(base, lim, shift, view.graph.size)
    return Graph(view.n, view.k, view.own * view.k, tuple(view.bounds[:2].tolist()), (partners,))
