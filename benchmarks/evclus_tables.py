"""k-CEVCLUS (2018), tables 2 and 3, whole: every xi and every quantile of d0, beside print.

    python benchmarks/evclus_tables.py [xi | q | why] [--draws 10] [--sets iris glass ...]

* xi: table 2, xi = 0 to 1, 100 and 200 links, d0 = q0.9 (iris q0.6);
* q: table 3, d0 = q0.1 to q1, 100 and 200 links, xi = 0.5;
* why: at q0.1 and q0.9 what the labels depend on: draws of links, starts, and how far the descent
  goes. No paper prints these; they explain table 3.

All dissimilarities, singletons and the whole frame, raw attributes. As in section 4.2 a run begins
where k-EVCLUS ends, goes on with xi = .05 and then with its own xi. The measure is the mean of the
adjusted Rand index (ARI) over draws of links. The paper has ten draws, which we do not have, so
ours may be below print by two standard errors of the difference of two such means, and by .03
(rounding, and sets that are not quite theirs) where that is more. Nonspecificities depend little on
the draw: the largest difference from print in a column may be .05.

Takes about 20 minutes on one core for each of the two tables with ten draws.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from bounds import Bounds
from datasets import DataSet
from evclus_accuracy import ari, small_sets
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS, CredalPartition
from evdist.constraints import random_links

SETS = ("bananas", "glass", "iris", "ecoli3")
LINKS = (100, 200)
XI = (0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
QUANTILES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SLACK, SLACK_N, DRAWS_OF_PAPER = 0.03, 0.05, 10
Column = tuple[tuple[float, ...], tuple[float, ...]]
#: (set, links) -> ARI and nonspecificity for each xi of XI.
TABLE_2: dict[tuple[str, int], Column] = {
    ("bananas", 100): (
        (0.38, 0.48, 0.59, 0.70, 0.69, 0.70, 0.73, 0.69, 0.70, 0.73, 0.75, 0.69),
        (0.17, 0.16, 0.14, 0.12, 0.10, 0.09, 0.08, 0.07, 0.07, 0.08, 0.08, 0.08)),
    ("glass", 100): (
        (0.63, 0.78, 0.79, 0.80, 0.80, 0.79, 0.82, 0.83, 0.82, 0.77, 0.78, 0.81),
        (0.21, 0.19, 0.17, 0.14, 0.13, 0.11, 0.11, 0.11, 0.10, 0.09, 0.10, 0.11)),
    ("iris", 100): (
        (0.75, 0.86, 0.87, 0.89, 0.90, 0.89, 0.89, 0.90, 0.90, 0.88, 0.89, 0.88),
        (0.11, 0.08, 0.06, 0.04, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03, 0.04)),
    ("ecoli3", 100): (
        (0.79, 0.85, 0.86, 0.87, 0.86, 0.87, 0.87, 0.86, 0.86, 0.85, 0.85, 0.84),
        (0.16, 0.13, 0.10, 0.09, 0.09, 0.09, 0.10, 0.09, 0.10, 0.10, 0.10, 0.09)),
    ("bananas", 200): (
        (0.38, 0.51, 0.61, 0.77, 0.86, 0.90, 0.90, 0.90, 0.92, 0.92, 0.91, 0.92),
        (0.17, 0.15, 0.14, 0.12, 0.10, 0.09, 0.07, 0.06, 0.05, 0.04, 0.04, 0.04)),
    ("glass", 200): (
        (0.60, 0.77, 0.83, 0.91, 0.92, 0.92, 0.92, 0.94, 0.94, 0.93, 0.92, 0.94),
        (0.20, 0.19, 0.18, 0.14, 0.12, 0.10, 0.09, 0.08, 0.07, 0.06, 0.06, 0.06)),
    ("iris", 200): (
        (0.76, 0.87, 0.93, 0.97, 0.95, 0.96, 0.97, 0.97, 0.97, 0.96, 0.97, 0.96),
        (0.11, 0.08, 0.06, 0.03, 0.02, 0.02, 0.01, 0.01, 0.01, 0.01, 0.01, 0.01)),
    ("ecoli3", 200): (
        (0.79, 0.87, 0.89, 0.90, 0.91, 0.91, 0.91, 0.91, 0.93, 0.92, 0.91, 0.93),
        (0.16, 0.13, 0.11, 0.08, 0.06, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05, 0.06)),
}  # fmt: skip
#: (set, links) -> ARI and nonspecificity for each q of QUANTILES.
TABLE_3: dict[tuple[str, int], Column] = {
    ("bananas", 100): (
        (0.94, 0.93, 0.92, 0.86, 0.84, 0.84, 0.79, 0.74, 0.74, 0.69),
        (0.33, 0.31, 0.27, 0.23, 0.21, 0.17, 0.13, 0.09, 0.08, 0.26)),
    ("glass", 100): (
        (0.23, 0.31, 0.46, 0.89, 0.87, 0.86, 0.82, 0.80, 0.84, 0.76),
        (0.38, 0.36, 0.31, 0.28, 0.23, 0.16, 0.11, 0.11, 0.11, 0.27)),
    ("iris", 100): (
        (0.57, 0.91, 0.93, 0.95, 0.91, 0.91, 0.83, 0.65, 0.68, 0.66),
        (0.23, 0.20, 0.16, 0.10, 0.05, 0.03, 0.03, 0.05, 0.07, 0.20)),
    ("ecoli3", 100): (
        (0.27, 0.46, 0.71, 0.80, 0.83, 0.83, 0.83, 0.85, 0.86, 0.84),
        (0.45, 0.40, 0.34, 0.27, 0.20, 0.15, 0.11, 0.09, 0.09, 0.25)),
    ("bananas", 200): (
        (0.99, 0.97, 0.97, 0.97, 0.95, 0.94, 0.94, 0.91, 0.90, 0.81),
        (0.21, 0.19, 0.17, 0.15, 0.13, 0.12, 0.10, 0.07, 0.07, 0.24)),
    ("glass", 200): (
        (0.85, 0.86, 0.96, 0.95, 0.96, 0.92, 0.94, 0.94, 0.91, 0.92),
        (0.28, 0.25, 0.22, 0.19, 0.16, 0.12, 0.10, 0.09, 0.09, 0.21)),
    ("iris", 200): (
        (0.93, 0.97, 0.98, 0.99, 0.98, 0.96, 0.97, 0.92, 0.88, 0.87),
        (0.09, 0.08, 0.05, 0.04, 0.02, 0.01, 0.02, 0.03, 0.06, 0.21)),
    ("ecoli3", 200): (
        (0.24, 0.46, 0.73, 0.82, 0.87, 0.88, 0.89, 0.91, 0.90, 0.89),
        (0.22, 0.20, 0.18, 0.14, 0.12, 0.09, 0.06, 0.05, 0.05, 0.20)),
}  # fmt: skip


class Case(NamedTuple):
    """Data sets (several draws of bananas) and the quantile of d0 that table 2 has for them."""

    sets: list[DataSet]
    q: float


def cases(names: Sequence[str]) -> Iterator[tuple[str, Case]]:
    for title, (sets, q) in small_sets().items():
        name = title.partition(",")[0]
        if name in names:
            yield name, Case(sets, q)


def run(data: DataSet, q: float, init: Any, seed: int, **how: Any) -> EVCLUS:
    links = how.pop("links", (None, None))
    return EVCLUS(
        data.n_clusters, n_dissimilarities=len(data.y) - 1, d0=f"q{q}", init=init, n_jobs=1,
        random_state=seed, **how,
    ).fit(data.X, must_link=links[0], cannot_link=links[1])  # fmt: skip


def unlinked(data: DataSet, q: float) -> CredalPartition:
    return run(data, q, "random", 0, n_init=3).credal_partition_


def said(data: DataSet, fit: EVCLUS) -> tuple[float, float]:
    return ari(data, fit), fit.credal_partition_.nonspecificity()


def known(name: str, label: str, theirs: float) -> str:
    """Why a line may be out of reach, where that is known (see `why` and docs)."""
    if name == "bananas":
        return "the paper's draw of bananas is not at hand"
    if label in ("q0.1", "q0.2", "q0.3") and name in ("glass", "iris"):
        return "outliers' labels: they move with the draw of links"
    if name == "ecoli3":
        return "not the paper's Ecoli, which has 272 objects and 7 attributes"
    if theirs == round(theirs, 1):
        return "printed with one digit"
    return ""


def column(
    bounds: Bounds, name: str, found: np.ndarray, printed: Column, labels: Sequence[str]
) -> None:
    """ARI of each line of a table, and the largest difference of a nonspecificity.

    `found` is (lines, draws, 2).
    """
    draws = found.shape[1]
    for values, label, theirs in zip(found[:, :, 0], labels, printed[0], strict=True):
        error = values.std(ddof=1) * np.sqrt(1 / draws + 1 / DRAWS_OF_PAPER)
        spread = f"{values.min():.2f} to {values.max():.2f}"
        what = f"{label} (printed {theirs:.2f}; ours {spread})"
        low = theirs - max(SLACK, 2 * error)
        bounds.at_least(what, float(values.mean()), low, known=known(name, label, theirs))
    apart = np.abs(found[:, :, 1].mean(axis=1) - printed[1])
    far = int(apart.argmax())
    what = f"nonspecificity, farthest from print ({labels[far]})"
    why = known(name, labels[far], printed[1][far])
    bounds.at_most(what, float(apart.max()), SLACK_N, known=why)


def table_2(bounds: Bounds, names: Sequence[str], draws: int) -> None:
    for name, (sets, q) in cases(names):
        starts = [unlinked(data, q) for data in sets]
        for count in LINKS:
            found = np.empty((len(XI), draws, 2))
            for s in range(draws):
                data, start = sets[s % len(sets)], starts[s % len(sets)]
                links = random_links(data.y, count, s)
                light = run(data, q, start, s, constraint_weight=XI[1], links=links)
                found[0, s] = (
                    adjusted_rand_score(data.y, start.labels()), start.nonspecificity()
                )  # fmt: skip
                found[1, s] = said(data, light)
                for i, xi in enumerate(XI[2:], start=2):
                    fit = run(data, q, light.credal_partition_, s, constraint_weight=xi,
                              links=links)  # fmt: skip
                    found[i, s] = said(data, fit)
            bounds.head(f"table 2, {name}, {count} links: mean of {draws} draws")
            column(bounds, name, found, TABLE_2[name, count], [f"xi = {xi:g}" for xi in XI])


def table_3(bounds: Bounds, names: Sequence[str], draws: int) -> None:
    for name, (sets, _) in cases(names):
        for count in LINKS:
            found = np.empty((len(QUANTILES), draws, 2))
            for i, q in enumerate(QUANTILES):
                starts = [unlinked(data, q) for data in sets]
                for s in range(draws):
                    data = sets[s % len(sets)]
                    links = random_links(data.y, count, s)
                    light = run(data, q, starts[s % len(sets)], s, constraint_weight=0.05,
                                links=links)  # fmt: skip
                    fit = run(data, q, light.credal_partition_, s, constraint_weight=0.5,
                              links=links)  # fmt: skip
                    found[i, s] = said(data, fit)
            bounds.head(f"table 3, {name}, {count} links, xi = 0.5: mean of {draws} draws")
            column(bounds, name, found, TABLE_3[name, count], [f"q{q:g}" for q in QUANTILES])


def reasons(bounds: Bounds, names: Sequence[str], draws: int) -> None:
    """Iris at q0.9, and glass with 200 links at q0.1."""
    for name, (sets, _) in cases(names):
        if name not in ("iris", "glass"):
            continue
        data, (q, count) = sets[0], (0.9, 100) if name == "iris" else (0.1, 200)
        start = unlinked(data, q)
        ways: dict[str, dict[str, Any]] = {
            "to the end": {"init": start},
            "one sweep after the warm-up": {"init": start, "max_iter": 1},
            "three sweeps": {"init": start, "max_iter": 3},
            "ten sweeps": {"init": start, "max_iter": 10},
            "from the true classes": {"init": CredalPartition.from_labels(data.y)},
            "from random masses": {"init": "random"},
        }
        bounds.head(f"{name}, q{q}, {count} links, xi = 0.5: mean ARI of {draws} draws")
        for what, way in ways.items():
            fits = [
                run(data, q, seed=s, constraint_weight=0.5, links=random_links(data.y, count, s),
                    **way)
                for s in range(draws)
            ]  # fmt: skip
            scores = [ari(data, fit) for fit in fits]
            cost = float(np.mean([fit.objective_ for fit in fits]))
            spread = f"{min(scores):.2f} to {max(scores):.2f}; objective {cost:.4f}"
            bounds.note(what, float(np.mean(scores)), spread)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["xi", "q", "why"])
    parser.add_argument("--draws", type=int, default=DRAWS_OF_PAPER, help="draws of links")
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    given = parser.parse_args()
    bounds = Bounds()
    warnings.simplefilter("ignore", ConvergenceWarning)  # descents that are stopped early
    for name, part in (("xi", table_2), ("q", table_3), ("why", reasons)):
        if name in given.what:
            part(bounds, given.sets, given.draws)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
