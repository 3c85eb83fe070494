"""The questions of items 6 to 10: clocks, storage, strangers' stores, the chart and Prefect."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import numpy as np
from first_faults import question
from first_questions import (
    FIT,
    SOURCE,
    bucket,
    cli,
    cluster,
    compared,
    config,
    jobs,
    objects,
    prefect,
    process_of,
    there,
    told,
    waited,
)


# ---------------------------------------------------------------------- 6: clocks
@question(6, "a client whose clock is 90 s ahead waits for a job: one flow run?", 300)
def clock_ahead(folder: Path) -> str:
    from evdist import Client

    with prefect(folder) as server:
        job = Client(folder / "storage", server.api_url).submit(
            objects(2000), **{**FIT, "max_iter": 100_000}
        )
        waited(lambda: (job.folder.progress() or {}).get("stage") == "fit", 120)
        time.sleep(3)
        real = time.time
        time.time = lambda: real() + 90.0
        with suppress(TimeoutError):
            job.wait(20, bar=False)
        time.time = real
        runs = flow_runs(server.api_url)
        job.cancel()
        return "" if len(runs) == 1 else f"{len(runs)} flow runs: {', '.join(runs)}"


def posted(url: str, values: dict) -> list[dict]:
    sent = urllib.request.Request(
        url, json.dumps(values).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(sent, timeout=20) as reply:
        return json.load(reply)


def flow_runs(api: str) -> list[str]:
    return [one["state"]["name"] for one in posted(f"{api}/flow_runs/filter", {})]


# ---------------------------------------------------------------------- 7 and 8: storage
@question(7, "two processes on one job in S3, six times: one works, one is refused?", 300)
def two_processes(folder: Path) -> str:
    with bucket(folder) as (url, _):
        wrong = []
        for trial in range(6):
            given = {**config(folder, "x"), "folder": f"{url}/{trial}"}
            both = [process_of(given) for _ in range(2)]
            words = [one.communicate(timeout=120)[1].strip() for one in both]
            last = [text.splitlines()[-1] for text in words if text]
            codes = [one.returncode for one in both]
            good = 0 in codes and all(
                code == 0 or "Another process is running" in text
                for code, text in zip(codes, words, strict=True)
            )
            if not good:
                wrong.append(last[-1][:120] if last else str(codes))
        return f"{len(wrong)} of 6 trials failed: {wrong[-1]}" if wrong else ""


@question(7, "the storage is away for 30 s in a fit: the same bits?", 150)
def outage(folder: Path) -> str:
    with bucket(folder) as (url, network):
        cut: list[float] = []

        def listen(news) -> None:
            if news.stage == "fit" and not cut:
                cut.append(time.monotonic())
                network.cut()
                threading.Timer(30.0, network.mend).start()
            time.sleep(0.1)

        given = {**config(folder, "x"), "folder": f"{url}/job"}
        try:
            result = jobs().run(given, through="fit", listen=[listen])
        except Exception as error:
            waited(lambda: time.monotonic() - cut[0] > 31, 40)
            state = jobs().JobFolder.open(f"{url}/job").state
            return f"{told(error)}; the manifest says {state}"
        return compared(result, folder)


@question(8, "a slow writer of the same data after the store is complete: right weights?")
def late_writer(folder: Path) -> str:
    stores = there("evdist.data.dataset", "evdist.stores.dataset")
    import pandas as pd

    n = 40_000
    frame = pd.DataFrame({"a": np.arange(n) / 7, "w": np.arange(n) % 5 + 1.0})
    url = str(folder / "d.zarr")

    def table():
        return stores.Table(frame, ("a",), None, "w")

    contents = stores.read_contents(table())
    began, go = threading.Event(), threading.Event()
    fast: list[str] = []
    wrong: list[str] = []

    def first(rows: int) -> None:
        began.set()
        go.wait(10)

    def slow() -> None:
        try:
            stores.write_dataset(table(), url, contents, first)
        except Exception as error:
            wrong.append(told(error))

    def quick() -> None:
        try:
            stores.write_dataset(table(), url, contents)
        except Exception as error:
            fast.append(told(error))

    one = threading.Thread(target=slow, daemon=True)
    one.start()
    began.wait(30)
    other = threading.Thread(target=quick, daemon=True)
    other.start()
    other.join(5)  # a version with one writer at a time lets it wait
    complete = not other.is_alive() and not fast
    before = inode(folder) if complete else None
    go.set()
    one.join(30)
    other.join(30)
    if complete and inode(folder) != before:
        wrong.append("the weights of a complete store were written again")
    total = stores.Dataset.open(url).weight.sum()
    wrong += fast + ([] if total == 120_000 else [f"weights add up to {total}"])
    return "; ".join(wrong)


def inode(folder: Path) -> list[tuple[int, int]]:
    files = sorted((folder / "d.zarr/weight").rglob("*"))
    return [(path.stat().st_ino, path.stat().st_mtime_ns) for path in files if path.is_file()]


WRITER = """
import sys
sys.path[:0] = [sys.argv[2]]
import numpy as np, pandas as pd
from evdist import Client
n = 40_000
frame = pd.DataFrame({"a": np.arange(n) / 7, "w": np.arange(n) % 5 + 1.0})
frame["c"] = np.array(["x", "y"])[np.arange(n) % 2]
sys.stdin.readline()
print(Client(sys.argv[1]).upload(frame, columns=("a",), label="c", weight="w").weight.sum())
"""


@question(8, "equal uploads by six clients at once, three times: all right?", 200)
def equal_uploads(folder: Path) -> str:
    wrong = []
    for trial in range(3):
        command = [sys.executable, "-c", WRITER, str(folder / f"s{trial}"), str(SOURCE)]
        pipe = subprocess.PIPE
        clients = [
            subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            for _ in range(6)
        ]
        time.sleep(15 if trial == 0 else 8)  # all have loaded and wait for the word
        for one in clients:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        for one in clients:
            said, error = one.communicate(timeout=100)
            if said.strip() != "120000.0":
                wrong.append(said.strip() or error.strip().splitlines()[-1][:120])
    return f"{len(wrong)} of 18 clients: {wrong[0]}" if wrong else ""


# ---------------------------------------------------------------------- 9: strangers' stores
class Harm:
    """Unpickled, it makes a folder."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@question(9, "a zarr store with a pickle, read by numcodecs without its guard: does it run?")
def hostile_store(folder: Path) -> str:
    import numcodecs.pickles

    numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = True  # as every version before 0.16.6
    store = folder / "h.zarr"
    store.mkdir()
    chunk = pickle.dumps(np.array([[Harm(folder / "harm")]], object))
    (store / "0.0").write_bytes(chunk)
    about = {
        "zarr_format": 2, "shape": [1, 1], "chunks": [1, 1], "dtype": "|O", "compressor": None,
        "fill_value": None, "order": "C",
        "filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}],
    }  # fmt: skip
    (store / ".zarray").write_text(json.dumps(about))
    job = {**config(folder), "data": {"url": str(store)}}
    try:
        jobs().run(job, through="load" if "load" in _stages(job) else None)
        said = "it was read"
    except Exception as error:
        said = told(error)
    return f"code of the store was run ({said})" if (folder / "harm").exists() else ""


def _stages(job: dict) -> tuple[str, ...]:
    made = there("evdist.service.config", "evdist.config").JobConfig.of(job)
    return jobs().stages_of(made)


# ---------------------------------------------------------------------- 10: the chart, Prefect
@question(10, "the command of `helm test`, again, with a dead scheduler: does it fail?", 200)
def helm_test_again(folder: Path) -> str:
    text = (SOURCE / "helm/evdist/templates/tests/job.yaml").read_text()
    smoke = "evdist.service.jobs.smoke" in text

    def tried(address: str) -> subprocess.CompletedProcess[str]:
        given = config(folder, cluster={"kind": "scheduler", "address": address})
        (folder / "job.json").write_text(json.dumps(given))
        if not smoke:
            return cli("cluster", f"--config={folder / 'job.json'}", "--json", seconds=120)
        command = [sys.executable, "-m", "evdist.service.jobs.smoke", str(folder / "job.json")]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    with cluster(folder) as dask:
        address = dask.address
        first = tried(address)
        if first.returncode:
            return f"could not be asked: {first.stderr[-200:]}"
    second = tried(address)
    return "" if second.returncode else "it passes although no scheduler is there"


@question(10, "can `evdist submit` name the chart's deployment?")
def deployment_of_the_chart(folder: Path) -> str:
    # An option that is not known is told as such; one that is known meets a dead server.
    np.save(folder / "x.npy", objects())
    ended = cli(
        "submit", str(folder / "x.npy"), "-c", "3", "--storage", str(folder / "s"),
        "--api-url", "http://127.0.0.1:9/api", "--deployment", "cluster/evdist-k8s", seconds=100,
    )  # fmt: skip
    said = " ".join((ended.stderr + ended.stdout).split())
    return "evdist submit: No such option: --deployment" if "No such option" in said else ""


@question(10, "the older of two flow runs was deleted: does `resume` go on?", 400)
def deleted_runs(folder: Path) -> str:
    from evdist import Client

    with prefect(folder) as server:
        api = server.api_url
        job = Client(folder / "storage", api).submit(objects(), **{**FIT, "max_iter": 100_000})
        for again in (True, False):
            fits = waited(lambda: (job.folder.progress() or {}).get("stage") == "fit", 120)
            job.cancel()
            if not fits or not waited(lambda: job.folder.state == "cancelled", 60):
                return "could not be asked: the cancel was not carried out"
            waited(lambda: set(flow_runs(api)) <= {"Cancelled", "Failed", "Completed"}, 60)
            if again:
                job.resume()
                waited(lambda: job.folder.state == "running", 60)
        runs = sorted(posted(f"{api}/flow_runs/filter", {}), key=lambda one: one["created"])
        sent = urllib.request.Request(f"{api}/flow_runs/{runs[0]['id']}", method="DELETE")
        urllib.request.urlopen(sent, timeout=20).close()
        try:
            job.resume()
        except Exception as error:
            return told(error)
        on = waited(lambda: job.folder.state == "running", 40)
        job.cancel()
        return "" if on else f"no new flow run; there is {flow_runs(api)}"


@question(10, "does an adaptive cluster grow for a fit that asks for three workers?", 150)
def adaptive_cluster(folder: Path) -> str:
    import dask
    from distributed import Client, LocalCluster

    durations = "distributed.scheduler.default-task-durations.evdist-place"
    with (
        dask.config.set({durations: "60s"}),
        LocalCluster(n_workers=1, threads_per_worker=1,
                     dashboard_address="127.0.0.1:0") as found,
        Client(found, set_as_default=False) as client,
    ):  # fmt: skip
        found.adapt(minimum=1, maximum=3, interval="100ms", wait_count=1000)
        most = [1]

        def listen(news) -> None:
            most[0] = max(most[0], len(client.scheduler_info(n_workers=-1)["workers"]))

        where = {"kind": "scheduler", "address": found.scheduler_address}
        try:
            given = config(folder, cluster={**where, "n_workers": 3})
            jobs().run(given, through="fit", listen=[listen])
        except Exception as error:
            with suppress(Exception):  # a version that cannot be asked for workers
                jobs().run(config(folder, cluster=where), through="fit", listen=[listen])
            return f"{most[0]} worker; {told(error)}" if most[0] < 3 else ""
        return "" if most[0] == 3 else f"{most[0]} worker"
