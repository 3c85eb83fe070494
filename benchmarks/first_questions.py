"""The questions that `first_faults.py` asks: one function each, for both layouts of the package."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

import numpy as np
from first_faults import question

SOURCE = Path(os.environ.get("FIRST_FAULTS_SOURCE", Path(__file__).resolve().parents[1]))
#: A fit that lasts: it never meets its stopping rule.
FIT = {"n_clusters": 3, "n_dissimilarities": 12, "d0": 5.0, "init": "random", "tol": 0.0,
       "max_iter": 30, "random_state": 1}  # fmt: skip


# ---------------------------------------------------------------------- both layouts
def there(*names: str):
    """The first of some modules, by what version there is."""
    for name in names:
        with suppress(ModuleNotFoundError):
            return import_module(name)
    raise ModuleNotFoundError(" or ".join(names))


def jobs():
    return there("evdist.service.jobs", "evdist.jobs")


def cli(*words: str, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
    name = there("evdist.service.cli", "evdist.cli").__name__
    program = f"import sys; from {name} import main; sys.exit(main())"
    command = [sys.executable, "-c", program, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


def cluster(folder: Path, **options):
    """Dask's scheduler and workers, which run the code of the checkout that is asked."""
    import fault_cluster

    fault_cluster.ROOT = SOURCE
    fault_cluster.PRELOAD = there(
        "evdist.service.monitor.scheduler", "evdist.monitor.scheduler"
    ).__name__
    return fault_cluster.fault_cluster(folder / "cluster", **options)


@contextmanager
def bucket(folder: Path):
    """An S3 server behind a network that can be cut."""
    from proxy import Proxy
    from service.servers import answers, free_port, process, wait_for

    port = free_port()
    command = [str(Path(sys.executable).parent / "moto_server"), "-H", "127.0.0.1", "-p", str(port)]
    with process(command, folder / "s3.log") as server:
        wait_for("S3", lambda: answers(f"http://127.0.0.1:{port}/moto-api/"), process=server)
        network = Proxy("127.0.0.1", port)
        os.environ |= {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{network.port}", "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1",
        }  # fmt: skip
        import s3fs

        s3fs.S3FileSystem().mkdir("faults")
        yield "s3://faults", network


@contextmanager
def prefect(folder: Path):
    """A Prefect server with the flows of the checkout, and a worker."""
    from service import servers

    servers.ROOT = SOURCE
    with servers.prefect_server(folder / "prefect") as server, server.worker({}):
        yield server


def objects(n: int = 600) -> np.ndarray:
    rng = np.random.default_rng(6)
    return rng.normal(size=(n, 3)) + 4.0 * rng.integers(0, 3, (n, 1))


def config(folder: Path, name: str = "job", X: np.ndarray | None = None, **more) -> dict:
    np.save(folder / f"{name}.npy", objects() if X is None else X)
    return {
        "folder": str(folder / name), "data": {"url": str(folder / f"{name}.npy")},
        "parameters": FIT, "cluster": {"threads": 1}, **more,
    }  # fmt: skip


def right(folder: Path) -> np.ndarray:
    from evdist import EVCLUS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(EVCLUS(**FIT, n_jobs=1).fit(objects()).credal_partition_.mass)


def compared(result, folder: Path) -> str:
    same = np.array_equal(np.asarray(result.partition.mass), right(folder))
    return "" if same else "other masses than those of a fit in one process"


class At:
    """A listener that calls `act` at a sweep of the fit, once."""

    def __init__(self, sweep: int, act):
        self.sweep, self.act, self.done = sweep, act, False

    def __call__(self, news) -> None:
        if news.stage == "fit" and news.sweep >= self.sweep and not self.done:
            self.done = True
            self.act()


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"


def waited(look, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if look():
            return True
        time.sleep(0.2)
    return False


def warm_up(folder: Path) -> str:
    """Compile the kernels, which are kept: no question waits for that."""
    right(folder)
    with cluster(folder) as dask:
        jobs().run(config(folder, cluster={"kind": "scheduler", "address": dask.address}))
    return ""


# ---------------------------------------------------------------------- 1 to 3: Dask
PROGRAM = """
import json, sys, threading
sys.path[:0] = [sys.argv[2]]
from first_questions import jobs
try:
    jobs().run(json.loads(sys.argv[1]), through="fit")
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def process_of(given: dict) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, json.dumps(given), str(Path(__file__).parent)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


@question(1, "three jobs at once on workers with memory for one: do all end?", 330)
def jobs_at_once(folder: Path) -> str:
    X = np.random.default_rng(0).normal(size=(200_000, 10))
    with cluster(folder, memory_limit="700MiB") as dask:
        given = {"kind": "scheduler", "address": dask.address}
        fit = {"n_clusters": 5, "n_dissimilarities": 100, "d0": 5.0, "init": "random",
               "tol": 0.0, "max_iter": 2}  # fmt: skip
        children = [
            process_of(config(folder, f"job{seed}", X, cluster=given,
                              parameters={**fit, "random_state": seed}))
            for seed in range(3)
        ]  # fmt: skip
        end = time.monotonic() + 290
        wrong = []
        for number, child in enumerate(children):
            try:
                words = child.communicate(timeout=max(end - time.monotonic(), 1))[1]
                if child.returncode:
                    wrong.append(f"job {number}: {words.strip().splitlines()[-1][:120]}")
            except subprocess.TimeoutExpired:
                news = jobs().JobFolder.open(folder / f"job{number}").progress() or {}
                wrong.append(f"job {number} stands at {news.get('stage')!r} after 290 s")
                child.kill()
        return "; ".join(wrong)


@question(1, "a worker that is paused in a fit: an error that names it?", 90)
def paused_worker(folder: Path) -> str:
    from distributed import Client

    from evdist import EVCLUS

    os.environ["EVDIST_STALL_SECONDS"] = "4"

    def pause(dask_worker) -> None:
        from distributed.core import Status

        dask_worker.periodic_callbacks["memory_monitor"].stop()  # which would let it go on
        dask_worker.status = Status.paused

    with cluster(folder) as dask, Client(dask.address, set_as_default=False) as client:
        victim = min(client.scheduler_info(n_workers=-1)["workers"])
        fault = At(9, lambda: client.run(pause, workers=[victim]))
        ended: list[str] = []

        def fit() -> None:
            try:
                EVCLUS(**FIT, callbacks=[fault]).fit(objects(), client=client)
            except Exception as error:
                ended.append(told(error))

        thread = threading.Thread(target=fit, daemon=True)
        thread.start()
        thread.join(60)
        if thread.is_alive():
            return "the fit stands still, no error after 60 s"
        return "" if ended and victim in ended[0] else f"{ended}"


@question(2, "the scheduler is killed in a fit and replaced: the same bits?", 150)
def scheduler_replaced(folder: Path) -> str:
    with cluster(folder) as dask:
        others = threading.Thread(target=dask.replace_scheduler)

        def kill() -> None:
            dask.scheduler.kill()
            others.start()  # the fit meets a scheduler that is dead, not one that is new

        fault = At(9, kill)
        given = config(folder, cluster={"kind": "scheduler", "address": dask.address})
        try:
            result = jobs().run(given, through="fit", listen=[fault])
        except Exception as error:
            return told(error)
        finally:
            others.join(60)
        return compared(result, folder)


KILLED = """
import os, signal, sys
sys.path[:0] = [sys.argv[2]]
from first_questions import FIT, At, objects
from distributed import Client
from evdist import EVCLUS
def die():
    print("sweeps", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
EVCLUS(**FIT, callbacks=[At(5, die)]).fit(objects(20_000), client=Client(sys.argv[1]))
"""


def arrays_held() -> int:
    """Bytes of large arrays that something on this worker holds."""
    gc.collect()
    found = {}
    for one in gc.get_objects():
        for inner in gc.get_referents(one):
            if type(inner) is np.ndarray and inner.nbytes > 100_000 and inner.base is None:
                found[id(inner)] = inner.nbytes
    return sum(found.values())


@question(3, "a client is killed in a fit: do the workers drop its share?", 120)
def share_of_a_killed_client(folder: Path) -> str:
    import cloudpickle
    from distributed import Client

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # which workers do not have
    with cluster(folder) as dask, Client(dask.address, set_as_default=False) as client:
        before = sum(client.run(arrays_held).values())
        command = [sys.executable, "-c", KILLED, dask.address, str(Path(__file__).parent)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=80, check=False)
        if ended.stdout != "sweeps\n":
            return f"could not be asked: {ended.stderr[-200:]}"
        held = [0]

        def level() -> bool:
            held[0] = sum(client.run(arrays_held).values()) - before
            return held[0] <= 0

        waited(level, 25)
        return "" if held[0] <= 0 else f"{held[0] / 1e6:.1f} MB are held 25 s later"


# ---------------------------------------------------------------------- 4: cancel
@question(4, "the stop signal hits a lock and Prefect retries: is the cancel kept?")
def cancel_and_retry(folder: Path) -> str:
    stages = import_module("flows.stages")
    job = there("evdist.service.config", "evdist.config").JobConfig.of(config(folder))

    def hits_a_lock(news) -> None:
        if news.stage == "fit":
            jobs().JobFolder.open(folder / "job").ask_to_cancel()
            try:
                time.sleep(20)
            except KeyboardInterrupt as error:
                raise RuntimeError("cannot release un-acquired lock") from error

    heard: list[str] = []
    ends = []
    for listen in (hits_a_lock, lambda news: heard.append(news.stage)):
        stages.Artifacts = lambda *names, listen=listen: listen
        try:
            stages.stage.fn(job, "fit")
            ends.append("ended")
        except Exception as error:
            ends.append(type(error).__name__)
            if isinstance(error, jobs().JobCancelled) and listen is hits_a_lock:
                return ""  # Prefect does not retry a cancel
    return "" if ends[-1] == "JobCancelled" else f"the retry worked on: {ends}, {len(heard)} news"


IGNORES = """
import json, sys, threading
sys.path[:0] = [sys.argv[2]]
from first_questions import jobs
def listen(news):
    if news.stage == "fit":
        print("fit", flush=True)
        threading.Event().wait(100)
jobs().run(json.loads(sys.argv[1]), listen=[listen], through="fit")
"""


@question(4, "a cancel where SIGINT is ignored: does the run end?")
def cancel_without_sigint(folder: Path) -> str:
    command = [
        sys.executable, "-c", IGNORES, json.dumps(config(folder)), str(Path(__file__).parent)
    ]  # fmt: skip
    child = subprocess.Popen(
        command, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert child.stdout is not None
    child.stdout.readline()
    jobs().JobFolder.open(folder / "job").ask_to_cancel()
    try:
        child.wait(20)
    except subprocess.TimeoutExpired:
        return "it works on 20 s later"
    state = jobs().JobFolder.open(folder / "job").state
    return "" if state == "cancelled" else f"its state is {state}"


# ---------------------------------------------------------------------- 5: corrected calls
@question(5, "submitted with a wrong scheduler, then with the right one: does it run?", 120)
def corrected_submission(folder: Path) -> str:
    from evdist import Client

    client = Client(folder / "storage")
    wrong = {"kind": "scheduler", "address": "tcp://127.0.0.1:9"}
    with suppress(jobs().JobError):
        client.submit(objects(), cluster=wrong, **FIT).wait(60, bar=False)
    try:
        client.submit(objects(), cluster={"threads": 1}, **FIT).wait(60, bar=False)
    except Exception as error:
        return told(error)
    return ""


@question(5, "a command that failed to load, then the right one in the same folder?", 120)
def corrected_command(folder: Path) -> str:
    np.save(folder / "x.npy", objects())
    where = ["--out", str(folder / "job"), "-c", "3", "--quiet"]
    cli("cluster", str(folder / "no.npy"), *where)
    ended = cli("cluster", str(folder / "x.npy"), *where)
    return "" if ended.returncode == 0 else (ended.stderr or ended.stdout).strip()[-200:]
