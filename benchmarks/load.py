"""Many jobs at once: are all done, does any wait longer than its share, do the servers keep level?

    python benchmarks/load.py [--jobs 50] [--clients 5] [--objects 10000] [--workers 2] [--postgres]

Starts a Prefect server and worker, a Dask scheduler and workers on loopback. Clients, each a
process and a user, queue their jobs at once and wait for them. The memory of the servers is sampled
all the while.

Fair shares: jobs end when they end, but at each of these times the one that ends is a job of the
client that has had the fewest, among those that had one in the queue for at least as long as the
fastest job took. The wait of a client's k-th job, from when it was queued, is compared with its
wait under fair shares. (An earlier version compared the end of the k-th job of the whole queue
with the k-th end, counted from the first submission. That is the order of the queue, in which a
client that queues all its jobs first is served first, and the others starve; it remains as a figure
without a bound.) At half time, each client should have had its share of what was done.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import psutil
from bounds import Bounds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from service.postgres import postgres  # noqa: E402
from service.servers import dask_cluster, end, prefect_server  # noqa: E402

from evdist.service.jobs import JobFolder, JobState  # noqa: E402

CLIENT = """
import json, sys, time
import numpy as np
from evdist import Client
storage, api, user, first, last, objects, given = sys.argv[1:]
client = Client(storage, api, user=user)
jobs = []
for seed in range(int(first), int(last)):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(int(objects), 3)) + 4.0 * rng.integers(0, 3, (int(objects), 1))
    began = time.monotonic()
    jobs.append(client.submit(X, random_state=seed, **json.loads(given)))
    print(jobs[-1].url, time.monotonic() - began, flush=True)
for job in jobs:
    job.wait(bar=False)
"""
#: A fit of about two seconds: what is measured is the service.
FIT = {"n_clusters": 3, "n_dissimilarities": 10, "d0": "q0.5", "max_iter": 10}
#: Seconds between two looks at the memory.
_LOOK = 2.0


class Memory(threading.Thread):
    """Megabytes of processes with their children, by name, sampled until `stop`."""

    def __init__(self, watched: dict[str, list[int]]):
        super().__init__(daemon=True)
        self._watched, self._over = watched, threading.Event()
        self.seen: dict[str, list[tuple[float, float]]] = {name: [] for name in watched}

    def run(self) -> None:
        while not self._over.wait(_LOOK):
            for name, pids in self._watched.items():
                self.seen[name].append((time.time(), sum(map(_megabytes, pids))))

    def stop(self) -> None:
        self._over.set()
        self.join()

    def between(self, name: str, lo: float, hi: float) -> float:
        """The largest of a stretch of time."""
        return max(size for when, size in self.seen[name] if lo <= when <= hi)


def _megabytes(pid: int) -> float:
    total = 0
    with suppress(psutil.Error):
        root = psutil.Process(pid)
        for one in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                total += one.memory_info().rss
    return total / 1e6


def _named(*words: str) -> list[int]:
    """Children of this process that were started with these words."""
    return [
        one.pid for one in psutil.Process().children()
        if all(word in " ".join(one.cmdline()) for word in words)
    ]  # fmt: skip


def clients(
    folder: Path, api: str, given: argparse.Namespace
) -> tuple[list[list[str]], list[list[float]]]:
    """Addresses of the jobs of each client and the seconds of `submit`, when all have ended."""
    share, children = given.jobs // given.clients, []
    try:
        for number in range(given.clients):
            out = (folder / f"client-{number}.out").open("wb")
            log = (folder / f"client-{number}.log").open("wb")
            numbers = (number * share, (number + 1) * share, given.objects)
            children.append(
                subprocess.Popen(
                    [sys.executable, "-c", CLIENT, str(folder / "storage"), api, f"user-{number}",
                     *map(str, numbers), json.dumps(FIT)],
                    cwd=ROOT, stdout=out, stderr=log, start_new_session=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
                )
            )  # fmt: skip
            out.close(), log.close()
        late = time.monotonic() + 60 * given.minutes
        for number, child in enumerate(children):
            try:
                child.wait(max(late - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                print(f"client {number} was not done in {given.minutes} minutes")
                continue
            if child.returncode:
                print((folder / f"client-{number}.log").read_text()[-600:])
    finally:
        for child in children:
            end(child)
    told = [(folder / f"client-{n}.out").read_text().split() for n in range(given.clients)]
    return [words[::2] for words in told], [list(map(float, words[1::2])) for words in told]


def times(url: str) -> tuple[float, float, float]:
    """When a job was submitted, when it began and when it ended; infinite if it did not."""
    job = JobFolder.open(url)
    if job.state is not JobState.DONE:
        print(f"{url} is {job.state}: {job.error}")
        return job.created, np.inf, np.inf
    stages = sorted(job.stages.values(), key=lambda stage: stage.finished)
    return job.created, stages[0].finished - stages[0].seconds, stages[-1].finished


def fair_ends(queued: np.ndarray, ended: np.ndarray, who: np.ndarray) -> np.ndarray:
    """When each job would have ended under fair shares: see the module.

    There is always a job to choose: of the k jobs that ended first, each was queued early enough.
    """
    fastest = (ended - queued).min()
    left = {client: np.flatnonzero(who == client).tolist() for client in set(who.tolist())}
    had, found = dict.fromkeys(left, 0), np.empty_like(ended)
    for now in np.sort(ended):
        ready = [c for c, jobs in left.items() if jobs and queued[jobs[0]] + fastest <= now]
        client = min(ready, key=lambda c: (had[c], queued[left[c][0]]))
        had[client] += 1
        found[left[client].pop(0)] = now
    return found


def judge(bounds: Bounds, found: list[list[str]], given: argparse.Namespace) -> tuple[float, float]:
    """The table; when half of the jobs, and when all of them, were done."""
    table = [(*times(url), number) for number, urls in enumerate(found) for url in urls]
    table.sort()  # in the order of the queue
    queued, began, ended, who = (np.array(column) for column in zip(*table, strict=True))
    done = np.isfinite(ended)
    bounds.head(f"{given.jobs} jobs of {given.objects} objects, {given.clients} clients")
    bounds.at_most("jobs that are not done", given.jobs - int(done.sum()), 0)
    ended, began, queued, who = ended[done], began[done], queued[done], who[done]
    first, last, start = ended.min(), ended.max(), queued.min()
    due = first + np.arange(len(ended)) / max(len(ended) - 1, 1) * (last - first)
    bounds.note("limit of the worker", 4, digits=0)
    bounds.note("all queued after, s", queued.max() - start)
    bounds.note("all done after, s", last - start)
    bounds.note("seconds of one job, median", float(np.median(ended - began)))
    bounds.note(
        "most at the same time", max(int(((began <= t) & (ended > t)).sum()) for t in began)
    )
    mine = ended.copy()  # the k-th end of a client, whichever of its jobs that was
    for client in range(given.clients):
        mine[who == client] = np.sort(mine[who == client])
    waits, fair_waits = mine - queued, fair_ends(queued, ended, who) - queued
    bounds.note("wait of a job under fair shares, s, median", float(np.median(fair_waits)))
    bounds.at_most("wait / wait under fair shares, worst job", (waits / fair_waits).max(), 2)
    bounds.note(
        "end / end in the order of the queue, worst", ((ended - start) / (due - start)).max()
    )
    half = np.sort(ended)[(len(ended) - 1) // 2]
    by_client = [int((ended[who == n] <= half).sum()) for n in range(given.clients)]
    share = sum(by_client) / given.clients
    bounds.at_least("least done of a client at half time / its share", min(by_client) / share, 0.5)
    print(f"  done at half time by client: {by_client}")
    print(f"  clients in the order of the queue: {who.tolist()}")
    print(f"  clients in the order of the ends: {who[np.argsort(ended)].tolist()}")
    return float(half), float(last)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--clients", type=int, default=5)
    parser.add_argument("--objects", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--postgres", action="store_true", help="instead of SQLite")
    parser.add_argument("--minutes", type=float, default=15.0, help="given up after")
    given = parser.parse_args()
    bounds = Bounds(width=52)
    with tempfile.TemporaryDirectory(prefix="load-") as name, ExitStack() as stack:
        folder = Path(name)
        database = stack.enter_context(postgres()) if given.postgres else None
        dask = stack.enter_context(dask_cluster(folder, given.workers))
        prefect = stack.enter_context(prefect_server(folder / "prefect", database))
        stack.enter_context(
            prefect.worker({"EVDIST_SCHEDULER": dask.address, "OMP_NUM_THREADS": "1"})
        )
        memory = Memory({
            "Prefect server": _named("prefect", "server", "start"),
            "Dask scheduler": _named("dask", "scheduler"),
            "Dask workers": [worker.pid for worker in dask.workers],
        })  # fmt: skip
        memory.start()
        found, submits = clients(folder, prefect.api_url, given)
        memory.stop()
        half, last = judge(bounds, found, given)
        for number, seconds in enumerate(submits):
            print(f"  submit of client {number}, s: {[round(one, 1) for one in seconds]}")
        for server in memory.seen:
            then, now = memory.between(server, 0, half), memory.between(server, half, last)
            bounds.note(f"{server}, MB, up to half time", then)
            bounds.note(f"{server}, MB, after it", now)
            bounds.at_most(f"{server}, after / before", now / then, 1.1)
        print(json.dumps({name: [round(size) for _, size in seen[::15]]
                          for name, seen in memory.seen.items()}))  # fmt: skip
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
