"""Small problems for the kernels of a device, and what must hold of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from evdist.belief import FocalSets
from evdist.evclus.rows.arrays import Graph, State, on_grid, tiles, untile
from evdist.evclus.rows.attributes import sample, tiles_of
from evdist.evclus.rows.cuda import Kernels
from evdist.evclus.rows.torch import TorchKernels
from evdist.kernels.distances import Metric
from evdist.kernels.graph import PairGraph

CPU = torch.device("cpu")


def blobs(n: int, c: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Unit Gaussians round centres that lie well apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, c, n)
    centres = 10.0 * np.array([[i % 3, i // 3 % 3, i // 9] for i in range(c)])
    X = np.zeros((n, d))
    X[:, :3] = centres[y][:, :d]
    return (X + rng.normal(size=(n, d))).astype(np.float32), y


def ready(
    X: np.ndarray, metric: str = "euclidean", device: torch.device = CPU, *, floors: bool = False
) -> tuple[torch.Tensor, tuple[int, int]]:
    """Rows of X, ready for the metric, in tiles; and what the kernels call the metric.

    With `floors` the distances are those less noise floors, measured against every third row.
    """
    known = Metric.of(X, metric)
    if floors:
        known = replace(known, reference=known.table(X)[::3, : X.shape[1]])
    sums, end, d = known.code
    return tiles_of(known.table(X)[:, :d], device), (sums, end)


def make_state(
    sets: FocalSets,
    n: int = 203,
    k: int = 20,
    *,
    problems: int = 1,
    weighted: bool = False,
    intervals: bool = False,
    dtype: torch.dtype = torch.float32,
    device: torch.device = CPU,
    seed: int = 0,
) -> State:
    """Random masses on the kept pairs of some blobs; n is no multiple of the colours.

    With `intervals` a pair has two residuals, as in Bootclus: bounds of width 0.1 at most, and no
    mass on the empty set.
    """
    rng = np.random.default_rng(seed)
    graph = Graph.of(PairGraph.draw(n, k, rng), device)
    data, code = ready(blobs(n, sets.n_clusters, seed=seed)[0], device=device)
    delta = sample(TorchKernels(), data, graph, code, 6.0, dtype)
    projections = sets.C
    if intervals:
        delta = torch.cat([(0.9 - delta).clamp(min=0), delta])  # P^l, and 1 - P^u
        projections = np.stack([sets.S, sets.C])[:, 1:, 1:]
    f = projections.shape[-1]
    mass = torch.as_tensor(rng.dirichlet(np.ones(f), (problems, n)), device=device)
    weight = torch.as_tensor(rng.uniform(0.5, 2, n).astype(np.float32), device=device)
    return State.of(
        graph,
        delta.expand(problems, -1, -1).contiguous(),
        tiles(on_grid(mass)),
        projections,
        weight if weighted else None,
    )


def copy_of(state: State) -> State:
    """The same problem, to be swept by other kernels."""
    return State(
        state.graph, state.mass.clone(), state.table.clone(), state.delta, state.change.clone(),
        state.projections, state.weight, None if state.extra is None else state.extra.clone(),
    )  # fmt: skip


def one_sweep(rows: Kernels, state: State) -> torch.Tensor:
    for colour in range(len(state.graph.colours)):
        rows.update(state, colour)
    return state.change.sum(1, dtype=torch.float64)


def assert_on_grid(state: State) -> None:
    """Masses are whole multiples of 2^-24 of sum one, and the tables are exactly m C."""
    m = untile(state.mass, state.graph.n).double().cpu().numpy()
    units = m * (1 << 24)
    assert (units == np.rint(units)).all()
    assert (m >= 0).all()
    assert (m.sum(-1) == 1).all()
    for table, C in zip(
        state.table.chunk(len(state.projections), 1), state.projections.double().cpu(), strict=True
    ):
        found = untile(table, state.graph.n).double().cpu().numpy()
        np.testing.assert_array_equal(found, m @ C.numpy())


def kkt_residuals(state: State, colour: int) -> np.ndarray:
    """How far the rows of a colour are from the optimality conditions of their programs, (rows,).

    g must equal its smallest value wherever m > 0; relative to the size of S and g.
    """
    lo, hi = state.graph.bounds[colour : colour + 2]
    at, there = state.graph.colours[colour].positions(
        torch.arange(hi - lo, device=state.mass.device)
    )
    A = state.table[0][at >> 5, :, at & 31].double() * there[:, :, None]
    w = there.double()
    if state.weight is not None:
        w = w * state.weight[lo:hi].double() * state.weight.double()[at]
    m = untile(state.mass[0], state.graph.n).double()[lo:hi]
    r = w * ((A * m).sum(2) - state.delta[0, :, lo:hi].double())
    g = (A * r[:, :, None]).sum(0)
    scale = torch.maximum((A * A * w[:, :, None]).sum(0).amax(1), g.abs().amax(1))
    gap = torch.where(m > 0, g - g.amin(1, keepdim=True), 0.0).amax(1)
    return (gap / scale).cpu().numpy()
