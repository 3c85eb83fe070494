"""Why an object of a finished job is where it is."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from evdist.data.dataset import Dataset
from evdist.data.scale import Scale
from evdist.partition import CredalPartition
from evdist.partition.explain import Explanation
from evdist.registry import ALGORITHMS
from evdist.service.jobs.folder import JobFolder


def explain(
    folder: JobFolder, partition: CredalPartition, i: int, level: float | None
) -> Explanation:
    """`CredalPartition.explain` with the data of the job, where they are attributes."""
    loaded = folder.stages.get("load")
    if loaded is None or _metric(folder) in ("precomputed", "pairs"):
        return partition.explain(i, level=level)
    data = Dataset.open(loaded.outputs["data"])
    if data.n != partition.n_objects:
        return partition.explain(i, level=level)
    rows = data.rows()
    named = rows if data.columns is None else pd.DataFrame(rows, columns=data.columns)
    found = partition.explain(i, named, level=level)
    scale = Scale.of_json(folder.stages["validate"].outputs["scale"])
    if scale is None:
        return found
    return replace(found, neighbours=partition.explain(i, scale(rows), level=level).neighbours)


def _metric(folder: JobFolder) -> object:
    config = folder.config
    field = ALGORITHMS[config.algorithm].parameters.model_fields.get("metric")
    return config.parameters.get("metric", field and field.default)
