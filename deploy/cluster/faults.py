"""Faults in the middle of a job: what is done to the cluster, and what comes of the job.

The masses at the end must have the SHA-256 of an undisturbed fit in one process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster import HERE, NODES, OLDER, STATE, call, inside, kubectl, pid_of, say
from trial import (
    LONG,
    NAMESPACE,
    RELEASE,
    Submitted,
    forwarded,
    helm,
    install,
    pods,
    python,
    ready,
)

Act = Callable[[Submitted], None]


def _delete(component: str, *how: str) -> Act:
    def act(submitted: Submitted) -> None:
        name = pods(component)[-1]
        kubectl("-n", NAMESPACE, "delete", "pod", name, "--wait=false", *how)

    return act


def kill(component: str) -> Act:
    """SIGKILL of a pod's processes, as the machine sees them."""

    def act(submitted: Submitted) -> None:
        for group in _groups("pids", component):
            for pid in (group / "cgroup.procs").read_text().split():
                if "pause" not in Path(f"/proc/{pid}/comm").read_text():
                    os.kill(int(pid), 9)

    return act


def _evict(component: str) -> Act:
    def act(submitted: Submitted) -> None:
        name = pods(component)[-1]
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction",
                    "metadata": {"name": name, "namespace": NAMESPACE}}  # fmt: skip
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
        kubectl("create", "--raw", path, "-f", "-", input=json.dumps(eviction))

    return act


def _out_of_memory(component: str) -> Act:
    """A limit of memory that kills: the container's own is lowered to what it uses."""

    def act(submitted: Submitted) -> None:
        groups = _groups("memory", component)
        group = max(groups, key=lambda one: int((one / "memory.usage_in_bytes").read_text()))
        limit = group / "memory.limit_in_bytes"
        before, killed = limit.read_text(), _killed(group)
        late = time.monotonic() + 60.0
        while _killed(group) == killed:
            with suppress(OSError):  # it uses more by now
                limit.write_text((group / "memory.usage_in_bytes").read_text())
            if time.monotonic() > late:
                raise SystemExit(f"nothing of {component} was killed for its memory")
            time.sleep(0.2)
        with suppress(OSError):  # the group may have gone with what was killed
            limit.write_text(before)

    return act


def _killed(group: Path) -> int:
    """Processes of a group that the kernel has killed for their memory."""
    try:
        words = (group / "memory.oom_control").read_text().split()
    except OSError:
        return -1  # gone with them
    return int(words[words.index("oom_kill") + 1])


def _groups(controller: str, component: str) -> list[Path]:
    """The cgroups of the containers of a component's newest pod."""
    name = pods(component)[-1]
    uid = kubectl("-n", NAMESPACE, "get", "pod", name, "-o", "jsonpath={.metadata.uid}")
    return [
        procs.parent
        for procs in Path(f"/sys/fs/cgroup/{controller}/evdist-cluster").rglob(
            f"*{uid}*/*/cgroup.procs"
        )
    ]


def _stand_still(seconds: float) -> Act:
    """The S3 server answers nobody for a while."""

    def act(submitted: Submitted) -> None:
        with stands_still("s3"):
            time.sleep(seconds)

    return act


@contextmanager
def stands_still(name: str) -> Iterator[None]:
    """A process outside Kubernetes that is there and does nothing."""
    pid = pid_of(name)
    if pid is None:
        raise SystemExit(f"{name} is not there.")
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def cut_rules() -> str:
    """A table of nftables for the first node, by which all goes to and from the others."""
    names = ", ".join(f'"{node.name}"' for node in NODES[1:])
    chains = [
        f"chain {hook} {{ type filter hook {hook} priority -10; policy accept; "
        f"{way}name {{ {names} }} drop; }}"
        for hook, way in (("prerouting", "iif"), ("postrouting", "oif"))
    ]
    return f"table inet cut {{ {'; '.join(chains)}; }}"


def _cut(seconds: float) -> Act:
    """Nothing passes between the nodes for a while, nor from the second one to anywhere."""

    def act(submitted: Submitted) -> None:
        nft = inside(NODES[0].name, "nft")
        call(*nft, cut_rules())
        time.sleep(seconds)
        call(*nft, "delete table inet cut")

    return act


def renew(days: int) -> None:
    """New certificates for the scheduler and the workers, as the runbook says; 0 days: expired."""
    hosts = ["evdist-scheduler", f"evdist-scheduler.{NAMESPACE}.svc"]
    folder = STATE / "tls"
    call(sys.executable, HERE.parent / "certificates.py", folder, *hosts, "--days", str(days))
    made = kubectl("create", "secret", "generic", "evdist-dask-tls", f"--from-file={folder}/dask",
                   "--dry-run=client", "-o", "json")  # fmt: skip
    kubectl("-n", NAMESPACE, "apply", "-f", "-", input=made)
    for component in ("scheduler", "worker"):
        kubectl("-n", NAMESPACE, "rollout", "restart", f"deployment/evdist-{component}")


def _expired(submitted: Submitted) -> None:
    """Scheduler and workers start with an expired certificate; it is renewed a minute later."""
    renew(0)
    time.sleep(60.0)
    renew(90)


def _restart(*names: str) -> Act:
    """kill -9 of processes outside Kubernetes, and start them again after some seconds."""

    def act(submitted: Submitted) -> None:
        for name in names:
            call(sys.executable, HERE / "cluster.py", "stop", name)
        time.sleep(8.0)
        call(sys.executable, HERE / "cluster.py", "up")

    return act


def _no_dns(submitted: Submitted) -> None:
    kubectl("-n", "kube-system", "delete", "pod", "-l", "k8s-app=kube-dns", "--wait=false")


def _drain(submitted: Submitted) -> None:
    node = kubectl("-n", NAMESPACE, "get", "pod", submitted.pod(), "-o",
                   "jsonpath={.spec.nodeName}")  # fmt: skip
    try:
        kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
                "--disable-eviction", "--timeout=120s")  # fmt: skip
    finally:
        kubectl("uncordon", node)


def _rollout(*values: str) -> Act:
    def act(submitted: Submitted) -> None:
        install(values)

    return act


def _rollback(submitted: Submitted) -> None:
    helm("rollback", RELEASE, "--wait", "--timeout", "8m")


FAULTS: dict[str, Act] = {
    "kill -9 of the flow's processes": kill("run"),
    "flow's pod deleted": _delete("run"),
    "flow's pod evicted": _evict("run"),
    "kill -9 of a Dask worker": kill("worker"),
    "Dask worker deleted at once": _delete("worker", "--grace-period=0", "--force"),
    "Dask worker evicted": _evict("worker"),
    "kill -9 of the scheduler": kill("scheduler"),
    "scheduler deleted": _delete("scheduler"),
    "kill -9 of Prefect's server": kill("prefect-server"),
    "Prefect's server deleted": _delete("prefect-server"),
    "kill -9 of Prefect's worker": kill("prefect-worker"),
    "Prefect's worker deleted": _delete("prefect-worker"),
    "PostgreSQL killed, back after 8 s": _restart("postgres"),
    "API server killed, back after 8 s": _restart("apiserver"),
    "kubelet killed, back after 8 s": _restart(f"{NODES[-1].name}-kubelet"),
    "the flow's node drained": _drain,
    "Prefect's worker evicted": _evict("prefect-worker"),
    "flow's pod out of memory": _out_of_memory("run"),
    "a Dask worker out of memory": _out_of_memory("worker"),
    "S3 stands still for 20 s": _stand_still(20.0),
    "the nodes apart for 20 s": _cut(20.0),
    "DNS deleted": _no_dns,
    "certificates expired for a minute": _expired,
    "helm upgrade, other values": _rollout("--set", "dask.workers.scratch=3Gi"),
    "helm upgrade, another image": _rollout(),
    "helm rollback": _rollback,  # of the upgrade before: to the older image
}
#: With which values the job of a fault begins, if not with the usual ones.
BEFORE = {"helm upgrade, another image": ("--set", f"image.tag={OLDER}")}


def fault(name: str) -> str:
    """One fault in the middle of a job; the time is from the fault to the right end."""
    if name in BEFORE:
        install(BEFORE[name])
    for component in ("scheduler", "worker", "prefect", "prefect-worker"):
        ready(component)
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
    return "".join(told)
