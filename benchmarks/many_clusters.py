"""EVCLUS with many clusters: as accurate as k-means and a mixture, at a cost that hardly knows c.

    python benchmarks/many_clusters.py accuracy [--seeds 5] [--large] [--device cuda]
    python benchmarks/many_clusters.py cost [-n 200000]
    python benchmarks/many_clusters.py whole
    python benchmarks/many_clusters.py views [-n 60000]
    python benchmarks/many_clusters.py networks [--seeds 5]

`accuracy`: Gaussians with centres 3 N(0, 1) and unit noise in ten dimensions, and thirty clusters
of unequal size and shape, each beside scikit-learn in the same run; --large takes c = 50 with 10^5
objects and c = 1,000 with 10^6 instead. `cost`: seconds by object and sweep, and CPU seconds of
whole fits, on one thread, the least of three by turns, as ratios to c = 10. `whole`: a million
objects on all cores, seconds and memory. `views`: n lists over 1,000 clusters are looked at,
decided and stored, each in a process of its own: seconds (the better of two) and what it held at
most. `networks`: NN-EVCLUS, one start, beside EVCLUS and k-means. The exit code tells whether all
bounds were kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from bounds import Bounds
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from evdist import EVCLUS, NNEVCLUS, CredalPartition, FocalSets
from evdist.kernels.sparse_rows import FIRST_ID, FREE, encode, ids_of
from evdist.partition.sparse import SparseMasses

SUITE = Path(__file__).resolve().parents[2] / "shared" / "data" / "suite" / "sipu"
Data = tuple[np.ndarray, np.ndarray]


def gaussians(c: int, n: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % c)
    X = (3 * rng.normal(size=(c, 10)))[y] + rng.normal(size=(n, 10))
    return X.astype(np.float32), y


def unequal(seed: int, n: int = 20_000, c: int = 30, d: int = 16) -> Data:
    rng = np.random.default_rng(seed)
    weight = rng.random(c) ** 2 + 0.05
    y = rng.choice(c, n, p=weight / weight.sum())
    centres, shape = 2 * rng.normal(size=(c, d)), 0.35 * rng.normal(size=(c, d, d))
    X = centres[y] + np.einsum("nij,nj->ni", shape[y], rng.normal(size=(n, d)))
    return X.astype(np.float32), y


def suite(name: str) -> Data:
    X = np.loadtxt(SUITE / f"{name}.data.gz").astype(np.float32)
    return X, np.loadtxt(SUITE / f"{name}.labels0.gz").astype(int)


def timed(model: Any, data: Data) -> tuple[float, float]:
    """ARI of the model's labels, and the seconds that they took."""
    X, y = data
    began = time.perf_counter()
    found = model.fit_predict(X)
    return adjusted_rand_score(y, found), time.perf_counter() - began


def peer(c: int) -> Any:
    if c >= 1000:
        return MiniBatchKMeans(c, n_init=3, random_state=0, batch_size=10_000)
    return KMeans(c, n_init=10, random_state=0)


def accuracy(bounds: Bounds, seeds: int, large: bool, device: str) -> None:
    for c, n in [(50, 100_000), (1000, 1_000_000)] if large else [(50, 5000), (100, 20_000)]:
        above = []
        for seed in range(seeds):
            data = gaussians(c, n, seed)
            ours, mine = timed(EVCLUS(c, metric="euclidean", random_state=0, device=device), data)
            theirs, other = timed(peer(c), data)
            above.append(ours - theirs)
            print(
                f"c {c} n {n:,} seed {seed}: EVCLUS {ours:.3f} ({mine:.1f} s), "
                f"k-means {theirs:.3f} ({other:.1f} s)",
                flush=True,
            )
        bounds.at_least(f"c {c} n {n:,}: mean ARI above k-means", float(np.mean(above)), -0.01)
        bounds.at_least(f"c {c} n {n:,}: least ARI above k-means", min(above), -0.03)
    if large:
        return
    sets = [(f"unequal {s}", unequal(s), 0.0) for s in range(seeds)]
    names = ("a2", "a3", "d31", "s1", "s2", "r15", "unbalance") if SUITE.exists() else ()
    sets += [(name, suite(name), 0.01) for name in names]
    for name, data, room in sets:
        c = len(np.unique(data[1]))
        ours, mine = timed(EVCLUS(c, metric="euclidean", random_state=0, device=device), data)
        means, _ = timed(peer(c), data)
        mixture, _ = timed(GaussianMixture(c, random_state=0), data)
        print(
            f"{name}: EVCLUS {ours:.3f} ({mine:.1f} s), k-means {means:.3f}, mixture {mixture:.3f}",
            flush=True,
        )
        bounds.at_least(f"{name}: ARI above the better peer", ours - max(means, mixture), -room)


def networks(bounds: Bounds, seeds: int) -> None:
    sets = [(f"c {c} n {n:,} seed {s}", gaussians(c, n, s)) for c, n in ((30, 3000), (100, 20_000))
            for s in range(seeds)]  # fmt: skip
    names = ("a2", "a3", "d31", "s1", "s2", "r15") if SUITE.exists() else ()
    sets += [(name, suite(name)) for name in names]
    for name, data in sets:
        c = len(np.unique(data[1]))
        ours, mine = timed(NNEVCLUS(c, n_init=1, random_state=0, device="cpu"), data)
        masses, other = timed(EVCLUS(c, metric="euclidean", random_state=0), data)
        means, _ = timed(peer(c), data)
        print(
            f"{name}: NN-EVCLUS {ours:.3f} ({mine:.1f} s), EVCLUS {masses:.3f} ({other:.1f} s), "
            f"k-means {means:.3f}",
            flush=True,
        )
        bounds.at_least(f"{name}: ARI of NN-EVCLUS above EVCLUS", ours - masses, -0.03)


class Watch:
    """How fast the sweeps of a fit were: the mean of all of them, the first one included."""

    def __call__(self, news: Any) -> None:
        self.seconds_by_row = 1.0 / news.rows_per_second


def cost(bounds: Bounds, n: int) -> None:
    by_sweep, whole = {}, {}
    EVCLUS(30, metric="euclidean", random_state=0, n_jobs=1).fit(
        gaussians(30, 2000, 0)[0]
    )  # compiles
    data = {c: gaussians(c, n, 0)[0] for c in (10, 50, 1000)}
    # By turns, and of each the least: what else runs on the machine comes and goes.
    for c in (*data, *data, *data):
        watch = Watch()
        model = EVCLUS(c, metric="euclidean", random_state=0, n_jobs=1, callbacks=[watch])
        began = time.process_time()
        model.fit(data[c])
        took, sweep = time.process_time() - began, watch.seconds_by_row
        whole[c] = min(took, whole.get(c, took))
        by_sweep[c] = min(sweep, by_sweep.get(c, sweep))
        print(
            f"c {c}: {sweep * 1e6:.2f} us by object and sweep, {model.n_iter_} sweeps, "
            f"{took:.1f} CPU s in all",
            flush=True,
        )
    bounds.at_most("sweep at c = 50 against c = 10", by_sweep[50] / by_sweep[10], 1.5)
    bounds.at_most("sweep at c = 1,000 against c = 10", by_sweep[1000] / by_sweep[10], 3.0)
    bounds.at_most("fit at c = 50 against c = 10", whole[50] / whole[10], 2.0)


def whole(bounds: Bounds) -> None:
    took = {}
    EVCLUS(30, metric="euclidean", random_state=0).fit(gaussians(30, 2000, 0)[0])  # compiles
    for c in (10, 50, 1000):
        data = gaussians(c, 1_000_000, 0)
        ari, took[c] = timed(EVCLUS(c, metric="euclidean", random_state=0), data)
        print(f"c {c} n 1,000,000: {took[c]:.1f} s, ARI {ari:.3f}", flush=True)
    bounds.at_most("fit at c = 50 against c = 10", took[50] / took[10], 2.0)
    bounds.at_most("fit at c = 1,000, minutes", took[1000] / 60, 10.0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    bounds.at_most("peak memory of all, data included, GB", peak, 4.0)


CLUSTERS = 1000
#: Steps that `views` takes of a partition in memory, and of one that is stored.
HELD = {
    "labels": lambda p: p.labels(),
    "margin": lambda p: p.margin(),
    "nonspecificity": lambda p: p.nonspecificity(),
    "summary": lambda p: p.summary(),
    "decide": lambda p: p.decide(),
    "open names": lambda p: p.decide().open_names(),
    "to_frame": lambda p: p.to_frame(),
    "equal": lambda p: p == p[:],
}
STORED = {
    "load and labels": lambda p: p.labels(),
    "load and summary": lambda p: p.summary(),
    "load into memory": lambda p: p.in_memory(1 << 40),
}


def lists(n: int, c: int = CLUSTERS) -> CredalPartition:
    """Objects with mass on one to eight neighbouring clusters; a few outliers and vague ones."""
    rng = np.random.default_rng(0)
    mass = rng.dirichlet(np.full(10, 0.15), n)
    mass[:, 1] += 2.0 * (rng.random(n) < 0.95)
    rows = encode((mass / mass.sum(axis=1, keepdims=True)).astype(np.float32))
    slots = ids_of(rows)[:, FIRST_ID : FIRST_ID + 8]
    slots += np.where(slots < FREE, rng.integers(c - 8, size=(n, 1)), 0).astype(np.uint16)
    return CredalPartition(SparseMasses(rows, c), FocalSets.simple(c))


def step(name: str, folder: str) -> tuple[float, float, float]:
    """Seconds of a step, the better of two; megabytes that it held at most, and this process."""
    focal = lists(8).focal_sets
    HELD.get(name, HELD["labels"])(lists(2000))  # what is imported on first use

    def once() -> float:
        partition: Any = None
        if name not in STORED:
            partition = CredalPartition(
                SparseMasses(np.load(f"{folder}/rows.npy"), CLUSTERS), focal
            )
        path = Path(folder) / ("p.npz" if "npz" in name else "p.zarr")
        began = time.perf_counter()
        if name in STORED:
            STORED[name](CredalPartition.load(f"{folder}/kept.zarr"))
        elif name in HELD:
            HELD[name](partition)
        else:
            partition.save(path)
        took = time.perf_counter() - began
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        return took

    took = min(once(), once())
    whole = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    tracemalloc.start()
    once()
    return took, tracemalloc.get_traced_memory()[1] / 1e6, whole


def look(bounds: Bounds, n: int) -> None:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        made = lists(n)
        made.save(f"{folder}/kept.zarr")
        np.save(f"{folder}/rows.npy", made.mass.rows)
        size = sum(f.stat().st_size for f in Path(f"{folder}/kept.zarr").rglob("*") if f.is_file())
        print(f"n {n:,}, c {CLUSTERS:,}: {size / 1e6:.1f} MB as a zarr store", flush=True)
        for name in (*HELD, "save zarr", "save npz", *STORED):
            with context.Pool(1) as pool:
                seconds, held, whole = pool.apply(step, (name, folder))
            print(f"{name:<17} {seconds:8.3f} s {held:6.0f} MB, {whole:6.0f} MB in all", flush=True)
            bounds.at_most(f"{name}, us by object", seconds / n * 1e6, 20.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["accuracy", "cost", "whole", "views", "networks"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--device", default="cpu", help="of the fits whose accuracy is measured")
    parser.add_argument("-n", type=int, default=200_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    bounds = Bounds()
    if given.what == "accuracy":
        accuracy(bounds, given.seeds, given.large, given.device)
    elif given.what == "whole":
        whole(bounds)
    elif given.what == "views":
        look(bounds, given.n)
    elif given.what == "networks":
        networks(bounds, given.seeds)
    else:
        cost(bounds, given.n)
    return bounds.finish()


if __name__ == "__main__":
    raise SystemExit(main())
