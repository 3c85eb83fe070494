"""What the clusters of a finished job are, and why an object is where it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evdist.data.dataset import Dataset
from evdist.data.original import OriginalTable
from evdist.data.scale import Scale
from evdist.partition import CredalPartition, Decisions
from evdist.partition.describe import Description
from evdist.partition.explain import Explanation
from evdist.registry import ALGORITHMS
from evdist.service.jobs.folder import JobFolder


def explain(
    folder: JobFolder,
    partition: CredalPartition,
    i: int,
    level: float | Decisions | None,
    compared: Any = None,
) -> Explanation:
    """`CredalPartition.explain` with the data of the job in their own units, where it has any.

    `compared` are its rows on their scale, where the caller has them in memory.
    """
    data = attributes(folder, partition)
    if data is None:
        return partition.explain(i, level=level)
    if compared is None:
        rows, scale = data.rows(), Scale.of_json(folder.stages["validate"].outputs["scale"])
        compared = rows if scale is None else scale(rows)
    near = partition.explain(i, compared, level=level)
    found = partition.explain(i, OriginalTable(data), level=level)
    return replace(found, neighbours=near.neighbours, neighbour_ids=near.neighbour_ids)


def describe(
    folder: JobFolder, partition: CredalPartition, text: Any, level: float | None
) -> Description:
    """`CredalPartition.describe` with the data of the job in their own units."""
    data = attributes(folder, partition)
    table = None if data is None else OriginalTable(data)
    return partition.describe(table, text=text, level=level)


def attributes(folder: JobFolder, partition: CredalPartition) -> Dataset | None:
    """The data of a job, where they are attributes of its objects."""
    loaded = folder.stages.get("load")
    if loaded is None or _metric(folder) in ("precomputed", "pairs"):
        return None
    data = Dataset.open(loaded.outputs["data"])
    return data if data.n == partition.n_objects else None


def _metric(folder: JobFolder) -> object:
    config = folder.config
    field = ALGORITHMS[config.algorithm].parameters.model_fields.get("metric")
    return config.parameters.get("metric", field and field.default)
