"""Every alert of the chart, caused on the trial cluster, in a real Prometheus (prometheus.py).

An alert must not fire before its cause and must fire after it. An alert of the chart that nothing
here causes is a failure.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import prometheus
from cluster import kubectl, say, wait_for
from faults import kill, renew, stands_still
from trial import (
    LONG,
    NAMESPACE,
    RELEASE,
    Submitted,
    extra_pod,
    forwarded,
    prefect_answers,
    python,
    ready,
)

#: Seconds in which an alert must fire.
LIMIT = 420.0
Cause = Callable[[], AbstractContextManager[object]]
_RUN = {"app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/component": "run"}


@contextmanager
def _without(component: str, replicas: int = 1) -> Iterator[None]:
    """No pod of a component."""
    name = f"deployment/evdist-{component}"
    kubectl("-n", NAMESPACE, "scale", name, "--replicas=0")
    try:
        yield
    finally:
        kubectl("-n", NAMESPACE, "scale", name, f"--replicas={replicas}")
        ready(component)


#: A client of Dask, as a flow run is one.
_CLIENT = """
import sys, time
from distributed import Client
from distributed.security import Security
place = "/etc/evdist/tls/"
tls = Security(tls_ca_file=place + "ca.crt", tls_client_cert=place + "tls.crt",
               tls_client_key=place + "tls.key", require_encryption=True)
client = Client("tls://evdist-scheduler:8786", security=tls)
"""
_FILLED = (
    _CLIENT
    + """
def fill():
    import numpy, psutil
    from distributed import get_worker
    limit, taken = get_worker().memory_manager.memory_limit, psutil.Process().memory_info().rss
    # It pauses at 80 % and is killed at 95 %.
    get_worker().filled = numpy.ones(int(0.87 * limit) - taken, dtype="u1")
worker = sorted(client.nthreads())[0]
client.submit(fill, workers=[worker], pure=False).result()
time.sleep(3600)
"""
)
_TAKEN = (
    _CLIENT
    + """
from evdist.engine.admission import admitted
with admitted(client, 1 << 40):
    time.sleep(3600)
"""
)


@contextmanager
def _full_worker() -> Iterator[None]:
    """A worker holds almost as much memory as it may."""
    try:
        with extra_pod("filler", NAMESPACE, _RUN, _FILLED):
            yield
    finally:
        kubectl("-n", NAMESPACE, "rollout", "restart", "deployment/evdist-worker")
        ready("worker")


_SUBMITTED = """
import json, sys
import numpy as np
import evdist
X = np.random.default_rng(int(sys.argv[1])).normal(size=(int(sys.argv[2]), 3))
print(evdist.Client().submit(X, n_clusters=3, random_state=0, **json.loads(sys.argv[3])).id)
"""
_REMOVED = """
import sys, time
import evdist
job = evdist.Client().job(sys.argv[1]).cancel()
for _ in range(60):
    if str(job.status) not in ("queued", "running"):
        break
    time.sleep(1)
evdist.Client().delete(job.id)
"""


@contextmanager
def _submitted(seed: int, n: int = 2000, **parameters: object) -> Iterator[str]:
    """A job that nobody waits for."""
    prefect_answers()
    said = python(_SUBMITTED, str(seed), str(n), json.dumps(parameters)).communicate()[0].split()
    if not said or "-" not in said[-1]:
        raise SystemExit(f"not submitted: {' '.join(said)}")
    try:
        yield said[-1]
    finally:
        python(_REMOVED, said[-1]).wait()


@contextmanager
def _failing() -> Iterator[None]:
    """Two jobs that fail on the workers: these train by mini-batches only."""
    wrong = {"algorithm": "nnevclus", "batch_size": None}
    with _submitted(1, **wrong), _submitted(2, **wrong):
        yield


@contextmanager
def _waiting() -> Iterator[None]:
    """A job waits for memory that another one holds."""
    with extra_pod("holder", NAMESPACE, _RUN, _TAKEN):
        time.sleep(10.0)
        with _submitted(3):
            yield


@contextmanager
def _no_prefect_worker() -> Iterator[None]:
    """Nobody takes a job from the queue."""
    with _without("prefect-worker"), _submitted(4):
        yield


@contextmanager
def _crashing() -> Iterator[None]:
    """A flow run is killed; no client waits for the job."""
    n, _, _, _, given = LONG
    with _submitted(5, n, **{k: v for k, v in given.items() if k != "spread"}) as job:
        submitted = Submitted.known(job)
        submitted.sweeping()
        kill("run")(submitted)
        yield


@contextmanager
def _certificate() -> Iterator[None]:
    """The scheduler's certificate ends soon."""
    renew(5)
    try:
        ready("scheduler")
        yield
    finally:
        renew(90)
        ready("scheduler")
        ready("worker")


@contextmanager
def _keeper(patch: dict[str, object], *command: str) -> Iterator[None]:
    """The keeper with other settings, and a command in it."""
    name = "deployment/evdist-keeper"
    kubectl("-n", NAMESPACE, "patch", name, "--patch", json.dumps(patch))
    try:
        ready("keeper")
        if command:
            kubectl("-n", NAMESPACE, "exec", name, "--", *command)
        yield
    finally:
        kubectl("-n", NAMESPACE, "rollout", "undo", name)
        ready("keeper")


def _pod(container: dict[str, object], **spec: object) -> dict[str, object]:
    containers = [{"name": "keeper", **container}]
    return {"spec": {"template": {"spec": {"containers": containers, **spec}}}}


_QUOTA = _pod({"env": [{"name": "EVDIST_QUOTA", "value": "1k"}]})
#: A storage of 64 MB in memory, of which 60 are then taken.
_SMALL = _pod(
    {"env": [{"name": "EVDIST_STORAGE", "value": "/small"}],
     "volumeMounts": [{"name": "small", "mountPath": "/small"}]},
    volumes=[{"name": "small", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}}],
)  # fmt: skip
_FILL = ["/opt/evdist/bin/python", "-c", "open('/small/it', 'wb').write(bytes(60 << 20))"]

#: What is done, and the alerts that must then fire.
CAUSES: dict[str, tuple[Cause, tuple[str, ...]]] = {
    "no scheduler": (lambda: _without("scheduler"), ("EvdistSchedulerLost",)),
    "no Dask workers": (lambda: _without("worker", 2), ("EvdistNoWorkers",)),
    "a certificate of five days": (_certificate, ("EvdistCertificateEnds",)),
    "a worker's memory is full": (_full_worker, ("EvdistWorkersPaused",)),
    "two jobs that fail": (_failing, ("EvdistJobsFail",)),
    "the workers' memory is taken": (_waiting, ("EvdistJobsWait",)),
    "no Prefect server": (lambda: _without("prefect"), ("EvdistPrefectNotReady",)),
    "no Prefect worker": (_no_prefect_worker, ("EvdistNoPrefectWorker", "EvdistJobsQueued")),
    "a flow run is killed": (_crashing, ("EvdistRunsCrash",)),
    "the storage stands still": (lambda: stands_still("s3"), ("EvdistStorageNotReady",)),
    "a quota of one kilobyte": (lambda: _keeper(_QUOTA), ("EvdistQuota",)),
    "a small disk, almost full": (lambda: _keeper(_SMALL, *_FILL), ("EvdistDisk",)),
    "no keeper": (lambda: _without("keeper"), ("EvdistKeeperLost",)),
}


def alerts(*names: str) -> str:
    """Cause every alert of the chart, one after another, and see it fire."""
    told = []
    known = prometheus.up()
    uncaused = known - {alert for _, caused in CAUSES.values() for alert in caused}
    if uncaused:
        told.append(f"\n  FAILED: nothing causes {', '.join(sorted(uncaused))}")
    with forwarded():
        for name, (cause, wanted) in CAUSES.items():
            if names and name not in names:
                continue
            try:
                found = _caused(cause, wanted)
            except (SystemExit, OSError, AssertionError) as error:
                found = f"FAILED: {error}"
            say(f"{name}: {found}")
            told.append(f"\n  {name}: {found}")
    prometheus.down()
    return "".join(told)


def _caused(cause: Cause, wanted: tuple[str, ...]) -> str:
    # What the cause before has left must be over.
    wait_for(f"an end of {wanted}", lambda: not prometheus.firing() & set(wanted), 180.0)
    began = time.monotonic()
    with cause():
        caused = time.monotonic() - began
        found = []
        for alert in wanted:
            prometheus.fires(alert, LIMIT)
            found.append(f"{alert} after {time.monotonic() - began:.0f} s")
    return f"{', '.join(found)} ({caused:.0f} s of them to cause it)"
