"""The stage that finds the number of clusters."""

from __future__ import annotations

import json
from typing import Any

from evdist.service.config import JobConfig
from evdist.service.jobs.context import Job, enter_all
from evdist.service.jobs.fitting import keep_model
from evdist.service.jobs.folder import JobFolder, JobState
from evdist.service.jobs.models import load_model
from evdist.service.jobs.tasks import TASKS
from evdist.stores.paths import replace_bytes

__all__ = ["select"]


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
    inner = Job(JobFolder.create(part), part, job.watch, lambda: job.client)
    enter_all(inner, TASKS["cluster"][:-1])  # its report would be read by nobody
    inner.folder.set_state(JobState.DONE)
    scores = inner.folder.stages["fit"].outputs["fitted"]
    doubt = float(inner.partition.nonspecificity())
    return {"n_clusters": n_clusters, "nonspecificity": doubt, **scores, "folder": inner.folder.url}
