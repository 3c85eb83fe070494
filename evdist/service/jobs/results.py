"""The last stages: the answer in numbers, one row per object, and a page to look at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from evdist.belief import FocalSets
from evdist.partition import CredalPartition, decisions, views
from evdist.partition.rows import gather_rows
from evdist.report import render_report
from evdist.service.jobs.context import Job
from evdist.service.jobs.folder import Stage
from evdist.stores.encoding import reading
from evdist.stores.paths import read_bytes, replace_bytes

__all__ = ["report", "summarise", "write_objects"]

#: Rows of the table of objects written at a time.
_ROWS = 1 << 17


def summarise(job: Job) -> dict[str, Any]:
    """metrics.json: the answer in numbers; objects.parquet: one row per object."""
    job.tell("summarise")
    with reading(job.folder.path("masses.zarr"), "Remove it and run the job again."):
        metrics = numbers(job)
    replace_bytes(job.folder.path("metrics.json"), json.dumps(metrics, indent=1).encode())
    write_objects(job.folder.path("objects.parquet"), job.partition, job.summary.level)
    return {"files": ["metrics.json", "objects.parquet"]}


def numbers(job: Job) -> dict[str, Any]:
    """What metrics.json says."""
    found = job.summary
    stages = job.folder.stages
    metrics: dict[str, Any] = {
        "job": job.folder.id,
        "task": job.config.task,
        "n_objects": found.n_objects,
        "n_clusters": found.n_clusters,
        "n_sure": found.n_sure,
        "n_between": found.n_between,
        "n_outliers": found.n_outliers,
        "level": found.level,
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
        labels = np.asarray(job.partition.labels())
        metrics["adjusted_rand_index"] = float(adjusted_rand_score(label[known], labels[known]))
    return metrics


def _fitted(stages: dict[str, Stage]) -> dict[str, Any]:
    """Scores of the fit, where there was one."""
    made = [stages[name] for name in ("fit", "select") if name in stages]
    return made[0].outputs["fitted"] if made else {}


def write_objects(url: str, partition: CredalPartition, level: float | None = None) -> None:
    """One row per object: cluster (from 1), what is decided of it at the level, plausibilities.

    ``level`` is that of the partition's summary, where it is known already.
    """
    level = partition.level() if level is None else level
    names = pa.dictionary(pa.int32(), pa.string())
    schema = pa.schema(
        [("row", pa.int64()), ("cluster", pa.int32()), ("sure", pa.bool_()),
         ("outlier", pa.bool_()), ("decision", names), ("open", names),
         ("margin", pa.float32()), ("nonspecificity", pa.float32())]
        + [(f"plausibility_{k + 1}", pa.float32()) for k in range(partition.n_clusters)]
    )  # fmt: skip
    # Of numbers that hardly repeat, dictionaries cost four times the rest of the writing, least
    # and greatest values a quarter of it.
    few = {
        "use_dictionary": ["cluster", "decision", "open"],
        "write_statistics": ["row", "cluster"],
    }
    with fsspec.open(url, "wb") as file, pq.ParquetWriter(file, schema, **few) as writer:
        for rows in _tables(partition, schema, level):
            writer.write_table(rows)


def _tables(partition: CredalPartition, schema: pa.Schema, level: float) -> Iterator[pa.Table]:
    """The table of objects, some rows at a time; the next are made while these are written."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(_rows, partition, 0, schema, level)
        for first in range(_ROWS, partition.n_objects, _ROWS):
            now, coming = coming, pool.submit(_rows, partition, first, schema, level)
            yield now.result()
        yield coming.result()


def _rows(partition: CredalPartition, first: int, schema: pa.Schema, level: float) -> pa.Table:
    focal = partition.focal_sets
    part = CredalPartition(np.asarray(partition.mass[first : first + _ROWS]), focal)
    looks = gather_rows(partial(_columns, focal=focal, level=level), part.mass)
    columns = [np.concatenate(parts) for parts in zip(*looks, strict=True)]
    numbers = np.arange(first, first + part.n_objects)
    return pa.table(
        [
            pa.array(c, f.type)
            if f.type != schema.field("open").type
            else pa.array(c).dictionary_encode()
            for c, f in zip([numbers, *columns], schema, strict=True)
        ],
        schema=schema,
    )


def _columns(m: NDArray, first: int, focal: FocalSets, level: float) -> list[NDArray]:
    """What the table says of a block of objects, but for their numbers."""
    contour, decided = views.contour(m, focal), decisions.decide(m, focal, level)
    code, still = decided[:, 0], decided[:, 1:].astype(bool)
    return [
        (contour.argmax(axis=1) + 1).astype(np.int32),
        code == 0,
        code == 2,
        np.array(decisions.DECISIONS)[code],
        np.array(decisions.named_sets(still)),
        decisions.margin(m, focal).astype(np.float32),
        views.specificity_loss(m, focal).astype(np.float32),
        *contour.T.astype(np.float32),
    ]


def report(job: Job) -> dict[str, Any]:
    """report.html: one page to look at."""
    job.tell("report")
    metrics = json.loads(read_bytes(job.folder.path("metrics.json")) or b"{}")
    page = render_report(
        job.partition,
        summary=job.summary,
        X=_drawn(job),
        title=job.config.title or f"Evidential clustering: {job.folder.id}",
        parameters=_parameters(job),
        timings={name: stage.seconds for name, stage in job.folder.stages.items()},
        history=getattr(job.model, "history_", None),
        shepard=_shepard(job.model),
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


def _drawn(job: Job) -> NDArray | None:
    attributes = job.metric not in ("precomputed", "pairs")
    if "load" not in job.folder.stages or not attributes or job.data.n != job.partition.n_objects:
        return None
    if job.folder.has("partitions.zarr"):
        return None  # they were too many to be in memory
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
