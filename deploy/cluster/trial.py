"""The release on the trial cluster, and jobs that clients outside submit to it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import files
from cluster import (
    BIN,
    CACHE,
    HERE,
    NEWER,
    ROOT,
    STATE,
    call,
    content,
    inside,
    kubectl,
    wait_for,
)

RELEASE, NAMESPACE = "evdist", "clustering"
S3 = f"http://{files.OUTSIDE}:9000"
#: Of servers that nobody but this machine reaches.
PASSWORD = "trial-password"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_ENDPOINT_URL": S3,
    "AWS_DEFAULT_REGION": "us-east-1",
    "PREFECT_API_AUTH_STRING": f"evdist:{PASSWORD}",
    "EVDIST_STORAGE": "s3://evdist/trial",
    "EVDIST_API_URL": "http://127.0.0.1:4200/api",
    "EVDIST_DEPLOYMENT": "cluster/evdist-k8s",
    "PYTHONPATH": str(ROOT),
    "KUBECONFIG": str(STATE / "pki" / "admin.conf"),
}


def helm(*arguments: str) -> str:
    environment = [f"{key}={value}" for key, value in ENVIRONMENT.items()]
    return call(*inside("outside", "env", "-C", ROOT, *environment, BIN / "helm", *arguments,
                        "--namespace", NAMESPACE))  # fmt: skip


def python(text: str, *arguments: str, storage: str | None = None) -> subprocess.Popen[str]:
    """A client on the machine outside; where the storage is a folder, with the account of pods."""
    given, account = dict(ENVIRONMENT), []
    if storage is not None:
        given |= {"EVDIST_STORAGE": storage, "HOME": "/tmp", "NUMBA_CACHE_DIR": "/tmp/numba-evdist"}
        # It writes as pods do; it may read the environment of Python, wherever that lies.
        reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
        account = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", *reads]
    environment = [f"{key}={value}" for key, value in given.items()]
    command = inside("outside", *account, "env", "-C", ROOT, *environment, sys.executable, "-c",
                     text, *arguments)  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


# ---------------------------------------------------------------------- the chart
def install(values: tuple[str, ...] = ()) -> str:
    """Secrets, the bucket and the chart; all pods Ready."""
    secrets()
    # The kinds of the Prometheus operator: the API server takes the chart's objects of these kinds.
    kubectl("apply", "-f", str(HERE / "crds.yaml"))
    began = time.monotonic()
    helm("upgrade", "--install", RELEASE, "helm/evdist", "--values",
         "deploy/cluster/values.yaml", "--set", f"image.tag={NEWER}", *values, "--wait",
         "--timeout", "10m")  # fmt: skip
    pods = json.loads(kubectl("-n", NAMESPACE, "get", "pods", "-o", "json"))["items"]
    ready = [one for one in pods if _is_ready(one)]
    return f"{len(ready)} pods Ready after {time.monotonic() - began:.0f} s"


def _is_ready(pod: Any) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def secrets() -> None:
    """What the chart takes from elsewhere."""
    if NAMESPACE in kubectl("get", "namespaces", "-o", "name"):
        return
    kubectl("create", "namespace", NAMESPACE)
    level = "pod-security.kubernetes.io/enforce=restricted"
    kubectl("label", "namespace", NAMESPACE, level)
    tls = STATE / "tls"
    call(sys.executable, HERE.parent / "certificates.py", tls, "evdist-scheduler",
         f"evdist-scheduler.{NAMESPACE}.svc")  # fmt: skip
    for part in ("dask", "client"):
        names = [f"--from-file={tls / part / name}" for name in ("tls.crt", "tls.key", "ca.crt")]
        _secret(f"evdist-{part}-tls", *names)
    _secret("prefect-auth", f"--from-literal=auth-string=evdist:{PASSWORD}")
    url = f"postgresql+asyncpg://prefect:prefect-password@{files.OUTSIDE}:5432/postgres"
    _secret("prefect-database", f"--from-literal=connection-url={url}")
    _secret("s3-keys", *(f"--from-literal={key}=test"
                         for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")))  # fmt: skip
    python("import s3fs; s3fs.S3FileSystem().makedirs('evdist', exist_ok=True)").wait()


def _secret(name: str, *content: str) -> None:
    kubectl("-n", NAMESPACE, "create", "secret", "generic", name, *content)


def ready(component: str, seconds: float = 300.0) -> None:
    """Wait until the deployment of a component is as it should be."""
    name = f"deployment/evdist-{component}"
    wait = f"--timeout={seconds:.0f}s"
    kubectl("-n", NAMESPACE, "rollout", "status", name, wait)


# ---------------------------------------------------------------------- jobs
_DATA = """
import hashlib, json, sys, time, warnings
import numpy as np
import evdist
n, d, c, seed = map(int, sys.argv[1:5])
given = json.loads(sys.argv[5])
name = given.pop("algorithm", "EVCLUS")
if name == "EVCLUS":
    given.setdefault("metric", "euclidean")  # of 200,000 objects several views would take minutes
rng = np.random.default_rng(seed)
centres = rng.normal(scale=given.pop("spread", 8.0), size=(c, d))
new = given.pop("new", 0)
X = centres[rng.integers(0, c, n + new)] + rng.normal(size=(n + new, d))
X, placed = X[:n], X[n:]
def digest(mass):
    return hashlib.sha256(np.ascontiguousarray(np.asarray(mass)).tobytes()).hexdigest()
"""
_LOCAL = (
    _DATA
    + """
warnings.simplefilter("ignore")
model = getattr(evdist, name)(n_clusters=c, random_state=0, **given).fit(X)
print(digest(model.predict_mass(placed) if new else model.credal_partition_.mass))
"""
)
_CLUSTER = (
    _DATA
    + """
client = evdist.Client(user="trial")
for _ in range(2):
    job = client.submit(X, name.lower(), n_clusters=c, random_state=0, **given)
    if str(job.status) != "done":
        break
    client.delete(job.id)  # of a check before: nothing would run
print(job.id, flush=True)
job.wait(3000, bar=False, restarts=int(sys.argv[6]))
if new:
    job = client.predict(job, placed).wait(3000, bar=False)
print(digest(job.result().mass))
"""
)


def _given(n: int, d: int, c: int, seed: int, given: dict[str, Any]) -> list[str]:
    return [*map(str, (n, d, c, seed)), json.dumps(given)]


def local(*what: Any) -> str:
    """SHA-256 of the masses of a fit in one process; kept for this code, as it takes minutes."""
    key = hashlib.sha256(repr((content(), _LOCAL, what)).encode()).hexdigest()[:16]
    kept = CACHE / "answers" / key
    if not kept.exists():
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        said = call(sys.executable, "-c", _LOCAL, *_given(*what), env=environment)
        files.write(kept, said.split()[-1])
    return kept.read_text()


_ASKED = """
import os, urllib.request
urllib.request.urlopen(os.environ["EVDIST_API_URL"] + "/ready", timeout=5)
print("yes")
"""


def prefect_answers() -> None:
    """Wait for the port-forward to Prefect's server, and for its database behind it."""
    wait_for("Prefect's server", lambda: python(_ASKED).communicate()[0] == "yes\n")


class Submitted:
    """A job that a client outside waits for."""

    id: str
    storage: str | None = None

    def __init__(self, *what: Any, restarts: int = 5, storage: str | None = None):
        self.what, self.began, self.storage = what, time.monotonic(), storage
        prefect_answers()
        self._client = python(_CLUSTER, *_given(*what), str(restarts), storage=storage)
        assert self._client.stdout is not None
        self.id = self._client.stdout.readline().strip()
        if "-" not in self.id:
            raise SystemExit(f"not submitted: {self.id}{self._client.stdout.read()}")

    @classmethod
    def known(cls, job: str) -> Submitted:
        """A job that is there; nobody waits for it."""
        found = cls.__new__(cls)
        found.id = job
        return found

    def pod(self) -> str:
        """The pod of its flow run."""
        return wait_for("the pod of the run", lambda: pods("run")[-1])

    def sweeping(self) -> None:
        """Wait until the fit is under way."""
        text = ("import evdist, sys; j = evdist.Client().job(sys.argv[1]); n = j.progress; "
                "print(j.status, n.stage if n else '', n.sweep if n else 0)")  # fmt: skip

        def look() -> bool:
            said = python(text, self.id, storage=self.storage).communicate()[0].split()
            if said and said[0] == "done":
                raise AssertionError("the job was done before the fault: make it longer")
            return len(said) == 3 and said[1] == "fit" and int(said[2]) > 2

        wait_for("the fit", look, 600)

    def warnings(self) -> str:
        """What the finished job warned of."""
        text = "import evdist, sys; print(evdist.Client().job(sys.argv[1]).metrics['warnings'])"
        asked = python(text, self.id, storage=self.storage)
        said = asked.communicate()[0].strip()
        if asked.returncode:
            raise SystemExit(f"{self.id} does not say what it warned of: {said}")
        return said

    def end(self) -> str:
        """Wait for the answer; what came of it, and when."""
        said = self._client.communicate(timeout=3000)[0].strip().splitlines()
        seconds = time.monotonic() - self.began
        found = said[-1] if said else ""
        if self._client.returncode:
            return f"FAILED: {found}"
        same = "same bits" if found == local(*self.what) else f"OTHER BITS {found}"
        return f"{same}, job took {seconds:.0f} s"


def pods(component: str, phase: str = "Running") -> list[str]:
    """Names of the pods of a component, the newest last."""
    names = kubectl(
        "-n", NAMESPACE, "get", "pods", "-l", f"app.kubernetes.io/component={component}",
        f"--field-selector=status.phase={phase}", "--sort-by=.metadata.creationTimestamp",
        "-o", "name",
    )  # fmt: skip
    return [name.removeprefix("pod/") for name in names.split()]


BIG = (200_000, 10, 10, 1, {})
#: Long enough to be hit in its middle: its clusters overlap, and it never meets its stopping rule.
LONG = (50_000, 5, 6, 2, {"tol": 0.0, "max_iter": 160, "d0": "q0.9", "spread": 1.2})


class forwarded:
    """Prefect's API on the loopback of the machine outside."""

    def __enter__(self) -> None:
        command = ["kubectl", "-n", NAMESPACE, "port-forward", "service/evdist-prefect", "4200"]
        # kubectl ends with the pod that it was connected to: a shell starts it again.
        text = f"while :; do {' '.join(command)}; sleep 1; done"
        environment = [f"{key}={value}" for key, value in ENVIRONMENT.items()]
        path = f"PATH={BIN}:{os.environ['PATH']}"
        self._shell = subprocess.Popen(
            inside("outside", "env", *environment, path, "sh", "-c", text), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(3.0)

    def __exit__(self, *error: object) -> None:
        os.killpg(self._shell.pid, 15)
        self._shell.wait()


@contextmanager
def extra_pod(
    name: str, namespace: str, labels: dict[str, str], code: str, *arguments: str
) -> Iterator[Callable[..., str]]:
    """A pod of our image that runs Python `code`; a function that runs commands in it.

    In our namespace it has the certificate of a client of Dask.
    """
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
    ours = namespace == NAMESPACE
    container = {
        "name": "extra",
        "image": f"evdist:{NEWER}",
        "imagePullPolicy": "Never",
        "command": ["/opt/evdist/bin/python", "-c", code, *arguments],
        "securityContext": security,
        "volumeMounts": [{"name": "tls", "mountPath": "/etc/evdist/tls"}] if ours else [],
    }
    tls = {"name": "tls", "secret": {"secretName": "evdist-client-tls", "defaultMode": 0o444}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "automountServiceAccountToken": False,
                 "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                 "volumes": [tls] if ours else []},
    }  # fmt: skip
    kubectl("apply", "-f", "-", input=json.dumps(pod))
    try:
        kubectl("-n", namespace, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=240s")
        yield lambda *command: kubectl("-n", namespace, "exec", name, "--", *command)
    finally:
        kubectl("-n", namespace, "delete", "pod", name, "--wait=true")
