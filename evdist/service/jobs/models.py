"""Fitted models in folders, of jobs or saved by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from evdist.data.contents import Piece, Table
from evdist.data.scale import Scale
from evdist.partition import CredalPartition
from evdist.partition.decisions import level_told
from evdist.registry import ALGORITHMS, load
from evdist.service.jobs.folder import JobFolder
from evdist.stores.encoding import StoreError, StoreNotFoundError, as_written, reading
from evdist.stores.paths import address, exists, join, read_bytes


class TrainedOn(NamedTuple):
    """How the table was read that a model was fitted to."""

    columns: list[str] | None
    id: str | None
    encoding: list[dict[str, Any]] | None


def trained_on(url: str) -> TrainedOn | None:
    """What the job in this folder was fitted to; None for a model saved by hand."""
    url = address(url)
    if not exists(join(url, "manifest.json")):
        return None
    folder = JobFolder.open(url)
    data, loaded = folder.config.data, folder.stages.get("load")
    if data is None or loaded is None:
        return None
    outputs = loaded.outputs
    encoding = outputs.get("encoding")
    columns = outputs["columns"]
    if encoding is not None:
        columns = [one["name"] for one in encoding if one["kind"] != "name"]
    return TrainedOn(columns, data.id, encoding)


def read_alike(model: str, table: Table) -> Table:
    """The table of new objects, read as that of the model was where nothing else is said."""
    before, there = trained_on(model), table.there()
    if before is None or there is None:
        return table
    columns, id = table.columns, table.id
    if columns is None and before.columns is not None and not table.drop:
        columns = tuple(before.columns)
    if id is None and before.id in there:
        id = before.id
    encoding = table.encoding
    if encoding is None and before.encoding is not None:
        encoding = load("evdist.data.encode:Encoding").of_json(before.encoding)
    return replace(table, columns=columns, id=id, encoding=encoding)


def place(url: str, table: Table) -> CredalPartition:
    """New objects placed by the model in a folder, read, encoded and scaled as its own were."""
    model, scale = load_model(url)
    table = read_alike(url, table)
    pieces = [Piece(*piece) for piece in table.pieces()]
    rows = np.concatenate([piece.X for piece in pieces])
    ids = None if pieces[0].id is None else np.concatenate([piece.id for piece in pieces])
    mass = model.predict_mass(rows if scale is None else scale(rows))
    return CredalPartition(mass, model.credal_partition_.focal_sets, ids)


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
    if not isinstance(name, str) or name not in known:
        raise StoreError(f"{url} holds a model of {name!r:.60}, which no job here can run.")
    scale = None
    if exists(join(url, "manifest.json")):
        stages = JobFolder.open(url).stages
        with as_written(join(url, "manifest.json"), "Name the folder of another job."):
            told = stages["validate"].outputs["scale"] if "validate" in stages else None
            scale = Scale.of_json(told)
    return known[name].cls.load(url), scale


def model_level(url: str) -> float:
    """The level at which a model's own objects were judged, so that new ones are judged alike.

    That of its job, or, of a model saved by hand, what its partition gives.
    """
    path = join(address(url), "metrics.json")
    content = read_bytes(path)
    with as_written(path, "Run that job again to recreate it."):
        known = level_told(json.loads(content)) if content is not None else None
        if known is not None:
            return known
    return load_model(url)[0].credal_partition_.level()
