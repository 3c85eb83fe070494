"""The Dask operator on the trial cluster: workers on demand, and faults among them.

The operator is that of the package dask-kubernetes, installed by the chart in it, and run from our
image, which has the package. The release is installed anew: its mode is no matter of an upgrade.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from cluster import BIN, NEWER, call, inside, kubectl, wait_for
from faults import kill
from trial import ENVIRONMENT, LONG, RELEASE, Submitted, forwarded, helm, install, pods

#: As `networkPolicy.operatorNamespace` of the chart.
OPERATOR = "dask-operator"
MOST = 3
_VALUES = (
    "--set", "dask.mode=operator,dask.workers.adaptive.enabled=true",
    "--set", f"dask.workers.adaptive.minimum=1,dask.workers.adaptive.maximum={MOST}",
)  # fmt: skip
_COMMAND = ["/opt/evdist/bin/kopf", "run", "-m", "dask_kubernetes.operator.controller"]


def _chart() -> Path:
    """The operator's chart."""
    found = find_spec("dask_kubernetes")
    if found is None or found.origin is None:
        raise SystemExit("The package dask-kubernetes must be installed: pip install evdist[k8s]")
    return Path(found.origin).parent / "operator/deployment/helm/dask-kubernetes-operator"


@contextmanager
def _operator() -> Iterator[None]:
    environment = f"KUBECONFIG={ENVIRONMENT['KUBECONFIG']}"
    run = inside("outside", "env", environment, BIN / "helm", "--namespace", OPERATOR)
    tmp = json.dumps([{"name": "tmp", "emptyDir": {}}])
    mount = json.dumps([{"name": "tmp", "mountPath": "/tmp"}])
    call(*run, "install", "operator", _chart(), "--create-namespace",
         "--set", f"image.name=evdist,image.tag={NEWER},image.pullPolicy=Never",
         "--set-json", f"volumes={tmp}", "--set-json", f"volumeMounts={mount}")  # fmt: skip
    name = "deployment/operator-dask-kubernetes-operator"
    # kopf asks for the name of its user: that of our image, not the chart's 1000.
    container = {"name": "dask-kubernetes-operator", "command": _COMMAND,
                 "securityContext": {"runAsUser": 10001}}  # fmt: skip
    patch = {"spec": {"template": {"spec": {"containers": [container]}}}}
    kubectl("-n", OPERATOR, "patch", name, "--patch", json.dumps(patch))
    try:
        kubectl("-n", OPERATOR, "rollout", "status", name, "--timeout=300s")
        yield
    finally:
        call(*run, "uninstall", "operator", "--wait")
        kubectl("delete", "-f", str(_chart() / "crds"), "--wait=true", "--timeout=120s")
        kubectl("delete", "namespace", OPERATOR)


def operator() -> str:
    """A job makes the operator start workers; one is killed; after the job they go."""
    helm("uninstall", RELEASE, "--wait", "--timeout", "5m")
    told = []
    try:
        with _operator():
            began = time.monotonic()
            install(_VALUES)
            _workers(1)
            told.append(f"the smallest number of workers after {time.monotonic() - began:.0f} s")
            with forwarded():
                submitted, began = Submitted(*LONG), time.monotonic()
                _workers(MOST)
                told.append(f"{MOST} of them {time.monotonic() - began:.0f} s after the job")
                submitted.sweeping()
                kill("worker")(submitted)
                told.append(f"one killed: {submitted.end()}")
            began = time.monotonic()
            _workers(1)
            told.append(f"one {time.monotonic() - began:.0f} s after the job's end")
            helm("uninstall", RELEASE, "--wait", "--timeout", "5m")
    finally:
        install()
    return "; ".join(told)


def _workers(count: int) -> None:
    wait_for(f"{count} workers", lambda: len(pods("worker")) == count, 600.0)
