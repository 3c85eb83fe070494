"""The service under random faults: do all jobs end with the right bits, and is nothing left over?

    python benchmarks/chaos.py --minutes 20 --seed 0 [--jobs 20] [--at-once 3] [--every 5]
        [--prefect]

Starts a Dask scheduler, two workers and an S3 server on loopback, with --prefect a Prefect server
and worker, too. Clients, each a process with a clock of its own (up to an hour wrong), submit jobs
to object storage and to a small disk. Meanwhile a random process is killed or stopped, the network
to the scheduler, the storage or Prefect is cut, or the disk is filled, every few seconds; what was
killed is started again, as a supervisor would. A client that ends with an error submits again.
Every answer is compared bit for bit with a fit in this process; at the end processes, shares on
workers, reservations, drafts, leases and shared memory are counted, and the memory of the workers
is compared with that before the faults, each time after as many quiet jobs at once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import cloudpickle
import numpy as np
from bounds import Bounds

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import chaos_places  # noqa: E402
from chaos_places import (  # noqa: E402
    Disk,
    Storage,
    booked,
    resident,
    shared_memory_in_use,
    shares_held,
    small_disk,
    strays,
)
from fault_cluster import FaultCluster  # noqa: E402
from proxy import Proxy  # noqa: E402
from service.servers import end, prefect_server, wait_for  # noqa: E402

from evdist import EVCLUS, Client  # noqa: E402
from evdist.service.jobs import JobFolder  # noqa: E402
from evdist.stores.paths import children, join, read_bytes  # noqa: E402

cloudpickle.register_pickle_by_value(chaos_places)  # workers do not have it

#: A fit that lasts: it never meets its stopping rule.
FIT = {"n_clusters": 3, "n_dissimilarities": 20, "tol": 0.0, "max_iter": 40, "d0": "q0.5"}
#: Seconds without any end after which a job counts as hung: the deadlines of a run, added up.
DEADLINE = 600.0
#: Numbers of jobs from here on run in peace, before and after the faults.
QUIET = 1000
CLIENT = """
import json, sys, time
skew = float(sys.argv[1])
real = time.time
time.time = lambda: real() + skew
import numpy as np
from evdist import Client
storage, api, data, scheduler, given = sys.argv[2:]
job = Client(storage, api or None).submit(
    np.load(data), cluster={"kind": "scheduler", "address": scheduler}, **json.loads(given))
print(job.url, flush=True)
job.wait(bar=False, restarts=20)
"""


@dataclass
class One:
    """A job and what became of it."""

    number: int
    storage: str
    data: str
    mass: np.ndarray
    url: str = ""
    clients: int = 0
    errors: list[str] = field(default_factory=list)
    good: bool = False
    began: float = 0.0
    seconds: float = 0.0
    child: subprocess.Popen | None = None


def expected(folder: Path, seed: int) -> tuple[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 3)) + 4.0 * rng.integers(0, 3, (600, 1))
    path = folder / f"{seed}.npy"
    np.save(path, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mass = (
            EVCLUS(metric="euclidean", **FIT, random_state=seed, n_jobs=1)
            .fit(X)
            .credal_partition_.mass
        )
    return str(path), np.asarray(mass)


class Chaos:
    """The servers, the jobs and the faults."""

    def __init__(self, folder: Path, seed: int, at_once: int, every: float):
        self.folder, self.random, self.at_once = folder, random.Random(seed), at_once
        self.every = every
        self.faults: Counter[str] = Counter()
        self.mark = uuid.uuid4().hex
        os.environ["EVDIST_CHAOS"] = self.mark
        self.cluster = FaultCluster(folder / "dask")
        self.jobs: list[One] = []
        self.api = ""
        self.prefect: Proxy | None = None
        self._prefect_pid: Callable[[], int] = lambda: 0
        self.servers: dict[str, subprocess.Popen] = {}
        self.restart: dict[str, Callable[[], None]] = {}
        self._repairs: list[threading.Thread] = []
        self._busy: set[str] = set()

    # ------------------------------------------------------------------ servers
    def start(self, stack: ExitStack, prefect: bool) -> None:
        self.storage = Storage(self.folder)
        stack.callback(self.storage.close)
        self.storage.start()
        self.s3 = Proxy("127.0.0.1", self.storage.port)
        stack.callback(self.s3.cut)
        self.disk: Disk | None = stack.enter_context(small_disk(self.folder / "disk", 64))
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.s3.port}", "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_MAX_ATTEMPTS": "2", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        import s3fs

        s3fs.S3FileSystem().mkdir("chaos")
        stack.callback(self.cluster.close)
        self.cluster.start(2)
        self.network = Proxy("127.0.0.1", self.cluster.port)
        stack.callback(self.network.cut)
        if prefect:
            server = stack.enter_context(prefect_server(self.folder / "prefect"))
            self.prefect = Proxy("127.0.0.1", int(server.api_url.split(":")[2].split("/")[0]))
            stack.callback(self.prefect.cut)
            self.api = f"http://127.0.0.1:{self.prefect.port}/api"
            self.restart["prefect server"] = server.restart  # which kills it first
            self._prefect_pid = server.pid
            context = server.worker({})
            self.servers["prefect worker"] = context.__enter__()

            def again() -> None:
                nonlocal context
                context.__exit__(None, None, None)
                context = server.worker({})
                self.servers["prefect worker"] = context.__enter__()

            self.restart["prefect worker"] = again
            stack.callback(lambda: context.__exit__(None, None, None))

    # ------------------------------------------------------------------ jobs
    def submit(self, one: One) -> None:
        """A client process, with a clock of its own."""
        given = json.dumps({**FIT, "random_state": one.number})
        skew = self.random.choice([0.0, -3600.0, 90.0, 3600.0])
        scheduler = f"tcp://127.0.0.1:{self.network.port}"
        command = [sys.executable, "-c", CLIENT, str(skew), one.storage, self.api, one.data,
                   scheduler, given]  # fmt: skip
        log = (self.folder / f"client-{one.number}.log").open("ab")
        out = (self.folder / f"client-{one.number}.out").open("ab")
        one.child = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=log,
                                     start_new_session=True)  # fmt: skip
        log.close(), out.close()
        one.clients += 1
        one.began = one.began or time.monotonic()

    def look(self, one: One) -> None:
        """Whether the client has ended, and how; one that failed submits again."""
        if one.child is None or one.child.poll() is None:
            return
        said = (self.folder / f"client-{one.number}.out").read_text().split()
        one.url = said[-1] if said else one.url
        if one.child.returncode == 0:
            found = Client(one.storage, self.api or None).job(one.url).result()
            one.good = bool(np.array_equal(np.asarray(found.mass), one.mass))
            one.seconds = time.monotonic() - one.began
            one.child = None
            return
        if one.child.returncode > 0:
            lines = (self.folder / f"client-{one.number}.log").read_text().strip().splitlines()
            one.errors.append(lines[-1] if lines else "?")
        self.submit(one)

    def run(self, numbers: range, minutes: float) -> None:
        """Jobs, some at once, and faults until the time is over; then those that were begun end in
        peace, and no other begins. With 0 minutes all run in peace."""
        answers = {number: expected(self.folder, number) for number in numbers}
        calm = time.monotonic() + 60 * minutes
        waiting = list(numbers)
        next_fault = time.monotonic() + 10
        while True:
            under_way = [one for one in self.jobs if one.seconds == 0.0]
            if minutes and time.monotonic() > calm:
                waiting.clear()
            if not under_way and not waiting:
                break
            while waiting and len(under_way) < self.at_once:
                number = waiting.pop(0)
                data, mass = answers[number]
                place = "s3://chaos" if number % 2 else str(self.folder / "disk/storage")
                one = One(number, place, data, mass)
                self.jobs.append(one)
                under_way.append(one)
                self.submit(one)
            for one in under_way:
                with suppress(Exception):  # the storage may be away just now
                    self.look(one)
                if one.seconds:
                    print(f"job {one.number}: {one.seconds:.0f} s, good {one.good}, "
                          f"{one.clients} clients, {sum(self.faults.values())} faults so far",
                          flush=True)  # fmt: skip
                if time.monotonic() > max(one.began, calm) + DEADLINE:
                    raise TimeoutError(f"job {one.number} hangs: {one.url}")
            if time.monotonic() < calm and time.monotonic() > next_fault:
                self.fault(under_way)
                next_fault = time.monotonic() + self.every * self.random.uniform(0.4, 1.6)
            time.sleep(0.3)

    # ------------------------------------------------------------------ faults
    def fault(self, under_way: list[One]) -> None:
        kinds = ["kill job", "kill job", "kill client", "kill worker", "kill scheduler",
                 "stop worker", "stop scheduler", "stop job", "cut scheduler", "cut storage",
                 "stall storage", "kill storage", *(["fill disk"] if self.disk else []),
                 *(["kill prefect worker", "kill prefect server", "cut prefect"]
                   if self.api else [])]  # fmt: skip
        kind = self.random.choice(kinds)
        verb, what = kind.split(" ", 1)
        if what in self._busy or (what == "worker" and "scheduler" in self._busy):
            return
        if what.startswith("prefect") and any(one.startswith("prefect") for one in self._busy):
            return  # a worker does not start without its server
        done = getattr(self, f"_{verb}")(what, under_way)
        if done:
            self.faults[kind] += 1

    def _victim(self, what: str, under_way: list[One]) -> int | None:
        if what == "client":
            living = [one.child.pid for one in under_way if one.child is not None]
            return self.random.choice(living) if living else None
        if what == "job":
            return self._job_process(self.random.choice(under_way)) if under_way else None
        if what == "worker":
            living = [child.pid for child in self.cluster.workers if child.poll() is None]
            return self.random.choice(living) if living else None
        if what == "scheduler":
            assert self.cluster.scheduler is not None
            return self.cluster.scheduler.pid
        if what == "storage":
            assert self.storage.process is not None
            return self.storage.process.pid
        return self.servers[what].pid

    def _job_process(self, one: One) -> int | None:
        with suppress(Exception):
            said = (self.folder / f"client-{one.number}.out").read_text().split()
            folder = JobFolder.open(said[-1])
            pid = int((folder.progress() or {})["pid"])
            if self.mark in Path(f"/proc/{pid}/environ").read_text():
                return pid
        return None

    def _kill(self, what: str, under_way: list[One]) -> bool:
        if what == "prefect server":
            self._later(what, self.restart[what])
            return True
        pid = self._victim(what, under_way)
        if pid is None:
            return False
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        if what == "scheduler":
            self._later(what, lambda: self.cluster.replace_scheduler())
        elif what == "worker":
            self._later(what, self._new_worker)
        elif what == "storage":
            self._later(what, self.storage.again)
        elif what in self.restart:
            self._later(what, self.restart[what])
        return True

    def _new_worker(self) -> None:
        self.cluster.workers = [child for child in self.cluster.workers if child.poll() is None]
        while len(self.cluster.workers) < 2:
            self.cluster.start_worker()

    def _stop(self, what: str, under_way: list[One]) -> bool:
        pid = self._victim(what, under_way)
        if pid is None:
            return False
        seconds = self.random.uniform(3, 30)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)

        def go_on() -> None:
            time.sleep(seconds)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

        self._later(what, go_on)
        return True

    def _cut(self, what: str, under_way: list[One]) -> bool:
        networks = {"storage": self.s3, "prefect": self.prefect, "scheduler": self.network}
        network = networks[what]
        assert network is not None
        network.cut()
        self._mend(what, network)
        return True

    def _stall(self, what: str, under_way: list[One]) -> bool:
        self.s3.stall()
        self._mend(what, self.s3)
        return True

    def _fill(self, what: str, under_way: list[One]) -> bool:
        disk = self.disk
        assert disk is not None
        disk.fill()
        seconds = self.random.uniform(2, 12)

        def make_room() -> None:
            time.sleep(seconds)
            disk.make_room()

        self._later(what, make_room)
        return True

    def _mend(self, what: str, network: Proxy) -> None:
        seconds = self.random.uniform(2, 15)

        def mend() -> None:
            time.sleep(seconds)
            network.mend()

        self._later(what, mend)

    def _later(self, what: str, repair: Callable[[], None]) -> None:
        self._busy.add(what)

        def act() -> None:
            time.sleep(1.0)
            try:
                repair()
            finally:
                self._busy.discard(what)

        thread = threading.Thread(target=act, daemon=True)
        thread.start()
        self._repairs.append(thread)

    # ------------------------------------------------------------------ what is left
    def settle(self) -> None:
        for thread in self._repairs:
            thread.join(120)
        for network in (self.s3, self.network, self.prefect):
            if network is not None:
                network.mend()
        self._new_worker()

    def memory(self, first: int) -> list[int]:
        """Bytes of each worker after some quiet jobs at once, from the number `first` on."""
        from distributed import Client as Dask

        self.run(range(first, first + self.at_once), 0.0)
        with Dask(self.cluster.address, set_as_default=False, timeout=60) as client:
            wait_for("the workers", lambda: len(client.nthreads()) >= 2)
            time.sleep(2)  # shares are dropped
            return sorted(client.run(resident).values())

    def left_over(self) -> dict[str, int]:
        """Counted when all jobs have ended."""
        from distributed import Client as Dask

        with Dask(self.cluster.address, set_as_default=False, timeout=60) as client:
            wait_for("the workers", lambda: len(client.nthreads()) >= 2)
            time.sleep(2)
            shares = sum(client.run(shares_held).values())
            inside, queued = client.run_on_scheduler(booked)
        servers = [*self.cluster._all, self.storage.process]
        own = {child.pid for child in servers if child is not None} | {self._prefect_pid()}
        workers = {child.pid for child in self.servers.values()}
        processes = wait_until_none(lambda: strays(self.mark, own, workers), 60)
        for line in processes:
            print(f"  left: {line}")
        drafts = leases = 0
        for one in self.jobs:
            names = children(one.url)
            drafts += sum(name.endswith(".part") or name == "reserve" for name in names)
            if "lease" in names:
                last = sorted(children(join(one.url, "lease")))[-1]
                held = json.loads(read_bytes(join(one.url, f"lease/{last}")) or b"{}")
                leases += not held.get("released")
        return {
            "processes of jobs": len(processes), "shares on workers": shares,
            "reservations": inside + queued, "drafts and reserves": drafts, "leases held": leases,
        }  # fmt: skip


def wait_until_none(look: Callable[[], list[str]], seconds: float) -> list[str]:
    """What is there when nothing is left, or the time is over: a process needs some to end."""
    late = time.monotonic() + seconds
    while (found := look()) and time.monotonic() < late:
        time.sleep(1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="of faults")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two faults")
    parser.add_argument("--prefect", action="store_true")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # servers end, too
    bounds = Bounds()
    memory = set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory(prefix="chaos-") as name, ExitStack() as stack:
        chaos = Chaos(Path(name), given.seed, given.at_once, given.every)
        chaos.start(stack, given.prefect)
        before = chaos.memory(QUIET)
        print(f"memory of the workers: {[round(size / 1e6) for size in before]} MB", flush=True)
        try:
            chaos.run(range(given.jobs), given.minutes)
        finally:  # also where it is ended early
            print(f"faults: {dict(sorted(chaos.faults.items()))}", flush=True)
        chaos.settle()
        after = chaos.memory(QUIET + 100)
        print(f"memory of the workers: {[round(size / 1e6) for size in after]} MB", flush=True)
        jobs = [one for one in chaos.jobs if one.number < QUIET]
        bounds.head(f"{len(jobs)} jobs, {sum(chaos.faults.values())} faults")
        for kind, count in sorted(chaos.faults.items()):
            bounds.note(kind, count, digits=0)
        bounds.at_most("jobs without the right bits", sum(not one.good for one in chaos.jobs), 0)
        bounds.note("clients started", sum(one.clients for one in jobs), digits=0)
        bounds.note("longest job, s", max(one.seconds for one in jobs), digits=0)
        for what, count in chaos.left_over().items():
            bounds.at_most(what, count, 0)
        new = set(os.listdir("/dev/shm")) - memory - shared_memory_in_use()
        bounds.at_most("shared memory that no process holds", len(new), 0)
        bounds.note("memory of a worker before, MB", max(before) / 1e6, digits=0)
        bounds.note("largest after, MB", max(after) / 1e6, digits=0)
        bounds.at_most("largest after / before", max(after) / max(before), 1.05)
        if chaos.disk is None:
            print("  the disk was not filled: no right to mount a small one")
        told = Counter(text[:160] for one in chaos.jobs for text in one.errors)
        for text, count in told.most_common():
            print(f"  {count} x {text}")
        for one in chaos.jobs:
            if one.child is not None:
                end(one.child)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
