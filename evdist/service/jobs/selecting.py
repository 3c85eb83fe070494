"""The stage that finds the number of clusters."""

from __future__ import annotations

import json
from typing import Any

from evdist.selection import choose, parameters_of
from evdist.service.config import JobConfig
from evdist.service.jobs.context import Job, enter_all
from evdist.service.jobs.fitting import keep_model
from evdist.service.jobs.folder import JobFolder, JobState
from evdist.service.jobs.models import load_model
from evdist.stores.paths import replace_bytes

__all__ = ["select"]


def select(job: Job) -> dict[str, Any]:
    """A job of its own for each number of clusters; the best one's model becomes this job's."""
    assert job.config.candidates is not None
    rows: list[dict[str, Any]] = []
    for n_clusters in sorted(set(job.config.candidates)):
        rows.append(_candidate(job, n_clusters))
        criterion, at = choose(rows)  # refuses one cluster after the first fit, not the last
    best = rows[at]
    table = {"criterion": criterion, "best": best["n_clusters"], "candidates": rows}
    replace_bytes(job.folder.path("selection.json"), json.dumps(table, indent=1).encode())
    keep_model(job.folder, load_model(best["folder"])[0])
    return {
        "fitted": {k: v for k, v in best.items() if k not in ("n_clusters", "folder")},
        "selection": table,
        "files": ["selection.json", "model.json", "masses.zarr/zarr.json"],
    }


def _candidate(job: Job, n_clusters: int) -> dict[str, Any]:
    """Scores of a fit with so many clusters, made now or by an earlier run."""
    config = job.config
    assert config.data is not None
    given = {**parameters_of(job.algorithm), **config.parameters, "n_clusters": n_clusters}
    part = JobConfig.of(
        folder=job.folder.path(f"candidates/c{n_clusters}"),
        data={"url": job.data.url, "scale": config.data.scale},
        algorithm=config.algorithm,
        parameters=given,
        links=config.links.model_dump(mode="json"),
    )
    inner = Job(JobFolder.create(part), part, job.watch, lambda: job.client, job.tasks)
    enter_all(inner, job.tasks["cluster"][:-1])  # all but the report
    inner.folder.set_state(JobState.DONE)
    scores = inner.folder.stages["fit"].outputs["fitted"]
    doubt = float(inner.partition.nonspecificity())
    return {"n_clusters": n_clusters, "nonspecificity": doubt, **scores, "folder": inner.folder.url}
