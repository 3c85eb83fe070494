"""The stage that makes one partition of several."""

from __future__ import annotations

from typing import Any

import numpy as np

from evdist.combine import combine as combine_partitions
from evdist.partition import CredalPartition
from evdist.service.jobs.context import Job
from evdist.stores.paths import address, exists, join, remove


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
    ids = next((member.ids for member in members if member.ids is not None), None)
    CredalPartition(np.asarray(joined.mass), joined.focal_sets, ids).save(url)
    return {"files": ["masses.zarr/zarr.json"]}


def _partition(url: str) -> CredalPartition:
    url = address(url)
    inner = join(url, "masses.zarr")
    return CredalPartition.load(inner if exists(inner) else url)
