"""The stages between the data and the masses: sampling of pairs, and the fit."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from evdist.data.dataset import Dataset
from evdist.data.scale import ScaleWarning
from evdist.evclus.partitions.estimator import in_partitions
from evdist.partition import CredalPartition
from evdist.partition.sparse import SparseMasses
from evdist.registry import load
from evdist.service.config import algorithms
from evdist.service.jobs.context import Job
from evdist.service.jobs.folder import JobFolder
from evdist.service.jobs.loading import links
from evdist.service.jobs.models import load_model
from evdist.service.jobs.watch import logger
from evdist.stores.paths import children, remove


def estimator(job: Job) -> Any:
    """The estimator of the configuration, with what the job sets by itself."""
    return algorithms.estimator(
        job.algorithm,
        job.config.parameters,
        checkpoint=job.folder.url,
        callbacks=(job.watch,),
        n_jobs=job.config.cluster.threads,
    )


def first_masses(job: Job) -> CredalPartition:
    """Masses to start from: those of an earlier job, objects it did not know placed by its model.

    Where the data have grown at their end, the old objects keep their masses; where they have
    changed in any other way, the model places all of them.
    """
    assert job.config.start is not None
    model, scale = load_model(job.config.start)
    known = 0
    old = JobFolder.open(job.config.start).stages.get("load")
    if old is not None:
        before = Dataset.open(old.outputs["data"])
        # Objects appended to the partition since then are not among its data.
        known = before.n if _same_rows(before, job.data) else 0
    mass = model.credal_partition_.mass
    lists = isinstance(mass, SparseMasses)
    parts = [mass[:known].rows if lists else np.asarray(mass[:known])]
    for first, block in job.data.blocks():
        rows = block[max(known - first, 0) :]
        if len(rows):
            found = model.predict_mass(rows if scale is None else scale(rows))
            parts.append(SparseMasses.of(found).rows if lists else found)
    together = np.concatenate(parts)
    masses = SparseMasses(together, mass.n_clusters) if lists else together
    return CredalPartition(masses, model.credal_partition_.focal_sets)


def _same_rows(old: Dataset, new: Dataset) -> bool:
    """Whether the new data begin with all rows of the old."""
    if old.n > new.n or old.d != new.d or old.columns != new.columns:
        return False
    return all(
        np.array_equal(block, np.asarray(new.X[first : first + len(block)]))
        for first, block in old.blocks()
    )


def sample(job: Job) -> dict[str, Any]:
    """Keep k pairs per object in pairs.zarr, or lay out partitions, for methods that sample."""
    model = estimator(job)
    if not hasattr(model, "sample_pairs"):
        return {"sampled": False}
    job.tell("sample")
    client = {"client": job.client} if job.client is not None else {}
    apart, partitions = _apart(job, model), getattr(model, "partitions", None)
    if not apart and partitions is not None:
        # `sample_pairs` does not know of links, weights and masses that `fit` will be given.
        model.partitions = "never"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScaleWarning)  # the check of the data has told that
        job.sampler = model.sample_pairs(job.reader if apart else job.X, **client)
    if partitions is not None:
        model.partitions = partitions
    kept = [name for name in ("pairs.zarr", "partitions.zarr") if job.folder.has(name)]
    return {"sampled": bool(kept), "files": [f"{name}/zarr.json" for name in kept]}


def _apart(job: Job, model: Any, given: Mapping[str, Any] | None = None) -> bool:
    """Whether the rows are fitted in partitions, from where they lie."""
    if not _partitions(model):
        return False
    linked = job.config.links.url is not None or bool(links(job) if given is None else given)
    weighted, started = job.data.weight is not None, job.config.start is not None
    return in_partitions(
        model, job.reader, job.client, linked=linked, weighted=weighted, started=started
    )


def _partitions(model: Any) -> bool:
    return hasattr(model, "partitions") and hasattr(model, "sample_pairs")


def fit(job: Job) -> dict[str, Any]:
    """Fit the estimator; the job folder then is the folder of the model, too."""
    model, job.sampler = job.sampler or estimator(job), None
    if job.config.start is not None:
        model.set_params(init=first_masses(job))
    given: dict[str, Any] = links(job)
    rows = job.reader if _apart(job, model, given) else job.X
    if job.data.weight is not None:
        given["sample_weight"] = job.data.weight
    if "client" in job.algorithm.parameters.fit_takes and job.client is not None:
        given["client"] = job.client
    with warnings.catch_warnings(record=True) as heard, _loading("evdist.service.jobs.results"):
        warnings.simplefilter("always")
        model.fit(rows, **given)
    told = [
        str(one.message) for one in heard
        if issubclass(one.category, (UserWarning, RuntimeWarning))
        # The check of the data has told that, in the words of a job.
        and not issubclass(one.category, ScaleWarning)
    ]  # fmt: skip
    for sentence in dict.fromkeys(told):
        logger.warning("%s", sentence)
    model.credal_partition_ = model.credal_partition_.with_ids(job.data.ids)
    keep_model(job.folder, model)
    mass = model.credal_partition_.mass
    if isinstance(mass.rows if isinstance(mass, SparseMasses) else mass, np.ndarray):
        # The stages after need not load them; what is not in memory they read from the folder.
        job.model, job.partition = model, model.credal_partition_
    return {
        "warnings": list(dict.fromkeys(told)),
        "fitted": fitted(model),
        "files": ["model.json", "masses.zarr/zarr.json"],
    }


@contextmanager
def _loading(module: str) -> Iterator[None]:
    """Import the module of the next stage (it needs matplotlib) while compiled code computes."""
    thread = threading.Thread(target=load, args=(module,), name="evdist-loading")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def keep_model(folder: JobFolder, model: Any) -> None:
    """Save a model into the job folder, in the place of what a stopped run left of it."""
    for name in ("model.json", "masses.zarr", *(f"{part}.zarr" for part in model.stores())):
        if folder.has(name):
            remove(folder.path(name))
    model.save_in(folder.url)
    for name in children(folder.url):
        if name.startswith("checkpoint-") or name in ("answer.zarr", "points"):
            remove(folder.path(name))  # the model is whole: what led to it can go


def fitted(model: Any) -> dict[str, Any]:
    """Scores of the fit, for metrics.json and the report."""
    known = {
        "objective": "objective_",
        "iterations": "n_iter_",
        "converged": "converged_",
        "d0": "d0_",
        "noise_floor": "noise_floor_",
        "bic": "bic_",
        "covariance_model": "covariance_model_",
    }
    found = {name: getattr(model, attribute, None) for name, attribute in known.items()}
    return {name: _plain(value) for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
