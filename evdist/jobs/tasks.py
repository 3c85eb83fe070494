"""What a job can be asked for, each a line of stages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.combine import combine as combine_partitions
from evdist.config import ConfigError, JobConfig
from evdist.jobs.check import check_values
from evdist.jobs.context import Job, StageWork, enter_all
from evdist.jobs.fitting import fit, keep_model, sample
from evdist.jobs.folder import JobFolder, JobState
from evdist.jobs.loading import load, source_stamp, validate
from evdist.jobs.models import load_model
from evdist.jobs.results import report, summarise
from evdist.jobs.scale import Scale
from evdist.partition import CredalPartition, io
from evdist.stores.encoding import StoreError
from evdist.stores.paths import address, exists, join, remove, replace_bytes

__all__ = ["TASKS"]


# ---------------------------------------------------------------------- new objects
def _fits(job: Job, model: Any) -> None:
    """The new objects are described as the old ones were."""
    width = getattr(model, "n_features_in_", None)
    if width is not None and job.data.d != width:
        raise ValueError(
            f"The model was fitted to {width} columns, the new data have {job.data.d}. Choose the "
            "same ones with data.columns."
        )


def check_new(job: Job) -> dict[str, Any]:
    """The values are finite, and model and data go together; one object is enough."""
    assert job.config.model is not None and job.config.data is not None
    if job.config.data.scale is not None:
        raise ConfigError("data.scale is that of the model; leave it out.")
    model, _ = load_model(job.config.model)
    if not hasattr(model, "predict_mass"):
        raise ConfigError(f"{type(model).__name__} cannot place new objects. Fit them together.")
    _fits(job, model)
    check_values(job.data, lambda n: job.tell("validate", n, job.data.n))
    return {"warnings": [], "scale": None}


def _masses(job: Job, model: Any, scale: Scale | None, stage: str) -> Iterator[NDArray]:
    for first, block in job.data.blocks():
        yield model.predict_mass(block if scale is None else scale(block))
        job.tell(stage, first + len(block), job.data.n)


def predict(job: Job) -> dict[str, Any]:
    """Masses of new objects, block by block."""
    assert job.config.model is not None
    model, scale = load_model(job.config.model)
    url = job.folder.path("masses.zarr")
    if exists(url):
        remove(url)
    blocks = _masses(job, model, scale, "predict")
    CredalPartition(next(blocks), model.credal_partition_.focal_sets).save(url)
    io.append(url, blocks)
    return {"files": ["masses.zarr/zarr.json"]}


def count(job: Job) -> dict[str, Any]:
    """How many objects the model has before any is added: what tells a repeated call."""
    assert job.config.model is not None
    model, _ = load_model(job.config.model)
    return {"before": model.credal_partition_.n_objects}


def append(job: Job) -> dict[str, Any]:
    """Add the new objects to the model's own partition, once, however often this is called."""
    assert job.config.model is not None
    model, scale = load_model(job.config.model)
    before = job.folder.stages["count"].outputs["before"]
    there, wanted = model.credal_partition_.n_objects, before + job.data.n
    if there == before:
        model.append_masses(_masses(job, model, scale, "append"))
        there = model.credal_partition_.n_objects
    elif there == wanted and not _are_there(job, model, scale, before):
        there = -1
    if there != wanted:
        raise StoreError(
            f"{job.config.model} had {before} objects when this job began, and somebody else has "
            "added some since. Append these in a new job folder."
        )
    return {
        "before": before,
        "after": there,
        "masses": join(address(job.config.model), "masses.zarr"),
    }


def _are_there(job: Job, model: Any, scale: Scale | None, first: int) -> bool:
    """Whether the rows from `first` on are those of this job: a run that was killed added them."""
    mass = model.credal_partition_.mass
    for block in _masses(job, model, scale, "append"):
        if not np.array_equal(np.asarray(mass[first : first + len(block)]), block):
            return False
        first += len(block)
    return True


def copy_grown(job: Job) -> dict[str, Any]:
    """The new objects' masses, in this job's own folder as well."""
    done = job.folder.stages["append"].outputs
    url = job.folder.path("masses.zarr")
    if exists(url):
        remove(url)
    grown = CredalPartition.load(done["masses"])
    grown[done["before"] : done["after"]].save(url)
    return {"files": ["masses.zarr/zarr.json"]}


# ---------------------------------------------------------------------- several partitions
def combine(job: Job) -> dict[str, Any]:
    """One partition that agrees best with several."""
    assert job.config.inputs is not None
    job.tell("combine")
    members = [_partition(url) for url in job.config.inputs]
    sizes = {member.n_objects for member in members}
    if len(sizes) > 1:
        raise ValueError(
            f"Partitions to combine must be of the same objects, got {sorted(sizes)} objects."
        )
    joined = combine_partitions(members, **job.config.parameters)
    url = job.folder.path("masses.zarr")
    if exists(url):
        remove(url)
    CredalPartition(np.asarray(joined.mass), joined.focal_sets).save(url)
    return {"files": ["masses.zarr/zarr.json"]}


def _partition(url: str) -> CredalPartition:
    url = address(url)
    inner = join(url, "masses.zarr")
    return CredalPartition.load(inner if exists(inner) else url)


# ---------------------------------------------------------------------- how many clusters
def select(job: Job) -> dict[str, Any]:
    """A job of its own for each number of clusters; the best one's model becomes this job's."""
    assert job.config.candidates is not None
    rows = [_candidate(job, c) for c in sorted(set(job.config.candidates))]
    criterion = "bic" if all("bic" in row for row in rows) else "nonspecificity"
    least = criterion == "nonspecificity"
    best = min(rows, key=lambda row: row[criterion] if least else -row[criterion])
    table = {"criterion": criterion, "best": best["n_clusters"], "candidates": rows}
    replace_bytes(job.folder.path("selection.json"), json.dumps(table, indent=1).encode())
    keep_model(job.folder, load_model(best["folder"])[0])
    return {
        "fitted": {k: v for k, v in best.items() if k not in ("n_clusters", "folder")},
        "selection": table,
        "files": ["selection.json", "model.json", "masses.zarr/zarr.json"],
    }


def _candidate(job: Job, n_clusters: int) -> dict[str, Any]:
    """One number of clusters: fitted, or taken from an earlier run."""
    config = job.config
    assert config.data is not None
    parameters = {**config.parameters, "n_clusters": n_clusters}
    if job.algorithm.takes("focal_sets"):
        # Without sets of several clusters the nonspecificity falls with every further cluster.
        parameters.setdefault("focal_sets", "pairs")
    data = {"url": job.data.url, "scale": config.data.scale}
    part = JobConfig.of(
        folder=job.folder.path(f"candidates/c{n_clusters}"),
        data=data,
        algorithm=config.algorithm,
        parameters=parameters,
        links=config.links.model_dump(mode="json"),
    )
    inner = Job(JobFolder.create(part), part, job.watch, job.client)
    enter_all(inner, TASKS["cluster"][:-1])  # its report would be read by nobody
    inner.folder.set_state(JobState.DONE)
    scores = inner.folder.stages["fit"].outputs["fitted"]
    doubt = float(inner.partition.nonspecificity())
    return {"n_clusters": n_clusters, "nonspecificity": doubt, **scores, "folder": inner.folder.url}


_LOAD = StageWork("load", load, source_stamp)

#: Task -> its stages, in order.
TASKS: dict[str, tuple[StageWork, ...]] = {
    "cluster": (
        _LOAD,
        StageWork("validate", validate),
        StageWork("sample", sample),
        StageWork("fit", fit),
        StageWork("summarise", summarise),
        StageWork("report", report),
    ),
    "predict": (
        _LOAD,
        StageWork("validate", check_new),
        StageWork("predict", predict),
        StageWork("summarise", summarise),
        StageWork("report", report),
    ),
    "append": (
        _LOAD,
        StageWork("validate", check_new),
        StageWork("count", count),
        StageWork("append", append),
        StageWork("copy", copy_grown),
        StageWork("summarise", summarise),
        StageWork("report", report),
    ),
    "select": (
        _LOAD,
        StageWork("validate", validate),
        StageWork("select", select),
        StageWork("summarise", summarise),
        StageWork("report", report),
    ),
    "combine": (
        StageWork("combine", combine),
        StageWork("summarise", summarise),
        StageWork("report", report),
    ),
}
