"""Fitted models in folders, of jobs or saved by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from evdist.registry import ALGORITHMS
from evdist.service.jobs.folder import JobFolder
from evdist.service.jobs.scale import Scale
from evdist.stores.encoding import StoreError, StoreNotFoundError, reading
from evdist.stores.paths import address, exists, join, read_bytes

__all__ = ["TrainedOn", "load_model", "read_alike", "trained_on"]


class TrainedOn(NamedTuple):
    """How the table was read that a model was fitted to."""

    columns: list[str] | None
    id: str | None


def trained_on(url: str) -> TrainedOn | None:
    """What the job in this folder was fitted to; None for a model saved by hand."""
    url = address(url)
    if not exists(join(url, "manifest.json")):
        return None
    folder = JobFolder.open(url)
    data, loaded = folder.config.data, folder.stages.get("load")
    if data is None or loaded is None:
        return None
    return TrainedOn(loaded.outputs["columns"], data.id)


def read_alike(
    model: str, there: list[str] | None, columns: Sequence[str] | None, id: str | None
) -> tuple[tuple[str, ...] | None, str | None]:
    """Columns and id of new objects, chosen as for the model where they are not given.

    `there` are the columns of the new table, None for an array.
    """
    before = trained_on(model)
    if before is not None and there is not None:
        columns = before.columns if columns is None else columns
        id = id or (before.id if before.id in there else None)
    return None if columns is None else tuple(columns), id


def load_model(url: str) -> tuple[Any, Scale | None]:
    """The fitted estimator in a folder, of a job or saved by hand, and the scale of its data."""
    url = address(url)
    content = read_bytes(join(url, "model.json"))
    if content is None:
        raise StoreNotFoundError(
            f"There is no finished model at {url}: it has no model.json. Name the folder of a "
            "finished job."
        )
    with reading(join(url, "model.json"), "Name the folder of another job."):
        model = json.loads(content)
    name = model.get("estimator") if isinstance(model, dict) else None
    known = {entry.estimator: entry for entry in ALGORITHMS.values()}
    if name not in known:
        raise StoreError(f"{url} holds a model of {name!r}, which no job here can run.")
    scale = None
    if exists(join(url, "manifest.json")):
        stages = JobFolder.open(url).stages
        scale = Scale.of_json(stages["validate"].outputs["scale"]) if "validate" in stages else None
    return known[name].cls.load(url), scale
