"""The flow `sweep`: a grid over numbers of clusters, d0 and seeds, compared, the best one kept."""

from __future__ import annotations

from typing import Any

from prefect import flow, task
from prefect.artifacts import create_table_artifact

from evdist.service.config import JobConfig
from evdist.service.jobs import run
from evdist.service.jobs.grid import compare, grid, keep_best
from flows.stages import reachable

__all__ = ["sweep"]


@task(task_run_name="{name}", retries=2, retry_delay_seconds=10, persist_result=False)
def one(config: JobConfig, name: str) -> str:
    """One point of the grid: a job of its own."""
    return run(config).folder.url


@flow(name="sweep", persist_result=False)
def sweep(
    config: JobConfig,
    n_clusters: list[int],
    d0: list[float | str] | None = None,
    seeds: list[int] | None = None,
) -> str:
    """Fit every combination and keep the best; its folder is the result.

    Of equal n_clusters and d0 the lowest objective wins; between them the least doubt plus
    unexplained share, N* + J / var(delta).
    """
    config = reachable(config)
    axes: dict[str, list[Any]] = {"n_clusters": n_clusters}
    if d0 is not None:
        axes["d0"] = d0
    if seeds is not None:
        axes["random_state"] = seeds
    points = grid(config, axes)
    folders = [one(point, name) for name, point in points.items()]
    rows = compare(folders)
    create_table_artifact(rows, key=f"sweep-{config.fingerprint[:12]}")
    return keep_best(config.folder, rows)
