"""Belief-peaks evidential clustering: centres from the delta-Bel graph, then masses and metric.

Reference: Su, Denoeux (2019), BPEC: belief-peaks evidential clustering. The centres come from
`evdist.ecm.belief_peaks`; they stay, and ECM's objective (`evdist.ecm.solver`) is minimised
over the masses and one metric per cluster.
"""

from __future__ import annotations

from collections.abc import Callable

from evdist.ecm.solver import Fit, Model, Rows, fit_ecm
from evdist.ecm.start import with_neighbour_pairs
from evdist.engine.progress import Progress

__all__ = ["fit_bpec"]


def fit_bpec(
    rows: Rows,
    model: Model,
    *,
    adaptive: bool,
    pair_neighbours: int | None,
    tol: float,
    max_iter: int,
    report: Callable[[Progress], None],
) -> Fit:
    """Masses, and with `adaptive` metrics, for the prototypes of `model`, which stay.

    With `pair_neighbours` a first fit on the focal sets of `model` tells which pairs of clusters
    are among each other's so many nearest; they join the focal sets.
    """

    def fitted(model: Model, stage: str) -> Fit:
        start = model.adaptive() if adaptive else model
        return fit_ecm(
            rows, start, tol=tol, max_iter=max_iter, move=False, stage=stage, report=report
        )

    if pair_neighbours is not None:
        model = with_neighbour_pairs(rows, fitted(model, "singletons").model, pair_neighbours)
    return fitted(model, "fit")
