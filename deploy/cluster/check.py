"""What `make test-cluster` looks at, on the trial cluster that is up: ``check.py [NAME...]``.

Without names: install, smoke, job, others, policies, faults. Each line of the tables at the end is
something that was done to the cluster, what was seen, and how long it took.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import files
from cluster import BIN, CACHE, HERE, NODES, ROOT, STATE, call, inside, kubectl, say, wait_for

RELEASE, NAMESPACE = "evdist", "clustering"
S3 = f"http://{files.OUTSIDE}:9000"
#: Tag of the image that an upgrade brings.
NEWER = "0.1.1"
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


def python(text: str, *arguments: str) -> subprocess.Popen[str]:
    """A client on the machine outside."""
    environment = [f"{key}={value}" for key, value in ENVIRONMENT.items()]
    command = inside("outside", "env", "-C", ROOT, *environment, sys.executable, "-c", text,
                     *arguments)  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


# ---------------------------------------------------------------------- the chart
def install(values: tuple[str, ...] = ()) -> str:
    """Secrets, the bucket and the chart; all pods Ready."""
    secrets()
    began = time.monotonic()
    helm("upgrade", "--install", RELEASE, "helm/evdist", "--values",
         "deploy/cluster/values.yaml", *values, "--wait", "--timeout", "10m")  # fmt: skip
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
rng = np.random.default_rng(seed)
centres = rng.normal(scale=given.pop("spread", 8.0), size=(c, d))
X = centres[rng.integers(0, c, n)] + rng.normal(size=(n, d))
def digest(mass):
    return hashlib.sha256(np.ascontiguousarray(np.asarray(mass)).tobytes()).hexdigest()
"""
_LOCAL = (
    _DATA
    + """
warnings.simplefilter("ignore")
model = getattr(evdist, name)(n_clusters=c, random_state=0, **given).fit(X)
print(digest(model.credal_partition_.mass))
"""
)
_CLUSTER = (
    _DATA
    + """
job = evdist.Client(user="trial").submit(X, name.lower(), n_clusters=c, random_state=0, **given)
print(job.id, flush=True)
job.wait(3000, bar=False, restarts=int(sys.argv[6]))
print(digest(job.result().mass))
"""
)


def _given(n: int, d: int, c: int, seed: int, given: dict[str, Any]) -> list[str]:
    return [*map(str, (n, d, c, seed)), json.dumps(given)]


def local(*what: Any) -> str:
    """SHA-256 of the masses of a fit in one process; kept, as it takes minutes."""
    key = hashlib.sha256(repr((_LOCAL, what)).encode()).hexdigest()[:16]
    kept = CACHE / "answers" / key
    if not kept.exists():
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        said = call(sys.executable, "-c", _LOCAL, *_given(*what), env=environment)
        files.write(kept, said.split()[-1])
    return kept.read_text()


class Submitted:
    """A job that a client outside waits for."""

    def __init__(self, *what: Any, restarts: int = 5):
        self.what, self.began = what, time.monotonic()
        self._client = python(_CLUSTER, *_given(*what), str(restarts))
        assert self._client.stdout is not None
        self.id = self._client.stdout.readline().strip()
        if "-" not in self.id:
            raise SystemExit(f"not submitted: {self.id}{self._client.stdout.read()}")

    def pod(self) -> str:
        """The pod of its flow run."""
        return wait_for("the pod of the run", lambda: pods("run")[-1])

    def sweeping(self) -> None:
        """Wait until the fit is under way."""
        text = ("import evdist, sys; j = evdist.Client().job(sys.argv[1]); n = j.progress; "
                "print(j.status, n.stage if n else '', n.sweep if n else 0)")  # fmt: skip

        def look() -> bool:
            said = python(text, self.id).communicate()[0].split()
            if said and said[0] == "done":
                raise AssertionError("the job was done before the fault: make it longer")
            return len(said) == 3 and said[1] == "fit" and int(said[2]) > 2

        wait_for("the fit", look, 600)

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


def job() -> str:
    """200,000 x 10, c = 10: client, Prefect, a Job of Kubernetes, Dask's workers; a local fit."""
    with forwarded():
        return f"{Submitted(*BIG).end()}; masses {local(*BIG)[:16]}..."


def others() -> str:
    """Bootclus and NN-EVCLUS, small."""
    told = []
    with forwarded():
        for what in (
            (2000, 4, 3, 3, {"algorithm": "Bootclus", "n_bootstrap": 20}),
            (2000, 4, 3, 4, {"algorithm": "NNEVCLUS", "max_iter": 5, "n_init": 1}),
        ):
            told.append(f"{what[4]['algorithm']}: {Submitted(*what).end()}")
    return "; ".join(told)


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
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
                "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
    container = {
        "name": "try",
        "image": "evdist:0.1.0",
        "imagePullPolicy": "Never",
        "command": ["python", "-c", "import time\ntime.sleep(3600)"],
        "securityContext": security,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "automountServiceAccountToken": False,
                 "terminationGracePeriodSeconds": 0},
    }  # fmt: skip
    kubectl("apply", "-f", "-", input=json.dumps(pod))
    try:
        kubectl("-n", namespace, "wait", "--for=condition=Ready", f"pod/{name}", "--timeout=120s")
        said = kubectl("-n", namespace, "exec", name, "--", "/opt/evdist/bin/python", "-c", _TRY,
                       *places)  # fmt: skip
        return said.strip().splitlines()
    finally:
        kubectl("-n", namespace, "delete", "pod", name, "--wait=true")


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


# ---------------------------------------------------------------------- faults
def _delete(component: str, *how: str) -> Callable[[Submitted], None]:
    def act(submitted: Submitted) -> None:
        name = pods(component)[-1]
        kubectl("-n", NAMESPACE, "delete", "pod", name, "--wait=false", *how)

    return act


def _kill(component: str) -> Callable[[Submitted], None]:
    """SIGKILL of a pod's processes, as the machine sees them."""

    def act(submitted: Submitted) -> None:
        name = pods(component)[-1]
        uid = kubectl("-n", NAMESPACE, "get", "pod", name, "-o", "jsonpath={.metadata.uid}")
        for group in Path("/sys/fs/cgroup/pids/evdist-cluster").rglob(f"*{uid}*/*/cgroup.procs"):
            for pid in group.read_text().split():
                if "pause" not in Path(f"/proc/{pid}/comm").read_text():
                    os.kill(int(pid), 9)

    return act


def _evict(component: str) -> Callable[[Submitted], None]:
    def act(submitted: Submitted) -> None:
        name = pods(component)[-1]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": name, "namespace": NAMESPACE}}  # fmt: skip
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
        kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction))

    return act


def _restart(*names: str) -> Callable[[Submitted], None]:
    """kill -9 of processes outside Kubernetes, and start them again after some seconds."""

    def act(submitted: Submitted) -> None:
        for name in names:
            call(sys.executable, HERE / "cluster.py", "stop", name)
        time.sleep(8.0)
        call(sys.executable, HERE / "cluster.py", "up")

    return act


def _drain(submitted: Submitted) -> None:
    node = kubectl("-n", NAMESPACE, "get", "pod", submitted.pod(), "-o",
                   "jsonpath={.spec.nodeName}")  # fmt: skip
    try:
        kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
                "--disable-eviction", "--timeout=120s")  # fmt: skip
    finally:
        kubectl("uncordon", node)


def _rollout(*values: str) -> Callable[[Submitted], None]:
    def act(submitted: Submitted) -> None:
        install(values)

    return act


def _rollback(submitted: Submitted) -> None:
    helm("rollback", RELEASE, "--wait", "--timeout", "8m")


FAULTS: dict[str, Callable[[Submitted], None]] = {
    "kill -9 of the flow's processes": _kill("run"),
    "flow's pod deleted": _delete("run"),
    "flow's pod evicted": _evict("run"),
    "kill -9 of a Dask worker": _kill("worker"),
    "Dask worker deleted at once": _delete("worker", "--grace-period=0", "--force"),
    "Dask worker evicted": _evict("worker"),
    "kill -9 of the scheduler": _kill("scheduler"),
    "scheduler deleted": _delete("scheduler"),
    "kill -9 of Prefect's server": _kill("prefect-server"),
    "Prefect's server deleted": _delete("prefect-server"),
    "kill -9 of Prefect's worker": _kill("prefect-worker"),
    "Prefect's worker deleted": _delete("prefect-worker"),
    "PostgreSQL killed, back after 8 s": _restart("postgres"),
    "API server killed, back after 8 s": _restart("apiserver"),
    "kubelet killed, back after 8 s": _restart(f"{NODES[-1].name}-kubelet"),
    "the flow's node drained": _drain,
    "helm upgrade, another image": _rollout("--set", f"image.tag={NEWER}"),
    "helm upgrade, other values": _rollout("--set", f"image.tag={NEWER},dask.workers.scratch=3Gi"),
    "helm rollback": _rollback,
}


def fault(name: str) -> str:
    """One fault in the middle of a job; the time is from the fault to the right end."""
    submitted = Submitted(*LONG)
    submitted.sweeping()
    hit = time.monotonic()
    FAULTS[name](submitted)
    told = submitted.end()
    # The next fault meets the same job anew.
    python("import evdist, sys; evdist.Client().delete(sys.argv[1])", submitted.id).wait()
    return f"{told}; {time.monotonic() - hit:.0f} s after the fault"


def faults(*names: str) -> str:
    told = []
    with forwarded():
        for name in FAULTS:
            if names and name not in names:
                continue
            try:
                found = fault(name)
            except (SystemExit, AssertionError, subprocess.SubprocessError, OSError) as error:
                found = f"FAILED: {error}"
            say(f"{name}: {found}")
            told.append(f"\n  {name}: {found}")
            for component in ("scheduler", "worker", "prefect", "prefect-worker"):
                ready(component)
    return "".join(told)


CHECKS: dict[str, Callable[[], str]] = {
    "install": install,
    "smoke": smoke,
    "job": job,
    "others": others,
    "policies": policies,
    "faults": faults,
}


def main(names: list[str]) -> int:
    bad = 0
    if names[:1] == ["fault"]:
        say(faults(*names[1:]))
        return 0
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
