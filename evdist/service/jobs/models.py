"""Fitted models in folders, of jobs or saved by hand."""

from __future__ import annotations

import json
from typing import Any

from evdist.data.scale import Scale
from evdist.registry import ALGORITHMS
from evdist.service.jobs.folder import JobFolder
from evdist.stores.encoding import StoreError, StoreNotFoundError, reading
from evdist.stores.paths import address, exists, join, read_bytes


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


def model_level(url: str) -> float:
    """The level at which a model's own objects were judged, so that new ones are judged alike.

    That of its job, or, of a model saved by hand, what its partition gives.
    """
    content = read_bytes(join(address(url), "metrics.json"))
    known = json.loads(content).get("level") if content is not None else None
    return float(load_model(url)[0].credal_partition_.level() if known is None else known)
