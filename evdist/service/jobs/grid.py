"""Many jobs that differ in a few parameters: made, compared, the best one named."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import numpy as np

from evdist.service.config import ConfigError, JobConfig
from evdist.service.jobs.folder import JobFolder
from evdist.service.jobs.models import load_model
from evdist.service.jobs.pipeline import JobResult
from evdist.stores.paths import address, join, replace_bytes

#: Points of a grid at most: more are a mistake.
_MOST = 1000


def grid(config: JobConfig, axes: dict[str, list[Any]]) -> dict[str, JobConfig]:
    """One job for each combination of values, by its name, in folders below that of `config`."""
    empty = [name for name, values in axes.items() if not values]
    if empty:
        raise ConfigError(f"There is no value of {', '.join(empty)} to try.")
    count = int(np.prod([len(values) for values in axes.values()]))
    if count > _MOST:
        raise ConfigError(f"A grid of {count:,} jobs is too large: {_MOST:,} at most.")
    points = {}
    for values in product(*axes.values()):  # ParameterGrid sorts the names; folders keep the order
        chosen = dict(zip(axes, values, strict=True))
        name = "-".join(f"{key}={value}" for key, value in chosen.items())
        folder = join(address(config.folder), name.replace("/", "_"))
        known = config.model_dump(mode="json", exclude_none=True)
        known |= {"parameters": {**config.parameters, **chosen}, "folder": folder}
        points[name] = JobConfig.of(**known)
    return points


def compare(folders: list[str]) -> list[dict[str, Any]]:
    """A row for each finished job, the best first.

    The objective is comparable between seeds only. Between numbers of clusters and values of d0
    the criterion is the nonspecificity N* plus the share of the transformed dissimilarities that
    the masses do not explain, J / var(delta).
    """
    rows = [_row(JobFolder.open(url)) for url in folders]
    groups: dict[str, float] = {}
    for row in rows:
        groups[row["group"]] = min(row["objective"], groups.get(row["group"], np.inf))
    for row in rows:
        row["best_of_seeds"] = row["objective"] == groups[row.pop("group")]
    return sorted(rows, key=lambda row: (not row["best_of_seeds"], row["criterion"]))


def _row(folder: JobFolder) -> dict[str, Any]:
    metrics = JobResult(folder).metrics
    parameters = folder.config.parameters
    objective, doubt = float(metrics["objective"]), float(metrics["nonspecificity"])
    criterion = doubt
    model, _ = load_model(folder.url)
    if hasattr(model, "shepard_pairs"):
        criterion += objective / max(float(np.var(model.shepard_pairs()[0])), 1e-12)
    alike = {name: value for name, value in parameters.items() if name != "random_state"}
    shown = {name: parameters.get(name) for name in ("n_clusters", "d0", "random_state")}
    return {
        **shown,
        "objective": objective,
        "nonspecificity": doubt,
        "criterion": criterion,
        "converged": metrics.get("converged"),
        "folder": folder.url,
        "group": json.dumps(alike, sort_keys=True),
    }


def keep_best(folder: str, rows: list[dict[str, Any]]) -> str:
    """Write the table beside the jobs; the folder of the best."""
    content = json.dumps({"best": rows[0]["folder"], "jobs": rows}, indent=1)
    replace_bytes(join(address(folder), "sweep.json"), content.encode())
    return rows[0]["folder"]
