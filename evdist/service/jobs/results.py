"""The last stages: the answer in numbers, one row per object, and a page to look at."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as scores

from evdist.data.dataset import Dataset
from evdist.data.original import OriginalTable
from evdist.data.scale import Scale
from evdist.partition import CredalPartition, Decisions
from evdist.partition.decisions import pairs_of
from evdist.partition.describe import Description
from evdist.partition.export import write_table
from evdist.registry import load
from evdist.report import render_report
from evdist.report.objects import FEW_COLUMNS, MapKind
from evdist.service.jobs.context import Job
from evdist.service.jobs.explaining import attributes, describe, explain
from evdist.service.jobs.folder import Stage
from evdist.stores.encoding import reading
from evdist.stores.paths import read_bytes, replace_bytes

#: Clusters of which metrics.json says how they would become fewer.
MOST_MERGED = 100


def summarise(job: Job) -> dict[str, Any]:
    """metrics.json: the answer in numbers; clusters.json: what each cluster is; objects.parquet:
    one row per object."""
    job.tell("summarise")
    with reading(job.folder.path("masses.zarr"), "Remove it and run the job again."):
        metrics = numbers(job)
        found = describe(job.folder, job.partition, None, job.summary.level)
        if job.partition.n_clusters <= MOST_MERGED:
            metrics["merges"] = [asdict(merge) for merge in job.partition.tree()]
    for one, card in zip(metrics["clusters"], found, strict=True):
        one["headline"] = card.headline
    replace_bytes(job.folder.path("clusters.json"), json.dumps(found.to_json(), indent=1).encode())
    replace_bytes(job.folder.path("metrics.json"), json.dumps(metrics, indent=1).encode())
    # The level is known: no second pass looks for it.
    write_table(job.folder.path("objects.parquet"), job.partition._answer(job.summary.level))
    return {"files": ["metrics.json", "clusters.json", "objects.parquet"]}


def numbers(job: Job) -> dict[str, Any]:
    """What metrics.json says."""
    found = job.summary
    pairs = pairs_of(found.level)
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
        **({} if pairs is None else {"levels": pairs.tolist()}),
        "nonspecificity": float(found.nonspecificity),
        "clusters": [
            {"labelled": int(a), "lower": int(b), "upper": int(c), "expected": float(e)}
            for a, b, c, e in zip(
                found.sizes.labels, found.sizes.lower, found.sizes.upper, found.sizes.expected,
                strict=True,
            )
        ],
        **_fitted(stages),
        "seconds": {name: stage.seconds for name, stage in stages.items()},
        "warnings": [w for stage in stages.values() for w in stage.outputs.get("warnings", [])],
    }  # fmt: skip
    if job.config.conformal is not None:
        metrics["conformal"] = _conformal(job.partition, job.config.conformal)
    label = job.data.label if "load" in stages else None
    if label is not None and len(label) == found.n_objects:
        known = label >= 0
        labels = np.asarray(job.partition.labels())
        metrics["adjusted_rand_index"] = float(
            scores.adjusted_rand_score(label[known], labels[known])
        )
    return metrics


def _conformal(partition: CredalPartition, alpha: float) -> dict[str, Any]:
    """Sizes of the conformal sets of the job's own objects, and what is promised of them."""
    sets = partition.conformal(alpha)
    return {
        "alpha": sets.alpha,
        "threshold": float(sets.threshold),
        "n_calibration": sets.n_calibration,
        "mean_size": float(sets.sizes.mean()),
        "counts": sets.counts().tolist(),
        "promise": sets.promise,
    }


def _fitted(stages: dict[str, Stage]) -> dict[str, Any]:
    """Scores of the fit, where there was one."""
    made = [stages[name] for name in ("fit", "select") if name in stages]
    return made[0].outputs["fitted"] if made else {}


def report(job: Job) -> dict[str, Any]:
    """report.html: one page to look at."""
    job.tell("report")
    metrics = json.loads(read_bytes(job.folder.path("metrics.json")) or b"{}")
    clusters = json.loads(read_bytes(job.folder.path("clusters.json")) or b"{}")
    if sets := metrics.get("conformal"):
        metrics[f"clusters in a conformal set, alpha {sets['alpha']:g}"] = sets["mean_size"]
    partition, data = job.partition, attributes(job.folder, job.partition)
    page = render_report(
        partition,
        summary=job.summary,
        X=None if data is None else _Rows(data, job.scale),
        map="auto" if data is None else _map(data),
        title=job.config.title or _title(job),
        parameters=_parameters(job),
        timings={name: stage.seconds for name, stage in job.folder.stages.items()},
        history=getattr(job.model, "history_", None),
        shepard=_shepard(job.model),
        metrics={
            name: value for name, value in metrics.items()
            if isinstance(value, int | float | str) and name not in ("job", "task")
        },
        notes=metrics["warnings"],
        describe=None if data is None else _shown_values(data),
        description=Description.of_json(clusters),
        explain=_why(job, data),
    )  # fmt: skip
    replace_bytes(job.folder.path("report.html"), page.encode())
    return {"files": ["report.html"]}


def _title(job: Job) -> str:
    """What was clustered: the name of its file, else that of the job."""
    if job.config.data is None:
        return f"Clusters of {job.folder.id}"
    name = str(job.config.data.url).rstrip("/").rpartition("/")[2]
    return f"Clusters of {name}"


def _shepard(model: Any) -> Any:
    return model.shepard_pairs() if hasattr(model, "shepard_pairs") else None


def _shown_values(data: Dataset) -> Any:
    """What is shown of an object that is pointed at: its values as they stood in the table."""
    encoding = None
    if data.encoding is not None:
        encoding = load("evdist.data.encode:Encoding").of_json(data.encoding)

    def look(rows: NDArray) -> tuple[list[str], list[list[str]]]:
        values = np.asarray(data.X.oindex[rows, :])
        if encoding is not None:
            return [column.name for column in encoding.used], encoding.decoded(values)
        names = data.columns or [f"column {j}" for j in range(data.d)]
        return names, [[f"{value:.4g}" for value in column] for column in values.T]

    return look


def _why(job: Job, data: Dataset | None) -> Callable[[int, Decisions], object]:
    """Why an object is where it is; of data that are too many for memory a sample is read."""
    if data is not None and job.folder.has("partitions.zarr"):
        return lambda row, answer: job.partition.explain(row, OriginalTable(data), level=answer)
    X = None if data is None else job.X
    return lambda row, answer: explain(job.folder, job.partition, row, answer, X)


class _Rows:
    """Rows of a data set, read when they are asked for, as numbers for a map.

    One or two columns are drawn in their own units, more on the scale on which they were compared.
    """

    def __init__(self, data: Dataset, scale: Scale | None) -> None:
        own = data.encoding is None and data.d <= 2
        self._data, self._scale = data, None if own else scale
        self.shape = (data.n, data.d)

    def __getitem__(self, rows: NDArray) -> Any:
        values = np.asarray(self._data.X.oindex[rows, :])
        values = values if self._scale is None else self._scale(values)
        if self._data.columns is None:
            return values
        return load("pandas:DataFrame")(values, columns=self._data.columns, copy=False)


def _map(data: Dataset) -> MapKind:
    """Columns of the table count, not those that its categories have become."""
    if data.encoding is None:
        return "auto"
    used = load("evdist.data.encode:Encoding").of_json(data.encoding).used
    return "auto" if len(used) > FEW_COLUMNS else "components"


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
