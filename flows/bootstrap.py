"""The flow `bootstrap`: Bootclus, its replicates spread over the Dask workers."""

from __future__ import annotations

from prefect import State, flow

from evdist.service.config import ConfigError, JobConfig
from flows.cluster import cluster

__all__ = ["bootstrap"]


@flow(name="bootstrap", persist_result=False)
def bootstrap(config: JobConfig, links_in_manifest: bool = False) -> str | State:
    """Fit the mixture, its replicates and the masses; the job folder is the result.

    Replicates are independent tasks: those of a lost worker are done by the others.
    """
    if config.algorithm != "bootclus":
        raise ConfigError(f"bootstrap runs bootclus, got algorithm {config.algorithm!r}.")
    return cluster.fn(config, links_in_manifest)
