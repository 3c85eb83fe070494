"""The objects of a report as data for its own script: map, hover, search, filter and sort.

Of at most `DRAWN` objects all are there; of more a random sample, with every outlier and the most
uncertain ones as far as they fit, and behind them the density of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evdist.partition import CredalPartition, decisions, views
from evdist.partition.decisions import Decisions
from evdist.plot.plane import plane
from evdist.plot.style import cluster_colour, cluster_marker, some_rows

#: Objects in the page, at most about.
DRAWN = 6_000
#: Attributes shown of each object.
SHOWN_VALUES = 8
#: Cells of the density along each axis.
CELLS = 72

#: Names of attributes, and the texts of each for some rows.
Describe = Callable[[NDArray[np.intp]], tuple[Sequence[str], Sequence[Sequence[str]]]]


def object_data(
    partition: CredalPartition, answer: Decisions, X: ArrayLike | None, describe: Describe | None
) -> dict[str, Any]:
    """What the script of the page reads, as values that JSON can hold."""
    n, focal = partition.n_objects, partition.focal_sets
    rows = _rows(answer)
    m = np.ascontiguousarray(partition[rows].mass, dtype=np.float64)
    decided, chance = decisions.decide(m, focal, answer.level), views.probability(m, focal)
    label = views.labels(m, focal, "plausibility")
    ids = rows if partition.ids is None else partition.ids[rows]
    data: dict[str, Any] = {
        "n": n,
        "id": [str(value) for value in ids.tolist()],
        "label": label.tolist(),
        "decision": decided[:, 0].tolist(),
        "open": decisions.named_sets(decided[:, 1:].astype(bool)),
        "probability": _three(chance[np.arange(len(m)), label]),
        "margin": _three(decisions.margin(m, focal)),
        "empty": _three(m[:, 0]),
        "largest": np.argsort(-answer.members()[1], kind="stable").tolist(),
        "colours": [cluster_colour(k) for k in range(focal.n_clusters)],
        "markers": [cluster_marker(k) for k in range(focal.n_clusters)],
    }
    if X is not None:
        xy, axes = plane(X, n)
        data |= {"x": _short(xy[rows, 0]), "y": _short(xy[rows, 1])}
        data["axes"] = [name.replace(r"\$", "$") for name in axes]
        if len(rows) < n:
            data["density"] = _density(xy)
    if describe is not None:
        names, texts = describe(rows)
        data["columns"] = list(names)[:SHOWN_VALUES]
        data["values"] = [list(column) for column in texts[:SHOWN_VALUES]]
    return data


def described(X: Any) -> Describe:
    """Attributes as they stand in X, with the names of its columns."""
    names = [str(name) for name in getattr(X, "columns", ())]
    values = X if hasattr(X, "shape") else np.asarray(X)
    names = names or [f"column {j}" for j in range(values.shape[1])]

    def look(rows: NDArray[np.intp]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
        some = X.iloc[rows].to_numpy() if hasattr(X, "iloc") else np.asarray(values)[rows]
        return names, [[f"{value:.4g}" for value in some[:, j]] for j in range(some.shape[1])]

    return look


def _rows(answer: Decisions) -> NDArray[np.intp]:
    n = len(answer)
    if n <= DRAWN:
        return np.arange(n)
    lone = np.flatnonzero(np.asarray(answer.outlier))[: DRAWN // 4]
    unsure = np.argpartition(np.asarray(answer.margin), DRAWN // 8)[: DRAWN // 8]
    return some_rows(n, DRAWN // 2, np.union1d(lone, unsure))


def _short(values: NDArray[Any]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _three(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 3) for value in values]


def _density(xy: NDArray[np.float64]) -> dict[str, Any]:
    """How many objects lie in each cell of the plane, as shares of the fullest, on a log scale."""
    counts, across, up = np.histogram2d(xy[:, 0], xy[:, 1], bins=CELLS)
    shade = np.log1p(counts) / np.log1p(max(counts.max(), 1.0))
    return {
        "x": [float(across[0]), float(across[-1])],
        "y": [float(up[0]), float(up[-1])],
        "cells": [[round(float(value), 2) for value in column] for column in shade],
    }
