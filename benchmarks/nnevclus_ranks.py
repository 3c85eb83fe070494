"""NN-EVCLUS on two Dask workers: what talk costs at which size of network, and data in no process.

    python benchmarks/nnevclus_ranks.py [talk | steady | lazy] [--rounds N] [--rows N] [--size I]

* talk: rows per second of two workers against one process that does the same steps (two shards),
  and against one that does the paper's (one shard), for networks and mini-batches of several sizes;
  once with a mean of the weights after every step, once after LOCAL of them. Other work on the
  machine slows two processes more than one, so short windows are timed, LOCAL steps each, and the
  twentieth part of them that is fastest counts. `--size I` measures one of the sizes.
* steady: the same for the smallest size, over whole rounds: what there was, other work included.
* lazy: a Dask array of N x 10 on two workers of 900 MB: memory of this process and of the
  workers, seconds of the fit.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from bounds import Bounds
from distributed import Client, LocalCluster
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from evdist import NNEVCLUS
from evdist.engine import ranks
from evdist.engine.workers import wait_for_workers
from evdist.nnevclus import training

#: Hidden layers and mini-batches that are measured.
SIZES = (((30,), 200), ((30,), 500), ((100, 100), 200), ((100, 100), 500), ((256, 256), 500))
#: Epochs of a fit that is timed.
EPOCHS = 12


@contextmanager
def two_workers(**how: Any) -> Iterator[Client]:
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address="127.0.0.1:0", **how) as cluster,
        Client(cluster) as client,
    ):
        wait_for_workers(client, 2)
        yield client


def model_of(c: int, epochs: int, **how: Any) -> NNEVCLUS:
    common: dict[str, Any] = {
        "d0": "q0.2", "tol": 0.0, "n_init": 1, "device": "cpu", "n_jobs": 1, "random_state": 0,
        "max_iter": epochs, "checkpoint_every": epochs,
    }  # fmt: skip
    return NNEVCLUS(c, **{**common, **how})


def fit(model: NNEVCLUS, X: Any, client: Any = None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, client=client)


# ---------------------------------------------------------------------- clocks inside processes
class Clocks(NamedTuple):
    """Milliseconds that a stretch of LOCAL steps takes, and the talk at its end."""

    stretch: float
    talk: float


def watch(local: int) -> None:
    """Note the seconds of stretches and talks in this process from now on, and set LOCAL."""
    training.LOCAL = local
    # Functions of a script are sent by value: what they note lies in a module.
    seconds = training.__dict__["SECONDS"] = {"stretch": [], "talk": []}
    stretch = getattr(training.Trainer._stretch, "__wrapped__", training.Trainer._stretch)
    gather = getattr(ranks.Group.gather, "__wrapped__", ranks.Group.gather)

    @wraps(stretch)
    def stretched(self: Any, drawn: Any, totals: Any, count: int) -> None:
        began = time.perf_counter()
        stretch(self, drawn, totals, count)
        if count == local:
            seconds["stretch"].append(time.perf_counter() - began)

    @wraps(gather)
    def talked(self: Any, values: Any) -> Any:
        began = time.perf_counter()
        found = gather(self, values)
        seconds["talk"].append(time.perf_counter() - began)
        return found

    training.Trainer._stretch = stretched  # type: ignore[method-assign]
    ranks.Group.gather = talked  # type: ignore[method-assign]


def noted() -> Clocks:
    """The twentieth part of them that is fastest: windows in which no other work disturbed."""
    found = training.__dict__["SECONDS"]
    return Clocks(*(1e3 * float(np.quantile(found[k], 0.05)) if found[k] else 0.0 for k in found))


def clocks(model: NNEVCLUS, X: Any, client: Any, local: int) -> Clocks:
    """Those of a fit; of two ranks the slower one's stretch."""
    watch(local)
    if client is None:
        fit(model, X)
        return noted()
    client.run(watch, local)
    fit(model, X, client)
    return Clocks(*map(max, zip(*client.run(noted).values(), strict=True)))


def talk(bounds: Bounds, rounds: int, n: int, sizes: Sequence[Any]) -> None:
    X, _ = make_blobs(n, n_features=8, centers=8, cluster_std=1.5, random_state=0)
    usual = training.LOCAL
    with two_workers() as client:
        for hidden, batch in sizes:
            how: dict[str, Any] = {"hidden": hidden, "batch_size": batch, "d0": 20.0}
            runs = [(1, None, usual)] + [(2, c, k) for k in (1, usual) for c in (None, client)]
            best = [Clocks(np.inf, np.inf)] * len(runs)
            for _ in range(rounds):  # in turn: a quiet minute shall not be that of one way only
                for i, (shards, where, local) in enumerate(runs):
                    model = model_of(8, EPOCHS, n_shards=shards, **how)
                    found = clocks(model, X, where, local)
                    best[i] = Clocks(*map(min, zip(best[i], found, strict=True)))
            one = best.pop(0).stretch / usual  # of one mini-batch
            weights = sum(w.numel() for w in model.network_.parameters())
            bounds.head(f"hidden {hidden}, {weights:,} weights, mini-batches of {batch}")
            bounds.note("one shard: milliseconds of a step", one)
            bounds.note("  rows per second", 1e3 * batch / one, digits=0)
            for local, both, two in zip((1, usual), best[::2], best[1::2], strict=True):
                bounds.note(f"{local} steps, then a talk: milliseconds of both", two.stretch)
                bounds.note("  of the talk", two.talk)
                # Weights, and what RMSprop remembers of each.
                bounds.note("  bytes that a rank receives", 8 * weights, digits=0)
                bounds.note("  rows per second", 2e3 * local * batch / two.stretch, digits=0)
                bounds.note("  against two shards in one process", both.stretch / two.stretch,
                            digits=2)  # fmt: skip
                ratio = 2 * local * one / two.stretch
                if local == 1:
                    bounds.note("  against one shard", ratio, digits=2)
                else:
                    bounds.at_least("  against one shard", ratio, 1.5, digits=2)


def steady(bounds: Bounds, rounds: int, n: int) -> None:
    X, _ = make_blobs(n, n_features=8, centers=8, cluster_std=1.5, random_state=0)
    bounds.head("rows per second from epoch 10 to 40, rounds of ten begun and ended")
    ratios = []
    with two_workers() as client:
        for _ in range(rounds):
            runs = ((1, None), (2, None), (2, client))
            one, both, two = (_rate(X, shards, where) for shards, where in runs)
            bounds.note("one shard", one, digits=0)
            bounds.note("two shards in one process", both, digits=0)
            bounds.note("two workers", two, digits=0)
            bounds.note("  against two shards in one process", two / both, digits=2)
            bounds.note("  against one shard", two / one, digits=2)
            ratios.append(two / one)
    bounds.at_least("against one shard, median", float(np.median(ratios)), 1.5, digits=2)


def _rate(X: Any, shards: int, client: Any) -> float:
    ends: dict[int, float] = {}

    def tell(news: Any) -> None:
        if news.stage == "fit":
            ends[news.sweep] = time.perf_counter()

    model = model_of(8, 40, hidden=(30,), batch_size=200, n_shards=shards, checkpoint_every=10)
    fit(model.set_params(callbacks=[tell]), X, client)
    return 30 * len(X) / (ends[40] - ends[10])


def lazy(bounds: Bounds, rounds: int, n: int) -> None:
    centres = np.random.default_rng(0).uniform(-10, 10, (8, 10)).astype(np.float32)

    def rows(block_info: Any) -> np.ndarray:
        (lo, hi), _ = block_info[None]["array-location"]
        rng = np.random.default_rng(lo)
        which = rng.integers(8, size=hi - lo)
        return centres[which] + rng.normal(size=(hi - lo, 10)).astype(np.float32)

    chunks = tuple(np.diff([*range(0, n, 200_000), n]).tolist())
    X = da.map_blocks(rows, chunks=(chunks, (10,)), dtype=np.float32)
    bounds.head(f"a Dask array of {n:,} x 10 ({4e-9 * 10 * n:.2f} GB of float32)")
    with two_workers(memory_limit="900MB") as client:
        before, bare = _peak(), client.run(lambda: _peak())
        started = time.perf_counter()
        model = model_of(8, rounds, hidden=(30,), batch_size=500, checkpoint_every=2)
        fit(model, X, client)
        bounds.note("two workers: seconds of the fit", time.perf_counter() - started, digits=1)
        peaks = client.run(lambda: _peak())
        bounds.at_most("  largest worker, MB", max(peaks.values()) / 1e6, 900, digits=0)
        bounds.note("    before", max(bare.values()) / 1e6, digits=0)
        bounds.at_most("  this process, more than before, MB", (_peak() - before) / 1e6, 200,
                       digits=0)  # fmt: skip
        labels = model.labels_
        counts = np.sort(da.bincount(labels, minlength=8).compute())
        bounds.note("  smallest cluster, share of 1/8", 8 * counts[0] / n)
        bounds.note("  objective", model.objective_, digits=5)


def _peak() -> int:
    """The most memory that this process had, in bytes."""
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["talk", "steady", "lazy"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--size", type=int, default=None)
    options = parser.parse_args()
    bounds = Bounds(width=52)
    if "talk" in options.what:
        sizes = SIZES if options.size is None else (SIZES[options.size],)
        talk(bounds, options.rounds, options.rows or 20_000, sizes)
    if "steady" in options.what:
        steady(bounds, options.rounds, options.rows or 20_000)
    if "lazy" in options.what:
        lazy(bounds, options.rounds, options.rows or 2_000_000)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
