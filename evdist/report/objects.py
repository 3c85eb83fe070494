"""The objects of a report as data for its own script: map, hover, search, filter and sort.

Of at most `DRAWN` objects all are there; of more a random sample, with every outlier and the most
uncertain ones as far as they fit, and behind them the density of all that have a place on the map.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evdist.estimators.checks import one_of
from evdist.partition import CredalPartition, decisions, views
from evdist.partition.decisions import Decisions
from evdist.sketch.palette import cluster_marker, some_rows
from evdist.sketch.plane import plane

#: Objects in the page, at most about.
DRAWN = 5_000
#: Attributes shown of each object, and letters of a value.
SHOWN_VALUES, LETTERS = 8, 40
#: Cells of the density across and up.
CELLS = (160, 110)
#: Objects beyond these quantiles are in no cell.
EDGES = (0.002, 0.998)
#: Objects that a layout of neighbours is made of; of more so many at random.
LAID_OUT = 10_000
#: Objects that another map is made of.
PLACED = 200_000
#: A layout is the map of tables with more columns than this, and with so many objects.
FEW_COLUMNS, FEW_OBJECTS = 3, 50

#: How the maps of many attributes are read.
NOTES = {
    "components": "Map: the two directions in which the objects vary most (principal components).",
    "neighbours": "Map: a layout of nearest neighbours. Objects that are alike lie near each "
    "other; how far apart clusters lie, and the axes, say nothing.",
}

#: Names of attributes, and the texts of each for some rows.
Describe = Callable[[NDArray[np.intp]], tuple[Sequence[str], Sequence[Sequence[str]]]]
#: How the map is made; "auto" lays out neighbours where there are attributes enough.
MapKind = Literal["auto", "components", "neighbours"]


@dataclass(frozen=True)
class Places:
    """Where objects lie on the map, (k, 2), which rows they are, and how it came about.

    `fair` are those places whose density is that of all objects.
    """

    rows: NDArray[np.intp]
    fair: NDArray[np.intp]
    xy: NDArray[np.float64]
    axes: tuple[str, str]
    kind: str
    note: str


def page_rows(answer: Decisions) -> NDArray[np.intp]:
    """The objects that are in the page."""
    n = len(answer)
    if n <= DRAWN:
        return np.arange(n)
    lone = np.flatnonzero(np.asarray(answer.outlier))[: DRAWN // 4]
    unsure = np.argpartition(np.asarray(answer.margin), DRAWN // 8)[: DRAWN // 8]
    return some_rows(n, DRAWN // 2, np.union1d(lone, unsure))


def places(X: Any, n: int, shown: NDArray[np.intp], kind: MapKind = "auto") -> Places:
    """A map on which at least the objects of the page have a place."""
    one_of("map", kind, get_args(MapKind))
    if not hasattr(X, "shape"):
        X = np.asarray(X)
    if len(X.shape) != 2 or X.shape[0] != n:
        raise ValueError(
            f"X must hold the {n} objects of the partition in rows and attributes in columns, got "
            f"shape {tuple(X.shape)}. Pass the data that were clustered."
        )
    d = X.shape[1]
    if kind == "auto":
        enough = d > FEW_COLUMNS and n >= FEW_OBJECTS
        kind = "neighbours" if enough else "components"
    drawn = some_rows(n, LAID_OUT if kind == "neighbours" and d > 2 else PLACED, shown[:0])
    rows = np.union1d(drawn, shown)
    some = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    xy, axes = plane(some, len(rows), kind)
    if d == 1:
        xy[:, 1] = rows
    note = "" if d <= 2 else NOTES[kind]
    if len(rows) < n:
        note += (
            f" It shows {len(rows):,} of {n:,} objects: {len(drawn):,} drawn at random, the others "
            "those outliers and least sure objects that are in this page."
        )
    fair = np.searchsorted(rows, drawn)
    named = (axes[0].replace(r"\$", "$"), axes[1].replace(r"\$", "$"))
    return Places(rows, fair, xy, named, "columns" if d <= 2 else kind, note.strip())


def object_data(
    partition: CredalPartition,
    answer: Decisions,
    places: Places | None,
    describe: Describe | None,
) -> dict[str, Any]:
    """What the script of the page reads, as values that JSON can hold."""
    n, focal, rows = partition.n_objects, partition.focal_sets, page_rows(answer)
    m = np.ascontiguousarray(partition[rows].mass, dtype=np.float64)
    decided, chance = decisions.decide(m, focal, answer.level), views.probability(m, focal)
    label = views.labels(m, focal, "plausibility")
    ids = rows if partition.ids is None else partition.ids[rows]
    data: dict[str, Any] = {
        "n": n,
        "id": [str(value) for value in ids.tolist()],
        "label": label.tolist(),
        "decision": decided[:, 0].tolist(),
        "open": _coded(decisions.named_sets(decided[:, 1:].astype(bool))),
        "probability": _three(chance[np.arange(len(m)), label]),
        "margin": _three(decisions.margin(m, focal)),
        "empty": _three(m[:, 0]),
        "largest": np.argsort(-answer.members()[1], kind="stable").tolist(),
        "markers": [cluster_marker(k) for k in range(focal.n_clusters)],
    }
    if places is not None:
        xy = places.xy[np.searchsorted(places.rows, rows)]
        data |= {"x": _short(xy[:, 0]), "y": _short(xy[:, 1])}
        data |= {"axes": places.axes, "kind": places.kind}
        if len(rows) < n:
            data["density"] = _density(places, np.asarray(partition.labels()))
    if describe is not None:
        names, texts = describe(rows)
        data["columns"] = list(names)[:SHOWN_VALUES]
        data["values"] = [_coded(map(_cut, column)) for column in texts[:SHOWN_VALUES]]
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


def _coded(texts: Any) -> dict[str, Any]:
    """Each text once, and which of them stands where."""
    known: dict[str, int] = {}
    codes = [known.setdefault(text, len(known)) for text in texts]
    return {"texts": list(known), "codes": codes}


def _cut(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _short(values: NDArray[Any]) -> list[float]:
    return [float(f"{value:.4g}") for value in values]


def _three(values: NDArray[Any]) -> list[float]:
    return [round(float(value), 3) for value in values]


def _density(places: Places, labels: NDArray[Any]) -> dict[str, Any]:
    """In each cell of the map, a share of the fullest on a log scale, and the usual cluster.

    Bytes from 0 to 255, and numbers of two bytes, row by row from the lower left.
    """
    across, up = CELLS
    xy, label = places.xy[places.fair], labels[places.rows[places.fair]].astype(np.int64)
    low, high = np.quantile(xy, EDGES, axis=0)  # a few far away do not make the cells coarse
    span = np.where(high > low, 1.1 * (high - low), 1.0)
    low = low - 0.05 * span
    cell = np.floor((xy - low) / span * CELLS).astype(np.int64)
    inside = ((cell >= 0) & (cell < CELLS)).all(axis=1)
    at, label = (cell[:, 1] * across + cell[:, 0])[inside], label[inside]
    counts = np.bincount(at, minlength=across * up)
    c = int(label.max()) + 1
    both, many = np.unique(at * c + label, return_counts=True)
    usual = np.zeros(across * up, np.uint16)
    order = np.argsort(many, kind="stable")  # the most frequent label of a cell is written last
    usual[both[order] // c] = (both % c)[order]
    shade = np.round(255 * np.log1p(counts) / np.log1p(max(int(counts.max()), 1)))
    return {
        "x": [float(low[0]), float(low[0] + span[0])],
        "y": [float(low[1]), float(low[1] + span[1])],
        "cells": CELLS,
        "shade": b64encode(shade.astype(np.uint8).tobytes()).decode("ascii"),
        "label": b64encode(usual.astype("<u2").tobytes()).decode("ascii"),
    }
