"""A million objects through the client: what the service costs beside the sampling and the fit.

    python benchmarks/service_million.py [embedded] [prefect]

"embedded" runs the job in the background of this machine; "prefect" starts a Prefect server, a
worker, a Dask scheduler with two workers and an S3 server, all on loopback, and submits through
them. Bounds: everything but sample and fit at most 20 % of the fit; the client below 500 MB.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from bounds import Bounds

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

CLIENT = """
import json, resource, sys, time
import numpy as np
from evdist import Client

X = np.load(sys.argv[1], mmap_mode="r")
began = time.perf_counter()
client = Client(sys.argv[2], sys.argv[3] or None)
job = client.submit(X, n_clusters=10, random_state=0)
sent = time.perf_counter()
job.wait(bar=False)
done = time.perf_counter()
stages = {name: stage.seconds for name, stage in job.folder.stages.items()}
print(json.dumps({
    "submit": sent - began, "total": done - began, "stages": stages,
    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    "objects": job.metrics["n_objects"],
}))
"""


def million(path: Path) -> None:
    rng = np.random.default_rng(0)
    centres = rng.uniform(-10, 10, (10, 10))
    X = rng.normal(size=(1_000_000, 10)) + centres[rng.integers(0, 10, 1_000_000)]
    np.save(path, X.astype(np.float32))


def measure(bounds: Bounds, name: str, data: Path, storage: str, api_url: str = "") -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(data), storage, api_url],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    found = json.loads(done.stdout.splitlines()[-1])
    stages = found["stages"]
    rest = found["total"] - found["submit"] - sum(stages.values())
    bounds.head(f"{name}: {found['objects']:,} objects, seconds")
    for stage, seconds in {"submit": found["submit"], **stages}.items():
        bounds.note(stage, seconds)
    bounds.note("the rest", rest, "processes that start, news, waiting")
    bounds.note("from submit to done", found["total"])
    over = (found["total"] - stages["sample"] - stages["fit"]) / stages["fit"]
    bounds.at_most("all but sample and fit, by the fit", over, 0.20, digits=3)
    bounds.at_most("memory of the client, MB", found["memory"] / 1e6, 500, digits=0)


def main() -> int:
    bounds = Bounds()
    wanted = sys.argv[1:] or ["embedded", "prefect"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / "million.npy"
        million(data)
        if "embedded" in wanted:
            measure(bounds, "embedded", data, str(folder / "embedded"))
        if "prefect" in wanted:
            from service.servers import dask_cluster, prefect_server

            with (
                dask_cluster(folder) as dask,
                prefect_server(folder) as prefect,
                prefect.worker({"EVDIST_SCHEDULER": dask.address}),
            ):
                measure(bounds, "prefect", data, str(folder / "prefect"), prefect.api_url)
    return bounds.finish()


if __name__ == "__main__":
    sys.exit(main())
