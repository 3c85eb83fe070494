"""What NNEVCLUS is given, checked before work starts: parameters, links and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evdist.belief import FocalSets
from evdist.constraints import check_links
from evdist.estimators.checks import (
    at_most_objects,
    checked_d0,
    focal_family,
    integer,
    non_negative,
    one_of,
    positive,
    seeded_checkpoint,
)
from evdist.estimators.number import clusters_for
from evdist.kernels.distances import METRICS
from evdist.nnevclus.objects import Objects

_FAMILIES = ("simple", "pairs", "full")

#: Optimisers of the two ways to train.
BATCH, MINI = ("lbfgs", "adaptive"), ("rmsprop", "adam")


def check_parameters(model: Any, client: Any) -> None:
    """Refuse parameters of an NNEVCLUS that are wrong by themselves, or with a client."""
    for name in ("n_components", "n_iter_no_change", "max_iter", "n_init", "checkpoint_every"):
        integer(name, getattr(model, name), 1)
    for name in ("n_dissimilarities", "n_shards"):
        if getattr(model, name) is not None:
            integer(name, getattr(model, name), 1)
    for name in ("tol", "l2_penalty", "constraint_weight"):
        non_negative(name, getattr(model, name))
    positive("learning_rate", model.learning_rate)
    positive("gate_outliers", model.gate_outliers, below=1.0)
    positive("gate_width", model.gate_width)
    for name in ("label_weight", "validation_fraction"):
        if non_negative(name, getattr(model, name)) >= 1:
            raise ValueError(f"{name} must be below 1, got {getattr(model, name)!r}.")
    if isinstance(model.hidden, str):
        one_of("hidden", model.hidden, ("auto",))
    elif not len(model.hidden):
        raise ValueError('hidden must name at least one layer, such as (20,), or be "auto".')
    else:
        for width in model.hidden:
            integer("hidden", width, 1)
    if model.batch_size is not None and model.batch_size != "auto":
        integer("batch_size", model.batch_size, 2)
    one_of("optimizer", model.optimizer, ("auto", *BATCH, *MINI))
    checked_d0(model.d0)
    seeded_checkpoint(model, "weights")
    if model.batch_size is None and (client is not None or model.n_shards is not None):
        what = "Workers train" if client is not None else "Shards are trained"
        raise ValueError(
            f"{what} by mini-batches; batch_size=None trains on all objects at once. "
            'Pass a number or "auto", or no client and no n_shards.'
        )


def check_stored(model: Any, n: int, metric_features: Any) -> None:
    """Refuse what needs all rows in memory, where these are not."""
    metric = model.metric
    others = {
        "scale": model.scale is not None,
        "metric_features": metric_features is not None,
        "batch_size=None": model.batch_size is None,
        f"metric={metric!r}": not (isinstance(metric, str) and metric in METRICS),
    }
    for name, asked in others.items():
        if asked:
            raise ValueError(
                f"{name} needs all rows in memory, and these {n:,} are not. Leave it out, or pass "
                "an array."
            )


@dataclass(frozen=True)
class Given:
    """What `NNEVCLUS.fit` is given beside X: links, labels, focal sets."""

    n_clusters: int
    must: NDArray[np.int64]
    cannot: NDArray[np.int64]
    labels: NDArray[np.int64] | None
    family: FocalSets | str
    #: Whether X is the square matrix of dissimilarities itself.
    own_matrix: bool

    @property
    def known(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Objects with a label, and their clusters."""
        if self.labels is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        found = np.flatnonzero(self.labels >= 0)
        return found, self.labels[found]

    @classmethod
    def of(
        cls, model: Any, objects: Objects, must_link: Any, cannot_link: Any, labels: Any,
        metric_features: Any,
    ) -> Given:  # fmt: skip
        n = objects.n
        c = integer("n_clusters", clusters_for(model.n_clusters, objects.source), 1)
        family = focal_family(model.focal_sets, c, _FAMILIES)
        at_most_objects(c, n)
        must, cannot = check_links(must_link, cannot_link, n)
        known = check_labels(labels, n, c)
        if model.centres is not None and known is not None:
            raise ValueError(
                "Give labels or centres, not both: a centre's cluster need not be that of a label."
            )
        own = model.metric == "precomputed" and metric_features is None
        return cls(c, must, cannot, known, family, own)


def check_labels(labels: Any, n: int, n_clusters: int) -> NDArray[np.int64] | None:
    """Labels as integers, (n,); None where there are none."""
    if labels is None:
        return None
    found = np.asarray(labels)
    if found.shape != (n,):
        raise ValueError(f"labels must have shape ({n},), got {found.shape}.")
    bad = (found != np.floor(found)) | (found < -1) | (found >= n_clusters)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"labels must be clusters 0..{n_clusters - 1}, or -1 where unknown, but "
            f"object {row} has {found[row]!r}."
        )
    return found.astype(np.int64)
