"""The last stages: the answer in numbers, one row per object, and a page to look at."""

from __future__ import annotations

import json
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from evdist.jobs.context import Job
from evdist.jobs.folder import Stage
from evdist.partition import CredalPartition
from evdist.report import render_report
from evdist.stores.encoding import reading
from evdist.stores.paths import read_bytes, replace_bytes

__all__ = ["report", "summarise", "write_objects"]

#: Rows of the table of objects written at a time.
_ROWS = 1 << 17


def summarise(job: Job) -> dict[str, Any]:
    """metrics.json: the answer in numbers; objects.parquet: one row per object."""
    job.tell("summarise")
    with reading(job.folder.path("masses.zarr"), "Remove it and run the job again."):
        partition = job.partition
        metrics = summary(job, partition)
    replace_bytes(job.folder.path("metrics.json"), json.dumps(metrics, indent=1).encode())
    write_objects(job.folder.path("objects.parquet"), partition)
    return {"files": ["metrics.json", "objects.parquet"]}


def summary(job: Job, partition: CredalPartition) -> dict[str, Any]:
    found = partition.summary()
    stages = job.folder.stages
    metrics: dict[str, Any] = {
        "job": job.folder.id,
        "task": job.config.task,
        "n_objects": found.n_objects,
        "n_clusters": found.n_clusters,
        "n_sure": found.n_sure,
        "n_between": found.n_between,
        "n_outliers": found.n_outliers,
        "nonspecificity": float(found.nonspecificity),
        "clusters": [
            {"labelled": int(a), "sure": int(b), "possible": int(c), "expected": float(e)}
            for a, b, c, e in zip(
                found.sizes.labels, found.sizes.lower, found.sizes.upper, found.sizes.expected,
                strict=True,
            )
        ],
        **_fitted(stages),
        "seconds": {name: stage.seconds for name, stage in stages.items()},
        "warnings": [w for stage in stages.values() for w in stage.outputs.get("warnings", [])],
    }  # fmt: skip
    label = job.data.label if "load" in stages else None
    if label is not None and len(label) == found.n_objects:
        known = label >= 0
        labels = np.asarray(partition.labels())
        metrics["adjusted_rand_index"] = float(adjusted_rand_score(label[known], labels[known]))
    return metrics


def _fitted(stages: dict[str, Stage]) -> dict[str, Any]:
    """Scores of the fit, where there was one."""
    made = [stages[name] for name in ("fit", "select") if name in stages]
    return made[0].outputs["fitted"] if made else {}


def write_objects(url: str, partition: CredalPartition) -> None:
    """One row per object: cluster (from 1), whether it is sure or an outlier, plausibilities."""
    schema = pa.schema(
        [("row", pa.int64()), ("cluster", pa.int32()), ("sure", pa.bool_()),
         ("outlier", pa.bool_()), ("nonspecificity", pa.float32())]
        + [(f"plausibility_{k + 1}", pa.float32()) for k in range(partition.n_clusters)]
    )  # fmt: skip
    # Dictionaries of numbers that hardly repeat cost four times the rest of the writing.
    repeat = {"use_dictionary": ["cluster"]}
    with fsspec.open(url, "wb") as file, pq.ParquetWriter(file, schema, **repeat) as writer:
        for lo in range(0, partition.n_objects, _ROWS):
            block = np.asarray(partition.mass[lo : lo + _ROWS])  # read once, looked at often
            part = CredalPartition(block, partition.focal_sets)
            writer.write_table(_rows(part, lo, schema))


def _rows(part: CredalPartition, first: int, schema: pa.Schema) -> pa.Table:
    outlier = np.asarray(part.outliers())
    columns = [
        np.arange(first, first + part.n_objects),
        (np.asarray(part.labels()) + 1).astype(np.int32),
        np.asarray(part.lower()).any(axis=1) & ~outlier,
        outlier,
        np.asarray(part.object_nonspecificity(), dtype=np.float32),
        *np.ascontiguousarray(np.asarray(part.plausibility).T, dtype=np.float32),
    ]
    return pa.table(columns, schema=schema)


def report(job: Job) -> dict[str, Any]:
    """report.html: one page to look at."""
    job.tell("report")
    metrics = json.loads(read_bytes(job.folder.path("metrics.json")) or b"{}")
    partition = job.partition
    model = job.algorithm.cls.load(job.folder.url) if job.folder.has("model.json") else None
    page = render_report(
        partition,
        X=_drawn(job, partition),
        title=job.config.title or f"Evidential clustering: {job.folder.id}",
        parameters=_parameters(job),
        timings={name: stage.seconds for name, stage in job.folder.stages.items()},
        history=getattr(model, "history_", None),
        shepard=_shepard(model),
        metrics={
            name: value for name, value in metrics.items()
            if isinstance(value, int | float | str) and name not in ("job", "task")
        },
        notes=metrics["warnings"],
    )  # fmt: skip
    replace_bytes(job.folder.path("report.html"), page.encode())
    return {"files": ["report.html"]}


def _shepard(model: Any) -> Any:
    return model.shepard_pairs() if hasattr(model, "shepard_pairs") else None


def _drawn(job: Job, partition: CredalPartition) -> NDArray | None:
    attributes = job.metric not in ("precomputed", "pairs")
    if "load" not in job.folder.stages or not attributes or job.data.n != partition.n_objects:
        return None
    return job.X


def _parameters(job: Job) -> dict[str, Any]:
    config = job.config
    known: dict[str, Any] = {"task": config.task}
    if config.data is not None:
        known |= {"data": config.data.url, "scale": config.data.scale}
    if config.task in ("cluster", "select"):
        known |= {"algorithm": config.algorithm, **config.parameters}
    if config.model is not None:
        known["model"] = config.model
    return known
