"""ECM at 10^6 x 10, c = 10, beside scikit-learn's GaussianMixture with full covariances.

    python benchmarks/ecm_speed.py [n]
    python benchmarks/ecm_speed.py cluster [n]

Both fit the same ten Gaussian clusters in one run; the CPU time (all threads) of ECM may be at most
five times that of GaussianMixture. Whole fits with the defaults of both, and, since they stop by
different rules, also one iteration each. The last lines are ECM with other focal sets and with the
adaptive metric. "cluster" fits the same data on threads and on two Dask worker processes and
compares all bits. Takes a few minutes and about 2 GB at n = 10^6.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from bounds import Bounds
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from evdist import ECM

D, C = 10, 10


def clusters(n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Ten Gaussians with unit covariance in ten dimensions, some of which overlap."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.standard_normal((C, D))
    y = rng.integers(C, size=n)
    return centres[y] + rng.standard_normal((n, D)), y


def timed(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """Result, CPU and wall seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return result, time.process_time() - cpu, time.perf_counter() - wall


def main(n: int) -> int:
    X, y = clusters(n)
    ECM(C, random_state=0).fit(X[:1000])  # compile
    ECM(C, metric="adaptive", random_state=0).fit(X[:1000])
    bounds = Bounds()
    bounds.head(f"n = {n:,}, d = {D}, c = {C}")
    gmm, gmm_cpu, gmm_wall = timed(lambda: GaussianMixture(C, random_state=0).fit(X))
    bounds.note(
        "GaussianMixture: CPU s",
        gmm_cpu,
        f"{gmm_wall:.1f} s wall, {gmm.n_iter_} iterations, ARI "
        f"{adjusted_rand_score(y, gmm.predict(X)):.3f}",
    )
    for beta in (2.0, 1.5):
        ecm, cpu, wall = timed(lambda beta=beta: ECM(C, beta=beta, random_state=0).fit(X))
        ari = adjusted_rand_score(y, ecm.labels_)
        bounds.note(
            f"ECM, beta = {beta}: CPU s",
            cpu,
            f"{wall:.1f} s wall, {ecm.n_iter_} iterations, ARI {ari:.3f}",
        )
        bounds.at_most(f"ECM, beta = {beta} / GaussianMixture", cpu / gmm_cpu, 5.0, digits=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one_gmm = _per_iteration(
            lambda t: GaussianMixture(
                C, means_init=gmm.means_, init_params="random", max_iter=t, tol=0, random_state=0
            ).fit(X)
        )
        one_ecm = _per_iteration(
            lambda t: ECM(C, beta=2.0, init=ecm.prototypes_ + 0.1, tol=0, max_iter=t).fit(X)
        )
        bounds.note("GaussianMixture: CPU s per iteration", one_gmm)
        bounds.note("ECM: CPU s per iteration", one_ecm)
        bounds.at_most("ECM / GaussianMixture, an iteration", one_ecm / one_gmm, 5.0, digits=2)
        for name, options in (
            ("all pairs", {"focal_sets": "pairs", "beta": 2.0}),
            ("beta = 1.5", {"beta": 1.5}),
            ("adaptive metric", {"metric": "adaptive", "beta": 2.0}),
        ):
            each = _per_iteration(
                lambda t, o=options: ECM(C, init=ecm.prototypes_ + 0.1, tol=0, max_iter=t, **o).fit(
                    X
                )
            )
            bounds.note(f"ECM, {name}: CPU s per iteration", each, f"{each / one_gmm:.2f} times")
    return bounds.finish()


def _per_iteration(fit: Callable[[int], Any]) -> float:
    """CPU seconds of one iteration: the difference of a longer and a shorter fit."""
    _, short, _ = timed(lambda: fit(2))
    _, long, _ = timed(lambda: fit(6))
    return (long - short) / 4


def cluster(n: int) -> int:
    X, _ = clusters(n)
    ECM(C, beta=2.0, random_state=0).fit(X[:1000])  # compile
    here, _, wall = timed(lambda: ECM(C, beta=2.0, random_state=0).fit(X))
    print(f"threads: {wall:.1f} s, {here.n_iter_} iterations")
    with LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as workers:
        with Client(workers) as client:
            there, _, wall = timed(lambda: ECM(C, beta=2.0, random_state=0).fit(X, client=client))
    same = np.array_equal(here.credal_partition_.mass, there.credal_partition_.mass)
    print(f"two Dask workers: {wall:.1f} s, {there.n_iter_} iterations")
    print(f"same bits: {same and here.history_ == there.history_}")
    return 0 if same and here.history_ == there.history_ else 1


if __name__ == "__main__":
    words = sys.argv[1:]
    work = cluster if words[:1] == ["cluster"] else main
    size = words[1:] if work is cluster else words
    sys.exit(work(int(size[0]) if size else 1_000_000))
