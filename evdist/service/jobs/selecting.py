"""The stage that finds the number of clusters."""

from __future__ import annotations

import json
from typing import Any

from evdist.selection import choose, criterion_for, curve_of, parameters_of, score_of
from evdist.selection.core import NUMBERS, verdict
from evdist.selection.criteria import needs_fits, on_scale
from evdist.service.config import JobConfig
from evdist.service.jobs.context import Job, enter_all
from evdist.service.jobs.fitting import keep_model
from evdist.service.jobs.folder import JobFolder, JobState
from evdist.service.jobs.models import load_model
from evdist.stores.paths import replace_bytes


def select(job: Job) -> dict[str, Any]:
    """The criterion of the data, or of a job for each number; the best one's model is kept."""
    config = job.config
    criterion = criterion_for(config.criterion or "auto", job.X, job.metric)
    numbers = sorted(set(config.candidates)) if config.candidates is not None else None
    rows: list[dict[str, Any]] = []
    if needs_fits(criterion):
        for n_clusters in numbers or NUMBERS:
            rows.append(_candidate(job, n_clusters, criterion))
            at = choose(rows, criterion)  # refuses one cluster after the first fit, not the last
        best = rows[at]
    else:
        job.tell("select")
        table = on_scale(job.X, config.parameters.get("scale"))
        shown, values, number = curve_of(criterion, table, job.metric, numbers)
        best = _candidate(job, number, criterion)
        rows = [{"n_clusters": c, criterion: value} for c, value in zip(shown, values, strict=True)]
    number = best["n_clusters"]
    table = {
        "criterion": criterion,
        "best": number,
        "verdict": verdict(number),
        "structure": number > 1,
        "candidates": rows,
    }
    replace_bytes(job.folder.path("selection.json"), json.dumps(table, indent=1).encode())
    keep_model(job.folder, load_model(best["folder"])[0])
    return {
        "fitted": {k: v for k, v in best.items() if k not in ("n_clusters", "folder")},
        "selection": table,
        "files": ["selection.json", "model.json", "masses.zarr/zarr.json"],
    }


def _candidate(job: Job, n_clusters: int, criterion: str) -> dict[str, Any]:
    """Scores of a fit with so many clusters, made now or by an earlier run."""
    config = job.config
    assert config.data is not None
    given = {**parameters_of(job.algorithm, criterion), **config.parameters}
    part = JobConfig.of(
        folder=job.folder.path(f"candidates/c{n_clusters}"),
        data={"url": job.data.url, "scale": config.data.scale},
        algorithm=config.algorithm,
        parameters={**given, "n_clusters": n_clusters},
        links=config.links.model_dump(mode="json"),
    )
    inner = Job(JobFolder.create(part), part, job.watch, lambda: job.client, job.tasks)
    enter_all(inner, job.tasks["cluster"][:-1])  # all but the report
    inner.folder.set_state(JobState.DONE)
    scores = dict(inner.folder.stages["fit"].outputs["fitted"])
    scores["nonspecificity"] = float(inner.partition.nonspecificity())
    if criterion == "silhouette":
        scores[criterion] = score_of(criterion, inner.model, job.X)
    return {"n_clusters": n_clusters, **scores, "folder": inner.folder.url}
