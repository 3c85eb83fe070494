"""A real Kubernetes on this machine, for trials: ``cluster.py up``, ``down``, ``run COMMAND...``.

Two nodes and a machine "outside" with PostgreSQL and an S3 server, each in a network namespace of
its own; nodes have a mount namespace, too. Nothing listens on the machine itself. Every process
that is started is ended by its number; whatever a kubelet has started is known by its cgroup.
docs/kubernetes.md says what the cluster is for, README.md beside this file how it is built.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import files
from files import Node

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
#: What is built once and kept.
CACHE = Path(os.environ.get("EVDIST_CLUSTER", Path.home() / ".cache" / "evdist-cluster"))
BIN = CACHE / "bin"
#: What lives as long as the cluster.
STATE = CACHE / "state"
PKI = STATE / "pki"
_CGROUPS = Path("/sys/fs/cgroup")
_ROOT_CGROUP = "evdist-cluster"
NODES = [Node(number) for number in range(1, int(os.environ.get("EVDIST_NODES", "2")) + 1)]
IMAGES = {name: f"localhost/{name}:1" for name in ("pause", "coredns", "prometheus")}
#: Tags: of the image of deploy/Dockerfile, built once, and of the one with evdist as it stands now,
#: which is checked and which an upgrade brings.
OLDER, NEWER = "0.1.0", "0.1.1"


def content() -> str:
    """A name for the files of evdist that go into the image."""
    found = hashlib.sha256()
    for path in sorted([*(ROOT / "evdist").rglob("*"), *(ROOT / "flows").rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts:
            found.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


# ---------------------------------------------------------------------- processes
def pid_of(name: str) -> int | None:
    """The process of this name, if it lives: its number may have gone to another one."""
    try:
        pid, began = map(int, (STATE / "pids" / name).read_text().split())
        return pid if _began(pid) == began else None
    except (OSError, ValueError):
        return None


def _began(pid: int) -> int:
    """When a process started, in the kernel's ticks."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    if stat[0] == "Z":
        raise OSError("it has ended")
    return int(stat[19])


def inside(place: str, *command: str | Path) -> list[str]:
    """A command for the namespaces of a node, or of the machine outside."""
    pid = pid_of(place)
    if pid is None:
        raise SystemExit(f"The cluster is not up: {place} is missing. make cluster")
    # The working folder and the binaries are those of the machine.
    return ["nsenter", "-t", str(pid), "-n", "-m", "--", *map(str, command)]


def start(name: str, command: list[str], **account: Any) -> int:
    """Start a process, unless it lives; its output goes to a file of its name."""
    if (pid := pid_of(name)) is not None:
        return pid
    log = STATE / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "GOMAXPROCS": "2"}
    with log.open("ab") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, cwd="/",
            start_new_session=True, **account,
        )  # fmt: skip
    files.write(STATE / "pids" / name, f"{child.pid} {_began(child.pid)}")
    return child.pid


def end(name: str, sign: int = signal.SIGTERM, seconds: float = 10.0) -> None:
    """End a process and wait for it; SIGKILL if it lives on."""
    pid = pid_of(name)
    for number in (sign, signal.SIGKILL):
        late = time.monotonic() + seconds
        with suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, number)
        while pid_of(name) is not None and time.monotonic() < late:
            _reap()
            time.sleep(0.05)
    (STATE / "pids" / name).unlink(missing_ok=True)


def _reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def call(*command: str | Path, env: dict[str, str] | None = None, **options: Any) -> str:
    """What a command prints; it must succeed."""
    env = {**(env or os.environ), "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, env=env, check=False,
        **options,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def kubectl(*arguments: str, **options: Any) -> str:
    return call(*inside("outside", BIN / "kubectl", f"--kubeconfig={PKI}/admin.conf", *arguments),
                **options)  # fmt: skip


def wait_for(what: str, ready: Callable[[], Any], seconds: float = 240.0) -> Any:
    late = time.monotonic() + seconds
    while True:
        with suppress(SystemExit, OSError, ValueError):
            if found := ready():
                return found
        if time.monotonic() > late:
            raise SystemExit(f"{what}: not there after {seconds:.0f} s. Logs: {STATE}/logs")
        time.sleep(1.0)


# ---------------------------------------------------------------------- up
def networks() -> None:
    """Nodes and the machine outside, connected by pairs of interfaces."""
    for place in ["outside", *(node.name for node in NODES)]:
        if pid_of(place) is None:
            # Alive as long as the namespaces are wanted.
            alone = ["unshare", "--net", "--mount", "--propagation", "private"]
            start(place, [*alone, "sleep", "infinity"])
            wait_for(place, lambda place=place: _apart(place))
            call(*inside(place, "ip", "link", "set", "lo", "up"))
            call(*inside(place, "sysctl", "-qw", "net.ipv4.ip_forward=1"))
    first = NODES[0]
    if "outside" not in call(*inside(first.name, "ip", "-br", "link")):
        _pair(first.name, "outside", "10.92.0.1/24", "outside", "inside", f"{files.OUTSIDE}/24")
        _route("outside", "default", "10.92.0.1")
        for node in NODES[1:]:
            _pair(first.name, node.name, f"{first.address}/24", node.name, "net",
                  f"{node.address}/24")  # fmt: skip
            _route(first.name, node.pods, node.address)
            _route(node.name, first.pods, first.address)
            _route(node.name, "default", first.address)
        if not NODES[1:]:
            call(*inside(first.name, "ip", "addr", "add", f"{first.address}/32", "dev", "lo"))


def _apart(place: str) -> bool:
    return os.readlink(f"/proc/{pid_of(place)}/ns/net") != os.readlink("/proc/self/ns/net")


def _pair(one: str, name: str, address: str, other: str, other_name: str, to: str) -> None:
    pid = str(pid_of(other))
    call(*inside(one, "ip", "link", "add", name, "type", "veth", "peer", "name", other_name,
                 "netns", pid))  # fmt: skip
    for place, link, own in ((one, name, address), (other, other_name, to)):
        call(*inside(place, "ip", "addr", "add", own, "dev", link))
        call(*inside(place, "ip", "link", "set", link, "up"))


def _route(place: str, to: str, via: str) -> None:
    call(*inside(place, "ip", "route", "add", to, "via", via))


def settings() -> None:
    """Certificates and files, made once for the life of the cluster."""
    if (PKI / "done").exists():
        return
    for name, issued in files.certificates(NODES).items():
        files.write(PKI / f"{name}.crt", issued.certificate)
        files.write(PKI / f"{name}.key", issued.key)
        files.write(PKI / f"{name}.conf", files.kubeconfig(PKI, name))
    for node in NODES:
        folder = STATE / node.name
        files.write(folder / "containerd.toml", files.containerd(folder, IMAGES["pause"]))
        files.write(folder / "cni" / "10-evdist.conflist", files.network(node))
        files.write(folder / "kubelet.json", files.kubelet(folder, PKI, node))
        files.write(folder / "proxy.conf", (PKI / "proxy.conf").read_text())
        files.write(folder / "proxy.json", files.proxy(folder, node))
        files.write(folder / "resolv.conf", "nameserver 127.0.0.1\n")
        for path, value in files.SYSCTLS.items():
            files.write(folder / "sysctl" / path, value)
    files.write(PKI / "done", "")


def control_plane() -> None:
    one = NODES[0].name
    data = STATE / "etcd"
    start("etcd", inside(one, "etcd", f"--data-dir={data}", "--unsafe-no-fsync"))
    start("apiserver", inside(one, *_own(files.apiserver(PKI))))
    wait_for("the API server", lambda: kubectl("get", "--raw", "/readyz") == "ok")
    start("controllers", inside(one, *_own(files.controllers(PKI))))
    start("scheduler", inside(one, *_own(files.scheduler(PKI))))


def _own(command: list[str]) -> list[str]:
    return [str(BIN / command[0]), *command[1:]]


def node_up(node: Node) -> None:
    folder, place = STATE / node.name, node.name
    if not (folder / "mounted").exists() or pid_of(f"{place}-containerd") is None:
        for path in files.SYSCTLS:
            scratch = folder / "sysctl" / path
            call(*inside(place, "mount", "--bind", scratch, f"/proc/sys/{path}"))
        for path in ("/run", "/var/lib/kubelet"):
            Path(path).mkdir(parents=True, exist_ok=True)
            call(*inside(place, "mount", "-t", "tmpfs", "tmpfs", path))
        call(*inside(place, "mount", "--make-rshared", "/"))
        files.write(folder / "mounted", "")
    for controller in _CGROUPS.iterdir():
        if controller.name == "unified" or not controller.is_dir():
            continue
        group = controller / _ROOT_CGROUP / node.name
        group.mkdir(parents=True, exist_ok=True)
        if controller.name == "cpu":
            # Else all pods together get what one process of the machine gets.
            (group.parent / "cpu.shares").write_text("4096")
        if controller.name == "cpuset":
            for inner in (group.parent, group):
                for name in ("cpuset.cpus", "cpuset.mems"):
                    (inner / name).write_text((controller / name).read_text())
    start(
        f"{place}-containerd", inside(place, "containerd", "--config", folder / "containerd.toml")
    )
    wait_for("containerd", lambda: (folder / "containerd.sock").exists())
    images(node)
    start(f"{place}-policies", inside(place, sys.executable, HERE / "policies.py", PKI, files.API,
                                      files.PODS))  # fmt: skip
    start(f"{place}-kubelet", inside(
        place, BIN / "kubelet", f"--config={folder}/kubelet.json", f"--root-dir={folder}/kubelet",
        f"--kubeconfig={PKI}/{place}.conf", f"--hostname-override={place}",
        f"--node-ip={node.address}"))  # fmt: skip
    start(f"{place}-proxy", inside(place, BIN / "kube-proxy", f"--config={folder}/proxy.json"))


def images(node: Node) -> None:
    """Bring the images that were built into the node's containerd."""
    folder = STATE / node.name
    ctr = inside(node.name, "ctr", "--address", folder / "containerd.sock", "-n", "k8s.io")
    for archive in sorted((CACHE / "images").glob("*.tar")):
        names = json.loads(archive.with_suffix(".json").read_text())
        about, there = archive.stat(), folder / "images" / archive.stem
        if there.exists() and there.read_text() == str(about.st_mtime_ns):
            continue
        say(f"{node.name}: importing {', '.join(names)} ({about.st_size / 1e6:.0f} MB)")
        call(*ctr, "images", "import", archive)
        files.write(there, str(about.st_mtime_ns))


def outside() -> None:
    """PostgreSQL and an S3 server, as a site has them beside its cluster."""
    data, account = STATE / "postgres", {"user": "postgres", "group": "postgres"}
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    # Its own user must get there; nobody else may look.
    home = Path("/var/lib/postgresql/evdist-cluster")
    if not home.exists():
        home.mkdir(parents=True)
        shutil.chown(home, "postgres", "postgres")
        call(programs / "initdb", "-D", home / "data", "-A", "scram-sha-256", "-U", "prefect",
             f"--pwfile={_password(home)}", "--no-sync", cwd="/", **account)  # fmt: skip
        (home / "data" / "pg_hba.conf").write_text("host all all 10.0.0.0/8 scram-sha-256\n")
    data.mkdir(exist_ok=True)
    setpriv = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    start("postgres", inside(
        "outside", *setpriv, programs / "postgres", "-D", home / "data", "-c",
        f"listen_addresses={files.OUTSIDE}", "-c", "unix_socket_directories=", "-c", "fsync=off",
        "-c", "max_connections=60"))  # fmt: skip
    server = Path(sys.executable).parent / "moto_server"
    start("s3", inside("outside", server, "-H", files.OUTSIDE, "-p", "9000"))


def _password(home: Path) -> Path:
    path = home / "password"
    path.write_text("prefect-password\n")
    shutil.chown(path, "postgres", "postgres")
    path.chmod(0o600)
    return path


def up() -> None:
    missing = [name for name in ("kube", "helm", "coredns") if not (BIN / name).exists()]
    if missing:
        raise SystemExit(f"{', '.join(missing)}: not built yet. python deploy/cluster/build.py")
    began = time.monotonic()
    say(f"the cluster: {len(NODES)} nodes, about 2 GB of memory without what runs on them")
    networks()
    settings()
    outside()
    control_plane()
    say("the API server answers")
    kubectl("apply", "-f", "-", input=files.dns(IMAGES["coredns"]))
    for node in NODES:
        node_up(node)
    for node in NODES:
        wait_for(node.name, lambda node=node: "True" in kubectl(
            "get", "node", node.name, "-o",
            'jsonpath={.status.conditions[?(@.type=="Ready")].status}'))  # fmt: skip
        say(f"{node.name} is Ready")
    kubectl("-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s")
    say(f"up after {time.monotonic() - began:.0f} s")


# ---------------------------------------------------------------------- down
def ours() -> list[int]:
    """Processes that were started in the cgroups of the nodes, or in their mount namespaces."""
    found = set()
    spaces = set()
    for node in NODES:
        with suppress(OSError):
            spaces.add(os.readlink(f"/proc/{pid_of(node.name)}/ns/mnt"))
    for tasks in (_CGROUPS / "pids" / _ROOT_CGROUP).rglob("cgroup.procs"):
        with suppress(OSError):
            found |= set(map(int, tasks.read_text().split()))
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "ns/mnt") in spaces:
                found.add(int(entry.name))
    return sorted(found - {os.getpid()})


def down() -> None:
    names = sorted(path.name for path in (STATE / "pids").glob("*")) if STATE.exists() else []
    places = {"outside", *(node.name for node in NODES)}
    for part in ("kubelet", "policies", "proxy"):
        for name in names:
            if name.endswith(f"-{part}"):
                end(name)
    keep = {pid_of(name) for name in names if name in places}
    for sign in (signal.SIGTERM, signal.SIGKILL):
        for pid in ours():
            if pid not in keep:
                with suppress(ProcessLookupError):
                    os.kill(pid, sign)
        time.sleep(1.0)
    for name in names:
        if name not in places:
            end(name, signal.SIGINT if name == "postgres" else signal.SIGTERM)
    for name in names:
        end(name, signal.SIGKILL)
    for controller in _CGROUPS.iterdir():
        for folder, _, _ in os.walk(controller / _ROOT_CGROUP, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)
    left = ours()
    shutil.rmtree(STATE, ignore_errors=True)
    shutil.rmtree("/var/lib/postgresql/evdist-cluster", ignore_errors=True)
    say(f"down; processes left: {left or 'none'}; what was built is in {CACHE}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["up", "down", "run", "pid", "stop", "images"])
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.what == "up":
        up()
    elif given.what == "down":
        down()
    elif given.what == "images":
        for node in NODES:
            images(node)
    elif given.what == "stop":
        end(given.rest[0], signal.SIGKILL)
    elif given.what == "pid":
        say(str(pid_of(given.rest[0])))
    else:
        env = {**os.environ, "KUBECONFIG": str(PKI / "admin.conf"),
               "PATH": f"{BIN}:{os.environ['PATH']}"}  # fmt: skip
        os.execvpe("nsenter", inside("outside", "env", "-C", os.getcwd(), *given.rest), env)


if __name__ == "__main__":
    main()
