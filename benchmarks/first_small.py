"""The smaller faults of item 11, as questions that `first_faults.py` asks."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from first_faults import question
from first_questions import (
    FIT,
    SOURCE,
    bucket,
    cli,
    config,
    jobs,
    objects,
    prefect,
    there,
    told,
    waited,
)
from first_storage import posted

QUICK = {**FIT, "max_iter": 5}


@contextmanager
def small_disk(folder: Path, megabytes: int):
    """A file system of its own; None where this account may not mount one."""
    place = folder / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "evdist-faults", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@question(11, "the disk fills in a fit: is that what the person is told?", 150)
def full_disk(folder: Path) -> str:
    from evdist import Client

    with small_disk(folder, 3) as disk:
        if disk is None:
            return "could not be asked: no right to mount a file system"
        job = Client(disk / "storage").submit(objects(), **{**FIT, "max_iter": 100_000})
        waited(lambda: (job.folder.progress() or {}).get("stage") == "fit", 60)
        fill(disk)
        try:
            job.wait(60, bar=False)
            return "could not be asked: it ended well"
        except Exception as error:
            return "" if "disk is full" in str(error).lower() else told(error)


def fill(disk: Path) -> None:
    """To the last byte."""
    with suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@question(11, "a zarr store of 8 KB that claims 10^10 rows: refused at once?")
def claims_rows(folder: Path) -> str:
    import zarr

    url = str(folder / "a.zarr")
    zarr.create_array(url, shape=(10**10, 4), chunks=(10**6, 4), dtype="f8")
    given = ["--out", str(folder / "job"), "-c", "3", "--quiet"]
    try:
        ended = cli("cluster", url, *given, seconds=45)
    except subprocess.TimeoutExpired:
        return "it reads on after 45 s"
    return "" if "claims" in ended.stderr else ended.stderr.strip()[-160:]


@question(11, "60,000 links through Prefect: taken?", 300)
def many_links(folder: Path) -> str:
    from evdist import Client

    pairs = np.stack([np.arange(60_000), np.arange(60_000) + 1], axis=1)
    with prefect(folder) as server:
        try:
            job = Client(folder / "storage", server.api_url).submit(
                objects(60_001), must_link=pairs, **QUICK
            )
        except Exception as error:
            return told(error)
        with suppress(Exception):
            job.cancel()
        return ""


@question(11, "a fit of 20 s through Prefect: how many artifacts does it leave?", 300)
def artifacts(folder: Path) -> str:
    from evdist import Client

    with prefect(folder) as server:
        client = Client(folder / "storage", server.api_url)
        job = client.submit(objects(2000), **{**FIT, "max_iter": 100_000})
        waited(lambda: (job.folder.progress() or {}).get("stage") == "fit", 120)
        time.sleep(20)
        count = len(posted(f"{server.api_url}/artifacts/filter", {}))
        job.cancel()
        return "" if count <= 4 else f"{count} artifacts"


@question(11, "does a Prefect that does not answer hold up the sweeps?")
def prefect_outage(folder: Path) -> str:
    stages = import_module("flows.stages")
    module = stages if hasattr(stages, "update_progress_artifact") else import_module(
        "flows.artifacts"
    )  # fmt: skip
    stuck = threading.Event()
    for name in ("create_progress_artifact", "create_table_artifact", "update_progress_artifact"):
        setattr(module, name, lambda *words, **named: stuck.wait(4))
    for name in ("_SECONDS", "_LAST"):
        if hasattr(module, name):
            setattr(module, name, 0.05)
    progress = there("evdist.engine.progress", "evdist.solvers.news").Progress
    listen = stages.Artifacts(SimpleNamespace(fingerprint="f" * 64), "fit")
    began = time.monotonic()
    for sweep in range(1, 6):
        listen(progress("fit", sweep, 200, objective=1 / sweep, rows_per_second=9.0))
        time.sleep(0.1)
    took = time.monotonic() - began
    return "" if took < 5 else f"five sweeps waited for {took:.0f} s"


def ran(folder: Path):
    return jobs().run({**config(folder), "parameters": QUICK})


@question(11, "metrics.json is lost: told?")
def lost_metrics(folder: Path) -> str:
    result = ran(folder)
    (folder / "job/metrics.json").unlink()
    try:
        return f"its numbers are {result.metrics}"
    except Exception as error:
        return "" if "metrics.json" in str(error) else told(error)


@question(11, "`inspect` of a job with a broken chunk: told?")
def broken_chunk(folder: Path) -> str:
    ran(folder)
    (chunk,) = (folder / "job/masses.zarr").glob("**/c/0/0")
    content = bytearray(chunk.read_bytes())
    content[len(content) // 2] ^= 1
    chunk.write_bytes(content)
    ended = cli("inspect", str(folder / "job"))
    return "" if ended.returncode else "it says all is well"


@question(11, "`jobs()` of a bucket that is not there: told?")
def missing_bucket(folder: Path) -> str:
    from evdist import Client

    with bucket(folder):
        try:
            return f"jobs() gives {Client('s3://missing/jobs').jobs()}"
        except Exception as error:
            return "" if "bucket" in str(error) else told(error)


@question(11, "credentials in an address: refused and not repeated?")
def credentials(folder: Path) -> str:
    url = "https://user:SECRET@127.0.0.1:9/x.csv"
    ended = cli("cluster", url, "--out", str(folder / "job"), "-c", "3", "--quiet")
    kept = [path.name for path in (folder / "job").rglob("*.json") if "SECRET" in path.read_text()]
    said = "SECRET" in ended.stdout + ended.stderr
    return f"in {kept}{' and the message' if said else ''}" if kept or said else ""


@question(
    11, "a Prefect worker, as its page starts it, in a script's background: SIGTERM ends it?", 200
)
def worker_ends(folder: Path) -> str:
    # The shell lets such a process ignore SIGINT, by which Prefect passes SIGTERM on to itself.
    page = (SOURCE / "flows/README.md").read_text()
    plain = ["env", "--default-signal=INT"] if "env --default-signal=INT" in page else []
    command = [*plain, str(Path(sys.executable).parent / "prefect"), "worker", "start"]
    command += ["--pool", "evdist-process"]
    log = folder / "worker.log"
    with prefect(folder) as server:
        child = subprocess.Popen(
            command, stdout=log.open("wb"), stderr=subprocess.STDOUT, cwd=SOURCE,
            env={**os.environ, **server.env},
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )  # fmt: skip
        waited(lambda: b"started" in log.read_bytes(), 60)
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(30)
        return "" if child.poll() is not None else "it is there 30 s later"


# ---------------------------------------------------------------------- CSV as others write it
def clustered(folder: Path, name: str, text: str) -> dict | str:
    """What a job on that file says of it."""
    (folder / name).write_text(text)
    ended = cli("cluster", str(folder / name), "--out", str(folder / "job"), "-c", "2", "--json")
    if ended.returncode:
        return (ended.stderr or ended.stdout).strip()[-200:]
    about = json.loads((folder / "job/manifest.json").read_text())
    stage = about["stages"]["load"]["outputs"]
    return {"n": json.loads(ended.stdout)["n_objects"], "load": stage}


def lines(rows: np.ndarray, by: str = ",") -> str:
    return "".join(by.join(f"{value:.3f}" for value in row) + "\n" for row in rows)


def counted(found: dict | str, n: int, d: int) -> str:
    if isinstance(found, str):
        return found
    shape = (found["n"], found["load"].get("d", found["load"].get("n_features", d)))
    return "" if shape == (n, d) else f"{shape[0]} objects with {shape[1]} attributes"


@question(11, "CSV without a header: is row 0 an object?")
def csv_without_header(folder: Path) -> str:
    return counted(clustered(folder, "x.csv", lines(objects(50))), 50, 3)


@question(11, "CSV with the index that `to_csv()` writes: is it left out?")
def csv_with_index(folder: Path) -> str:
    text = pd.DataFrame(objects(50), columns=["a", "b", "c"]).to_csv()
    return counted(clustered(folder, "x.csv", text), 50, 3)


@question(11, "CSV with two columns of one name: told?")
def csv_with_twins(folder: Path) -> str:
    found = clustered(folder, "x.csv", "a,b,a\n" + lines(objects(50)))
    return "" if isinstance(found, str) and "two columns" in found else f"taken: {found}"[:160]


@question(11, "CSV with semicolons: read?")
def csv_with_semicolons(folder: Path) -> str:
    return counted(clustered(folder, "x.csv", "a;b;c\n" + lines(objects(50), ";")), 50, 3)


@question(11, "a file called X.CSV: read?")
def csv_in_capitals(folder: Path) -> str:
    return counted(clustered(folder, "X.CSV", "a,b,c\n" + lines(objects(50))), 50, 3)
