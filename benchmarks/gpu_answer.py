"""The CPU's answer to a problem with many focal sets, for a machine with a GPU to compare with.

    python benchmarks/gpu_answer.py folder       writes folder/answer.npz, some minutes

`gpu_speed.py answer folder` solves the same problem from the same start on the GPU. All pairs of
ten clusters (f = 57) make the programs of the rows all but singular, and the sweeps slow to
settle: both sides go on until tol = 1e-10.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np

from evdist import EVCLUS
from evdist.evclus.sampling import draw_layout

N, D, C, K, D0, SEED = 2000, 10, 10, 100, 10.0, 0
TOL, SWEEPS = 1e-10, 4000


def main(folder: Path) -> None:
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, C, N)
    X = (rng.normal(0, 3, (C, D))[y] + rng.normal(size=(N, D))).astype(np.float32)
    given = {"n_dissimilarities": K, "focal_sets": "pairs", "d0": D0, "random_state": SEED}
    # A valley first: from random masses the least rounding decides which of many is found.
    start = np.asarray(
        EVCLUS(C, metric="euclidean", **given, tol=1e-3).fit(X).credal_partition_.mass
    )
    model = EVCLUS(C, metric="euclidean", **given, init=start, tol=TOL, max_iter=SWEEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says itself below whether it has converged
        model.fit(X)
    print(f"objective {model.objective_:.12g} after {model.n_iter_} sweeps, "
          f"converged: {model.converged_}")  # fmt: skip
    seed = int(np.random.RandomState(SEED).randint(2**31 - 1))
    layout = draw_layout(N, K, seed)
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        folder / "answer.npz", X=X, order=layout.order, start=start, d0=D0, tol=TOL,
        colours=layout.graph.colours, offsets=layout.graph.offsets, shifts=layout.graph.shifts,
        objective=model.objective_, sweeps=model.n_iter_, converged=model.converged_,
        labels=model.labels_,
    )  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]))
