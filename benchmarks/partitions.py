"""Fits in partitions: memory and traffic of workers, the same bits everywhere, data beyond memory.

    python benchmarks/partitions.py scaling            # 2, 4, 8, 16 workers, small data
    python benchmarks/partitions.py large --objects 2e7 --features 16 --limit 900e6
    python benchmarks/partitions.py large --objects 2e7 --features 16 --limit 1e9 --workers 0
    python benchmarks/partitions.py large --objects 4e8 --features 8 --pairs 50 --limit 12e9 \
        --workers 8 --device cuda --made
    python benchmarks/partitions.py dask --objects 1e7 --features 10
    python benchmarks/partitions.py accuracy
    python benchmarks/partitions.py real               # labelled sets of 1,000 objects and more
    python benchmarks/partitions.py speed              # two workers against two threads

Memory is the largest resident set of a process, looked at several times a second from outside;
bytes are those of the messages that a worker gets from other workers in a sweep. Rows of `large`
lie in an .npy file, which is made block by block where it is not there; with --made they are made
when they are read, for disks that have no room for them twice.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from answers_defaults import problems, score
from bounds import Bounds
from datasets import NAMES, load
from distributed import Client, LocalCluster
from sklearn.metrics import adjusted_rand_score

from evdist import EVCLUS
from evdist.engine.memory import give_back
from evdist.engine.owners import OwnersExecutor

CENTRES = 4
#: Objects of a labelled set, at least: with fewer a partition has no neighbours to speak of.
_LEAST = 1000


def rows(lo: int, hi: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Objects lo..hi-1 of four Gaussian clusters, and their clusters."""
    centres = np.random.default_rng(0).normal(scale=3.0, size=(CENTRES, d))
    rng = np.random.default_rng([1, lo])
    label = rng.integers(0, CENTRES, hi - lo)
    return (centres[label] + rng.normal(size=(hi - lo, d))).astype(np.float32), label


def write_rows(path: Path, n: int, d: int) -> None:
    """The same objects in a file, block by block."""
    if path.exists():
        return
    with path.open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, d)}
        np.lib.format.write_array_header_1_0(file, header)
        for lo in range(0, n, 1 << 20):
            file.write(rows(lo, min(lo + (1 << 20), n), d)[0].tobytes())


@dataclass(frozen=True)
class Made:
    """The same objects as a `RowReader`: made when they are read."""

    shape: tuple[int, int]
    step: int = 1 << 20

    @property
    def dtype(self) -> np.dtype:
        return np.dtype("f4")

    def read(self, lo: int, hi: int) -> np.ndarray:
        n, d = self.shape
        first = lo - lo % self.step
        parts = [rows(at, min(at + self.step, n), d)[0] for at in range(first, hi, self.step)]
        return np.concatenate(parts)[lo - first : hi - first]


class Peaks:
    """The largest resident set of some processes, looked at from a thread."""

    def __init__(self, processes: dict[str, psutil.Process]):
        self.peak = dict.fromkeys(processes, 0)
        self._processes = processes
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._stop.wait(0.1):
            for name, process in self._processes.items():
                try:
                    size = process.memory_info().rss
                except psutil.NoSuchProcess:
                    continue
                self.peak[name] = max(self.peak[name], size)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def workers(count: int, limit: str | int, threads: int = 1) -> Iterator[Client]:
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(
            n_workers=count, threads_per_worker=threads, processes=True, host="127.0.0.1",
            dashboard_address="127.0.0.1:0", local_directory=folder, memory_limit=limit,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        client.wait_for_workers(count)
        yield client


def pids(client: Client) -> dict[str, psutil.Process]:
    found = client.run(os.getpid).values()
    return {f"worker {i}": psutil.Process(pid) for i, pid in enumerate(found)}


def digest(model: EVCLUS) -> str:
    """SHA-256 of the masses, block by block."""
    sha = hashlib.sha256()
    mass = model.credal_partition_.mass
    for lo in range(0, mass.shape[0], 1 << 18):
        block = mass[lo : lo + (1 << 18)]
        sha.update(np.ascontiguousarray(block.compute() if hasattr(block, "compute") else block))
    return sha.hexdigest()[:16]


def model(limit: int | None = None, **options: Any) -> EVCLUS:
    known = {"d0": "q0.9", "random_state": 0, "partitions": "always", "memory_limit": limit}
    return EVCLUS(CENTRES, **{"metric": "euclidean", **known, **options})


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


# ---------------------------------------------------------------------- what is measured
def scaling(args: argparse.Namespace) -> None:
    """Memory and bytes received per worker: at fixed n, and at fixed n per worker.

    Memory is beyond that of the same worker before the fit, with all libraries loaded. The second
    sweep receives what a whole sweep has moved; the first lacks what its own second half moves.
    `bound` is 4 (n / workers) rows: every partner owned by others.
    """
    seen: list[int] = []
    sweep = OwnersExecutor.sweep

    def watched(self: OwnersExecutor, *skip: Any) -> float:
        change = sweep(self, *skip)
        seen.append(max(self.received.values()))
        outside.append(max(len(needed) for needed in self._needs.values()))
        return change

    outside: list[int] = []
    OwnersExecutor.sweep = watched  # type: ignore[method-assign]
    d = int(args.features)
    print("| workers | n, partitions | at rest | beyond it: sweeps | all stages | partners outside "
          "| received in a sweep | bound | masses |\n" + 9 * "|---" + "|")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("fixed n", "fixed n per worker"):
            for count in args.counts:
                share = 16 if kind == "fixed n" else count
                if kind != "fixed n" and count == 16:
                    continue  # the same as before
                n, parts = int(args.objects) * share // 16, (args.partitions or 64) * share // 16
                path = Path(folder) / f"{n}.npy"
                write_rows(path, n, d)
                seen.clear(), outside.clear()
                with workers(count, int(args.limit)) as client:
                    client.run(_warm)
                    rest = {name: p.memory_info().rss for name, p in pids(client).items()}
                    top = dict(rest)
                    with Peaks(pids(client)) as peaks:

                        def sweeping(p: Any, peaks: Peaks = peaks, top: dict = top) -> None:
                            if p.stage == "fit" and p.sweep == 1:
                                top.update(peaks.peak)
                                peaks.peak.update(dict.fromkeys(peaks.peak, 0))

                        fitted = model(
                            max_iter=4, tol=1e-9, partitions=parts, callbacks=[sweeping]
                        ).fit(str(path), client=client)
                    sweeps = max(peaks.peak[name] - rest[name] for name in rest)
                    whole = max(max(top[x], peaks.peak[x]) - rest[x] for x in rest)
                    row = 4 * (CENTRES + 3)
                    print(
                        f"| {count} | {n:,}, {parts} | {megabytes(max(rest.values()))} "
                        f"| {megabytes(sweeps)} | {megabytes(whole)} | {outside[0]} "
                        f"| {seen[1] / 1e6:,.2f} MB | {4 * n / count * row / 1e6:,.2f} MB "
                        f"| {digest(fitted)} |", flush=True,
                    )  # fmt: skip


def _warm() -> None:
    """Load and compile what a fit uses, so that what is left is data."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = {"random_state": 0, "partitions": 2, "n_jobs": 1, "max_iter": 2}
        EVCLUS(2, metric="euclidean", d0=1.0, **fit).fit(rows(0, 400, 3)[0])
    give_back()


def large(args: argparse.Namespace) -> None:
    """Data beyond the memory of any process: workers with a limit, or one process with one."""
    n, d, limit = int(args.objects), int(args.features), int(args.limit)
    folder = Path(args.folder or tempfile.mkdtemp(prefix="evdist-bench-"))
    path = folder / f"rows-{n}-{d}.npy"
    X: Any = Made((n, d))
    if not args.made:
        write_rows(path, n, d)
        X = str(path)
    print(f"{n:,} x {d}, {megabytes(4 * n * d)}, k = {args.pairs}", flush=True)
    options = {
        "checkpoint": folder / f"fit-{args.workers}", "n_dissimilarities": int(args.pairs),
        "tol": args.tol, "max_iter": int(args.max_iter), "callbacks": [_told(time.time())],
        "device": args.device, "partitions": args.partitions or "always",
    }  # fmt: skip
    me = {"this process": psutil.Process()}
    began = time.time()
    if args.workers == 0:
        with Peaks(me) as peaks:
            fitted = model(limit, **options).fit(X)
    else:
        with (
            workers(args.workers, limit, args.threads) as client,
            Peaks({**me, **pids(client)}) as peaks,
        ):
            fitted = model(**options).fit(X, client=client)
    seconds = time.time() - began
    top = ", ".join(f"{name} {megabytes(size)}" for name, size in peaks.peak.items())
    print(
        f"{seconds:.0f} s, {fitted.n_iter_} sweeps, objective {fitted.objective_!r}, peaks: {top}"
    )
    first = 1 << 20
    label = fitted.labels_[:first]
    label = label.compute() if hasattr(label, "compute") else label
    score = adjusted_rand_score(rows(0, min(first, n), d)[1], label)
    print(f"masses {digest(fitted)}, ARI of the first {first:,} objects {score:.4f}")


def _told(began: float) -> Any:
    def tell(p: Any) -> None:
        size = megabytes(psutil.Process().memory_info().rss)
        seconds = time.time() - began
        print(f"  {seconds:6.0f} s  {p.stage} {p.sweep} {p.objective or ''} {size}", flush=True)

    return tell


def dask(args: argparse.Namespace) -> None:
    """A Dask array on two workers; what the client's process takes."""
    import dask.array as da

    n, d = int(args.objects), int(args.features)
    step = 1 << 18
    parts = [
        da.from_delayed(_delayed_rows(lo, min(lo + step, n), d), (min(step, n - lo), d), "f4")
        for lo in range(0, n, step)
    ]
    with workers(2, int(args.limit)) as client:
        with Peaks({"client": psutil.Process(), **pids(client)}) as peaks:
            began = time.time()
            fitted = model(partitions="auto", tol=args.tol, max_iter=int(args.max_iter)).fit(
                da.concatenate(parts), client=client
            )
            seconds = time.time() - began
            with client.as_current():
                counts = da.bincount(fitted.labels_, minlength=CENTRES).compute()
        top = ", ".join(f"{name} {megabytes(size)}" for name, size in peaks.peak.items())
        print(f"{n:,} x {d}: {seconds:.0f} s, {fitted.n_iter_} sweeps, {top}, labels {counts}")


def _delayed_rows(lo: int, hi: int, d: int) -> Any:
    from dask import delayed

    return delayed(_only_rows)(lo, hi, d)


def _only_rows(lo: int, hi: int, d: int) -> np.ndarray:
    return rows(lo, hi, d)[0]


def accuracy(args: argparse.Namespace) -> None:
    """Partitions against all objects in one place: the same data, d0 and start rules."""
    print("| data | seed | one place: ARI, objective | 8 partitions | 24 partitions |")
    print("|---|---|---|---|---|")
    for c, spread in ((4, 2.0), (10, 3.0), (10, 4.0)):
        from sklearn.datasets import make_blobs

        X, y = make_blobs(20_000, 10, centers=c, cluster_std=spread, random_state=c)
        for seed in range(3):
            cells = []
            for parts in ("never", 8, 24):
                m = EVCLUS(
                    c, metric="euclidean", d0="q0.5", random_state=seed, partitions=parts
                ).fit(X)
                cells.append(f"{adjusted_rand_score(y, m.labels_):.4f}, {m.objective_:.6f}")
            print(f"| c = {c}, spread {spread} | {seed} | {' | '.join(cells)} |", flush=True)


def real(args: argparse.Namespace) -> None:
    """Labelled sets of the data folder, in one place and in partitions: defaults, means."""
    scores = []
    for name, X, references, c in _labelled():
        found = []
        for parts in ("never", 4, 8):
            m = EVCLUS(c, metric="euclidean", random_state=0, partitions=parts).fit(X)
            found.append(score(np.asarray(m.labels_), references))
        scores.append(found)
        print(f"{name:24s} n {len(X):6,}, c {c:3d}: " + ", ".join(f"{a:.3f}" for a in found),
              flush=True)  # fmt: skip
    one, *others = np.mean(scores, axis=0)
    bounds = Bounds(width=52)
    bounds.head(f"mean adjusted Rand index of {len(scores)} sets, in one place {one:.4f}")
    for parts, mean in zip((4, 8), others, strict=True):
        bounds.at_least(f"{parts} partitions", float(mean), float(one) - 0.005)
    raise SystemExit(bounds.finish())


def _labelled() -> Iterator[tuple[str, np.ndarray, list[np.ndarray], int]]:
    for name in NAMES:
        data = load(name)
        if len(data.y) >= _LEAST and data.metric != "precomputed":
            y = np.unique(data.y, return_inverse=True)[1] + 1
            yield name, data.X, [y], data.n_clusters
    for name, X, references, c in problems(20_000, ""):
        if len(X) >= _LEAST:
            yield name, X, references, c


def speed(args: argparse.Namespace) -> None:
    """10^6 x 10, c = 10: two workers of one thread against one process of two threads."""
    rng = np.random.default_rng(0)
    X = rng.normal(scale=3.0, size=(10, 10))[rng.integers(0, 10, int(args.objects))]
    X = (X + rng.normal(size=X.shape)).astype(np.float32)
    seconds: dict[str, list[float]] = {"threads": [], "workers": []}
    settings = {"n_clusters": 10, "random_state": 0}
    with workers(2, int(args.limit)) as client:
        for turn in range(1 + args.repeats):  # the first compiles
            for place in ("threads", "workers"):
                began = time.perf_counter()
                if place == "threads":
                    fitted = EVCLUS(metric="euclidean", **settings, n_jobs=2).fit(X)
                else:
                    fitted = EVCLUS(metric="euclidean", **settings).fit(X, client=client)
                took = time.perf_counter() - began
                print(f"{place:8s} {took:6.1f} s, {fitted.n_iter_} sweeps", flush=True)
                if turn:
                    seconds[place].append(took)
    bounds = Bounds(width=52)
    one, two = (float(np.median(seconds[place])) for place in ("threads", "workers"))
    bounds.head(f"medians of {args.repeats}: two threads {one:.1f} s, two workers {two:.1f} s")
    bounds.at_most("two workers / two threads", two / one, 1.10)
    raise SystemExit(bounds.finish())


PARTS = {"scaling": scaling, "large": large, "dask": dask, "accuracy": accuracy, "real": real,
         "speed": speed}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=list(PARTS))
    parser.add_argument("--objects", type=float, default=1e6)
    parser.add_argument("--features", type=float, default=16)
    parser.add_argument("--pairs", type=float, default=100)
    parser.add_argument("--limit", type=float, default=2e9)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--counts", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--threads", type=int, default=1, help="of each worker")
    parser.add_argument("--partitions", type=int, help="how many, instead of the usual number")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--made", action="store_true")
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--max-iter", type=float, default=200)
    parser.add_argument("--folder")
    parser.add_argument("--repeats", type=int, default=7, help="of speed")
    args = parser.parse_args()
    PARTS[args.what](args)


if __name__ == "__main__":
    main()
