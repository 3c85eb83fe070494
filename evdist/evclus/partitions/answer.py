"""The answer of a fit in partitions: masses brought back into the user's order, in a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from evdist.belief import conflict
from evdist.data.sources import AttributeSource
from evdist.engine.partitioning import run_tasks
from evdist.evclus.confirm import Members
from evdist.evclus.kept import MAX_PAIRS, SomePairs
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.partitions.problem import PartitionedProblem, ViewPairs
from evdist.evclus.solver import tell_full_rows
from evdist.kernels.sparse_rows import full_rows
from evdist.partition import io
from evdist.stores.encoding import zarr_at
from evdist.stores.exchange import Exchange
from evdist.stores.partitioned import PartitionArray
from evdist.stores.paths import exists, join, remove

#: Copies of a partition's masses that a task makes, at most; its attributes are among them.
_COPIES = 6


def write_answer(
    problem: PartitionedProblem,
    final: PartitionArray,
    known: tuple[Landmarks, Members | None],
    url: str,
    folder: str,
    client: Any,
) -> None:
    """Write masses by object to `url`, as `CredalPartition.load` reads them.

    `known` are the landmarks, and those that stayed in their groups, where the fit began with
    groups: objects that left theirs are compared with them. Else mass comes back from the empty
    set by distances to landmarks. `folder` is for rows on their way.
    """
    for old in (url, folder):
        if exists(old):
            remove(old)
    target = io.begin(
        url, problem.n, problem.focal_sets, np.dtype(np.float32), lists=problem.sparse
    )
    bounds = np.append(np.arange(0, problem.n, target.chunks[0]), problem.n)
    back = Exchange(folder, bounds, final.width, final.dtype)
    back.begin()
    names = [str(b) for b in range(problem.parts)]
    size = _COPIES * problem.data.shuffle.rows * final.width * 4
    parts = [(b,) for b in range(problem.parts)]
    full = run_tasks(client, _send, problem, back, final, known, items=parts, size=size)
    run_tasks(
        client, _collect, back, join(url, target.basename), names,
        items=[(q,) for q in range(len(bounds) - 1)], size=size,
    )  # fmt: skip
    back.close()
    io.finish(url)
    if problem.sparse:
        tell_full_rows(sum(full), problem.n)


def _send(
    problem: PartitionedProblem,
    back: Exchange,
    final: PartitionArray,
    known: tuple[Landmarks, Members | None],
    partition: int,
) -> int:
    """Also how many of the rows, where they are lists, are full."""
    lo, hi = final.shuffle.bounds[partition : partition + 2].tolist()
    mass = final.read(partition)
    landmarks, members = known
    if landmarks.reach is not None:
        objects = final.shuffle.objects(lo, hi)
        own = np.isin(objects, landmarks.objects[landmarks.reach.place])
        landmarks.give_back_new(mass, problem.data.read(partition), own)
    if members is not None and problem.labels is not None:
        X = problem.data.read(partition)
        began = problem.labels.read(partition)[:, 0]
        members.confirm(
            mass, began, problem.d0, lambda rows, others: landmarks.source.cross(X[rows], others)
        )
    back.put(str(partition), final.shuffle.objects(lo, hi), mass)
    return full_rows(mass) if problem.sparse else 0


def _collect(back: Exchange, url: str, blocks: list[str], number: int) -> None:
    lo, hi = back.bounds[number : number + 2].tolist()
    zarr.open_array(**zarr_at(url), mode="r+")[lo:hi] = back.take(number, blocks)


def kept_pairs(
    problem: PartitionedProblem, masses: Callable[[NDArray[Any]], NDArray[Any]] | None = None
) -> SomePairs:
    """Some of the kept pairs, by object: those of a few rows of one partition.

    With their conflicts where `masses` gives the rows at some positions.
    """
    view = problem.view(0)
    rows = min(view.own, -(-MAX_PAIRS // view.k))
    parts = (0, *view.partners)
    shuffle = problem.data.shuffle

    def source() -> AttributeSource:
        tables = [problem.table(q) for q in parts]
        return AttributeSource(np.concatenate(tables), problem.metric)

    block = ViewPairs(view, problem.d0, source).block(0, rows)
    entry = np.flatnonzero(np.arange(view.k) < block.degree[:, None])[:MAX_PAIRS]
    places = np.concatenate([np.arange(*shuffle.bounds[q : q + 2]) for q in parts])
    at_i, at_j = places[entry // view.k], places[block.partner[entry]]
    kappa = None
    if masses is not None:
        kappa = conflict(masses(at_i), masses(at_j), problem.focal_sets)
    i, j = (shuffle.objects_of(at).astype(np.uint32) for at in (at_i, at_j))
    return SomePairs(i, j, block.delta[entry], kappa)
