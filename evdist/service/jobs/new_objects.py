"""Stages for objects that come later: placed by a model, or added to its partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.data.scale import Scale
from evdist.partition import CredalPartition, io
from evdist.partition.ids import joined_ids
from evdist.partition.sparse import SparseMasses
from evdist.service.config import ConfigError
from evdist.service.jobs.check import check_values
from evdist.service.jobs.context import Job
from evdist.service.jobs.models import load_model
from evdist.stores.encoding import StoreError
from evdist.stores.paths import address, exists, join, remove


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
    assert job.config.data is not None
    if job.config.data.scale is not None:
        raise ConfigError("data.scale is that of the model; leave it out.")
    model, _ = job.placing
    if not hasattr(model, "predict_mass"):
        raise ConfigError(f"{type(model).__name__} cannot place new objects. Fit them together.")
    _fits(job, model)
    if job.config.task == "append":
        joined_ids(model.credal_partition_.ids, job.data.ids, job.data.n)  # refused now, not later
    check_values(job.data, lambda n: job.tell("validate", n, job.data.n))
    return {"warnings": [], "scale": None}


def _masses(job: Job, model: Any, scale: Scale | None, stage: str) -> Iterator[NDArray]:
    for first, block in job.data.blocks():
        yield model.predict_mass(block if scale is None else scale(block))
        job.tell(stage, first + len(block), job.data.n)


def predict(job: Job) -> dict[str, Any]:
    """Masses of new objects, block by block."""
    model, scale = job.placing
    url = job.folder.path("masses.zarr")
    if exists(url):
        remove(url)
    blocks = _masses(job, model, scale, "predict")
    first, ids = next(blocks), job.data.ids
    named = None if ids is None else ids[: len(first)]
    fitted = model.credal_partition_
    begun = SparseMasses.of(first) if isinstance(fitted.mass, SparseMasses) else first
    CredalPartition(begun, fitted.focal_sets, named).save(url)
    io.append(url, blocks, ids)
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
        model.append_masses(_masses(job, model, scale, "append"), job.data.ids)
        there = model.credal_partition_.n_objects
    elif there == wanted and not _are_there(job, model, scale, before):
        there = -1
    if there != wanted:
        raise StoreError(
            f"{job.config.model} had {before} objects when this job began, and another job "
            "has added some since. Append these in a new job folder."
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
        if isinstance(mass, SparseMasses):
            block = SparseMasses.of(block).dense()  # as they were stored
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
