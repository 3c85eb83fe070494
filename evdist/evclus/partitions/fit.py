"""EVCLUS in partitions from end to end: lay out, start, place, sweep, answer.

The stages are those of `evdist.evclus.solver`; none of them has anything of size n in one place.
Everything lies in a folder that all workers reach:

```
FOLDER/
  partitions.zarr   the rows, shuffled
  groups.zarr       the group of each row; where some partners are near
  floors.zarr       the root of the noise floor of each row; where these are taken off
  points/           restore points
  back/             masses on their way to the user's order; removed at the end
  answer.zarr       the credal partition, by object
```
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.data.layout import PartitionedData
from evdist.engine.loop import Descent, Solution
from evdist.engine.partitioning import run_tasks
from evdist.engine.plan import whole_cycles
from evdist.engine.progress import Progress, Report
from evdist.evclus.confirm import Members
from evdist.evclus.groups import near_share
from evdist.evclus.irqp import minimise
from evdist.evclus.kept import SomePairs
from evdist.evclus.landmarks import Landmarks
from evdist.evclus.partitions.answer import kept_pairs, write_answer
from evdist.evclus.partitions.graph import draw_near_pairs, draw_partition_graph
from evdist.evclus.partitions.points import RestorePoints
from evdist.evclus.partitions.problem import PartitionedProblem
from evdist.evclus.partitions.sites import PartitionSite
from evdist.evclus.partitions.start import Start, find_start, group_sizes, place_partition
from evdist.evclus.solver import first_focal_sets, gives_back
from evdist.evclus.start import Settings
from evdist.stores.fingerprints import fingerprint
from evdist.stores.partitioned import PartitionArray
from evdist.stores.paths import join


@dataclass(frozen=True)
class PartitionedFit:
    """What a fit in partitions leaves: `answer` is the address of the credal partition."""

    answer: str
    focal_sets: FocalSets
    solution: Solution[None]
    d0: float
    d0_curve: list[tuple[float, float]]
    landmarks: Landmarks
    kept: SomePairs
    data: PartitionedData


def fit_partitions(
    X: Any, metric: str, settings: Settings, site: PartitionSite, report: Report = None
) -> PartitionedFit:
    """Fit EVCLUS to data of any size; see the module's docstring for what it leaves behind."""
    tell = report or (lambda news: None)
    client, folder = site.client, site.folder
    focal_sets = first_focal_sets(settings.focal_sets, settings.n_clusters)
    site.check(X, settings, focal_sets)
    data = site.lay_out(X, report)
    tell(Progress("first masses", 0, 0))
    (start,) = run_tasks(
        client, find_start, data, metric, focal_sets, settings, site.rows, items=[()]
    )
    problem = _problem(data, start, focal_sets, settings, site)
    tell(Progress(site.news(problem), 0, 0))
    points = RestorePoints(
        join(folder, "points"), problem, _identity(data, metric, settings, start)
    )
    solution, final = _descend(problem, points, start, settings, site, report)
    answer = join(folder, "answer.zarr")
    tell(Progress("answer", 0, 0))
    landmarks, members = _landmarks(problem, start, final)
    if gives_back(settings, problem.sparse or problem.labels is not None):
        landmarks = landmarks.with_reach(problem.n)
    known = (landmarks, members)
    write_answer(problem, final, known, answer, join(folder, "back"), client)
    # Conflicts are taken before mass comes back from the empty set.
    masses = None if landmarks.reach is None else partial(_rows_at, final)
    kept = kept_pairs(problem, masses)
    return PartitionedFit(
        answer, focal_sets, solution, start.d0, start.d0_curve, landmarks, kept, data
    )


def _problem(
    data: PartitionedData,
    start: Start,
    focal_sets: FocalSets,
    settings: Settings,
    site: PartitionSite,
) -> PartitionedProblem:
    k, seed, labels, near = settings.k, settings.seed, None, None
    floors = None
    if start.metric.floored:
        floors = PartitionArray(join(site.folder, "floors.zarr"), data.shuffle, 1, "float32")
    if start.grouping is not None:
        labels = PartitionArray(join(site.folder, "groups.zarr"), data.shuffle, 1, "uint32")
        share = near_share(k, settings.n_clusters)
        near = draw_near_pairs(data.shuffle, k, share, start.grouping.count, seed)
        k = max(k - near.k, 0)
    return PartitionedProblem(
        data, start.metric, draw_partition_graph(data.shuffle, k, seed), start.d0, focal_sets,
        site.rows, start.landmarks.mass.shape[1], near, labels, sparse=start.landmarks.sparse,
        promise=settings.stop.promise, floors=floors,
    )  # fmt: skip


def _identity(
    data: PartitionedData, metric: str, settings: Settings, start: Start
) -> dict[str, Any]:
    return {
        "data": data.fingerprint,
        "partitions": data.shuffle.count,
        "metric": metric,
        "k": settings.k,
        "seed": settings.seed,
        "d0": start.d0,
        "init": settings.init if isinstance(settings.init, str) else "given",
        "clusters": settings.n_clusters,
        "focal sets": fingerprint(
            list(start.landmarks.focal_sets.masks), start.landmarks.focal_sets.n_clusters
        ),
        **(
            {}
            if start.grouping is None
            else {"groups": fingerprint(start.grouping.means.V, start.grouping.means.group)}
        ),
        **({"rows": "sparse"} if start.landmarks.sparse else {}),
        **(
            {}
            if start.metric.reference is None
            else {"noise floor": fingerprint(start.metric.reference)}
        ),
    }


def _descend(
    problem: PartitionedProblem,
    points: RestorePoints,
    start: Start,
    settings: Settings,
    site: PartitionSite,
    report: Report,
) -> tuple[Solution[None], PartitionArray]:
    """Sweep from the last restore point, or from the first masses; also the final masses."""
    found = points.load()
    begin: Descent[None] | None = None
    if found is None:
        point = points.begin()
        if problem.labels is not None:
            problem.labels.create()
        if problem.floors is not None:
            problem.floors.create()
        run_tasks(
            site.client, place_partition, problem, start, settings, point,
            items=[(b,) for b in range(problem.parts)], size=problem.sizes.placing(),
            tell=lambda done, whole: report and report(Progress("place", done, 0)),
        )  # fmt: skip
        points.commit(point, {"history": [], "error": 1.0})
    else:
        point, known = found
        if known["history"]:
            begin = Descent(None, tuple(known["history"]), known["error"])
    if problem.near is not None:
        parts = [(b,) for b in range(problem.parts)]
        sizes = run_tasks(site.client, group_sizes, problem, items=parts)
        problem = replace(problem, near_entries=problem.near.entries(np.array(sizes)))
    executor = site.executor(problem, point)
    every, stop = whole_cycles(site.checkpoint_every), settings.stop
    at = (0 if begin is None else begin.steps, point)

    def save(now: Descent[None], last: bool) -> None:
        nonlocal at
        done = last and now.error < stop.tol
        if now.steps > at[0] and (done or now.steps % every == 0):
            slot = points.begin()
            executor.save(slot)
            points.commit(slot, {"history": [*now.history], "error": now.error})
            at = (now.steps, slot)

    try:
        solution = minimise(
            executor, problem.scale, stop, report=report, begin=begin, checkpoint=save
        )
        if at[0] < solution.n_iter:
            # A fit that stopped at max_iter may go on later, but from its restore point.
            at = (solution.n_iter, points.begin())
            executor.save(at[1])
        return solution, at[1]
    finally:
        executor.close()


def _landmarks(
    problem: PartitionedProblem, start: Start, final: PartitionArray
) -> tuple[Landmarks, Members | None]:
    """The landmarks with their final masses, named by object, and those that stayed in groups."""
    landmarks = start.landmarks
    mass = _rows_at(final, landmarks.objects)
    objects = final.shuffle.objects_of(landmarks.objects.astype(np.int64)).astype(np.uint32)
    found = replace(landmarks, mass=mass, objects=objects)
    if problem.near is None or problem.labels is None:
        return found, None
    began = _rows_at(problem.labels, landmarks.objects)[:, 0]
    members = Members.of(mass, began, problem.focal_sets, problem.sparse)
    members.confirm(mass, began, problem.d0, landmarks.source.distances)
    return found.with_members(), members


def _rows_at(stored: PartitionArray, positions: NDArray[Any]) -> NDArray[Any]:
    """Rows of a store at some positions."""
    positions, bounds = positions.astype(np.int64), stored.shuffle.bounds
    partition = np.searchsorted(bounds, positions, side="right") - 1
    found = np.empty((len(positions), stored.width), stored.dtype)
    for b in np.unique(partition).tolist():
        mine = partition == b
        found[mine] = stored.read(b)[positions[mine] - bounds[b]]
    return found
