"""What `make test-cluster` looks at, on the trial cluster that is up: ``check.py [NAME...]``.

Without names: all of CHECKS. Each line of the tables at the end is something that was done to the
cluster, what was seen, and how long it took. ``check.py fault NAME...`` runs single faults,
``check.py alert CAUSE...`` single causes of alerts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from adaptive import operator
from alerts import alerts
from cluster import kubectl, say
from faults import faults
from trial import (
    BIG,
    NAMESPACE,
    RELEASE,
    Submitted,
    extra_pod,
    forwarded,
    helm,
    install,
    local,
    ready,
)
from volume import volume


def smoke() -> str:
    """`helm test` passes, and fails while the scheduler is down."""
    began = time.monotonic()
    helm("test", RELEASE, "--timeout", "8m")
    passed = time.monotonic() - began
    kubectl("-n", NAMESPACE, "scale", "deployment/evdist-scheduler", "--replicas=0")
    try:
        began = time.monotonic()
        try:
            helm("test", RELEASE, "--timeout", "6m")
        except SystemExit:
            failed = time.monotonic() - began
        else:
            raise SystemExit("helm test passed without a scheduler")
    finally:
        kubectl("-n", NAMESPACE, "scale", "deployment/evdist-scheduler", "--replicas=1")
        ready("scheduler")
    return f"passed after {passed:.0f} s; without the scheduler it failed after {failed:.0f} s"


def job() -> str:
    """200,000 x 10, c = 10: client, Prefect, a Job of Kubernetes, Dask's workers; a local fit."""
    with forwarded():
        return f"{Submitted(*BIG).end()}; masses {local(*BIG)[:16]}..."


#: Algorithm, or what is asked of it -> a small job.
OTHERS: dict[str, tuple[int, int, int, int, dict[str, Any]]] = {
    "EVCLUS": (2000, 4, 3, 3, {}),
    "predict": (2000, 4, 3, 3, {"new": 500}),
    "ECM": (2000, 4, 3, 3, {"algorithm": "ECM"}),
    "Bootclus": (2000, 4, 3, 3, {"algorithm": "Bootclus", "n_bootstrap": 20}),
    # A shard for each worker, as on the cluster.
    "NN-EVCLUS": (2000, 4, 3, 4, {"algorithm": "NNEVCLUS", "max_iter": 5, "n_init": 1,
                                  "n_shards": 2, "batch_size": 200}),
}  # fmt: skip


def others() -> str:
    """Small jobs of other kinds; NN-EVCLUS with and without a policy that lets ranks meet."""
    with forwarded():
        told = [f"{name}: {_other(*what)}" for name, what in OTHERS.items()]
        install(("--set", "networkPolicy.ranks=true"))
        n, d, c, seed, given = OTHERS["NN-EVCLUS"]
        told.append(f"NN-EVCLUS, ranks let in: {_other(n, d, c, seed + 1, given)}")
        install()
    if ["one worker" in one for one in told] != ["NN-EVCLUS: " in one for one in told]:
        raise SystemExit(f"Ranks must stay with one worker where they are not let in: {told}")
    return "; ".join(told)


def _other(*what: Any) -> str:
    job = Submitted(*what)
    said = job.end()
    return f"{said}, by one worker" if "one worker does the work" in job.warnings() else said


# ---------------------------------------------------------------------- network policies
_TRY = """
import socket, sys
from concurrent.futures import ThreadPoolExecutor

def met(place):
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=4).close()
        return f"{place} open"
    except ConnectionRefusedError:
        return f"{place} closed"
    except OSError as error:
        return f"{place} refused"

with ThreadPoolExecutor(16) as pool:
    print(*pool.map(met, sys.argv[1:]), sep="\\n")
"""
#: Ports that anything in the release listens on.
PORTS = (8786, 8787, 8788, 8789, 8790, 4200, 8080)


def _stranger(name: str, namespace: str, labels: dict[str, str], places: list[str]) -> list[str]:
    """What a pod of our image with these labels meets at each place."""
    sleeps = "import time\ntime.sleep(3600)"
    with extra_pod(name, namespace, labels, sleeps) as run:
        return run("/opt/evdist/bin/python", "-c", _TRY, *places).strip().splitlines()


def policies() -> str:
    """A foreign pod is refused at every port; the same pod with the right label is let in."""
    items = json.loads(kubectl("-n", NAMESPACE, "get", "pods,services", "-o", "json"))["items"]
    hosts = {
        one["status"].get("podIP") or one["spec"].get("clusterIP")
        for one in items
        if one["kind"] == "Service" or one["status"].get("phase") == "Running"
    } - {None, "None"}
    places = [f"{host}:{port}" for host in sorted(hosts) for port in PORTS]
    worker = {"app.kubernetes.io/instance": RELEASE, "app.kubernetes.io/component": "worker"}
    told = []
    for name, namespace, labels in (
        ("another-namespace", "default", {}),
        ("another-namespace-our-labels", "default", worker),
        ("without-labels", NAMESPACE, {}),
        ("another-release", NAMESPACE, {**worker, "app.kubernetes.io/instance": "other"}),
        ("a-worker", NAMESPACE, worker),
    ):
        found = _stranger(name, namespace, labels, places)
        count = {kind: sum(line.endswith(kind) for line in found)
                 for kind in ("open", "closed", "refused")}  # fmt: skip
        told.append(f"{name}: {count['open']} open, {count['refused']} refused by policy, "
                    f"{count['closed']} closed, of {len(places)}")  # fmt: skip
        if (name == "a-worker") is (count["open"] == 0):
            raise SystemExit(f"policies do not hold: {told}\n" + "\n".join(found))
    return "; ".join(told)


CHECKS: dict[str, Callable[[], str]] = {
    "install": install,
    "smoke": smoke,
    "job": job,
    "others": others,
    "policies": policies,
    "alerts": alerts,
    "volume": volume,
    "operator": operator,
    "faults": faults,
}


def main(names: list[str]) -> int:
    bad = 0
    if names[:1] in (["fault"], ["alert"]):
        found = {"fault": faults, "alert": alerts}[names[0]](*names[1:])
        say(found)
        return int("FAILED" in found or "OTHER BITS" in found)
    for name in names or CHECKS:
        began = time.monotonic()
        try:
            found = CHECKS[name]()
        except SystemExit as error:
            found = f"FAILED: {error}"
        bad += "FAILED" in found or "OTHER BITS" in found
        say(f"{name} ({time.monotonic() - began:.0f} s): {found}")
    say(f"{bad} of {len(names or CHECKS)} failed" if bad else "all passed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
