"""The flow `nn_train`: NN-EVCLUS, one rank of the training per Dask worker."""

from __future__ import annotations

from prefect import State, flow

from evdist.service.config import ConfigError, JobConfig
from flows.cluster import cluster

__all__ = ["nn_train"]


@flow(name="nn_train", persist_result=False)
def nn_train(config: JobConfig, links_in_manifest: bool = False) -> str | State:
    """Train a network; the job folder, which holds it, is the result.

    A lost worker costs the epochs since the last checkpoint; a lost flow is gone on with by the
    same configuration.
    """
    if config.algorithm != "nnevclus":
        raise ConfigError(f"nn_train trains nnevclus, got algorithm {config.algorithm!r}.")
    return cluster.fn(config, links_in_manifest)
