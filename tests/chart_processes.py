"""Containers of the rendered chart as plain processes of this machine.

The command line, the environment, the config maps and the secrets are those of the chart. What a
cluster would do is done here: names of services become loopback, ports become free ones, mounted
volumes become folders, variables in arguments are filled in. Where this process may make mount
namespaces, everything but the container's own writable volumes is read-only, as in the chart.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chart_render import NAMESPACE, ROOT, Rendered
from service.servers import BIN, free_port, process

#: Where numba keeps compiled kernels: beside the modules that hold them.
KERNELS = sorted(
    {
        path.parent / "__pycache__"
        for path in (ROOT / "evdist").rglob("*.py")
        if "njit" in path.read_text(encoding="utf-8")
    }
)
Object = dict[str, Any]

#: Mounts each writable folder over itself, makes the rest read-only, and becomes the command.
_READ_ONLY = """
for folder in $WRITABLE; do mount --bind "$folder" "$folder" || exit 70; done
mount -o remount,bind,ro / || exit 71
exec "$@"
"""


@functools.cache
def may_make_read_only(folder: str) -> bool:
    """Whether a mount namespace can be made, and a root file system in it be made read-only."""
    if shutil.which("unshare") is None:
        return False
    script = _READ_ONLY.replace('exec "$@"', f'! touch "{ROOT}/.written" 2>/dev/null')
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script], env={**os.environ, "WRITABLE": folder},
        capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode == 0


@dataclass
class Machine:
    """This machine in the place of a cluster."""

    chart: Rendered
    folder: Path
    #: Contents of the secrets: {name: {key: value}}, or the folder that holds the files.
    secrets: Mapping[str, Mapping[str, str] | Path]
    #: Port in the chart -> port here, for what is reached through a service.
    ports: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for folder in KERNELS:
            folder.mkdir(exist_ok=True)
        for found in self.chart.objects:
            if found["kind"] == "Service":
                for port in found["spec"]["ports"]:
                    self.ports.setdefault(port["port"], free_port())

    @contextmanager
    def start(
        self, kind: str, suffix: str, name: str | None = None, *extra: str, index: int = 0
    ) -> Iterator[tuple[subprocess.Popen, Path]]:
        """Run one container of a workload; its process and its log."""
        command, env, writable = self.translated(kind, suffix, name, index)
        log = self.folder / f"{suffix.strip('-')}-{name or 0}-{index}.log"
        if may_make_read_only(str(self.folder)):
            env["WRITABLE"] = " ".join(map(str, writable))
            command = ["unshare", "--mount", "sh", "-c", _READ_ONLY, "sh", *command]
        with process([*command, *extra], log, env) as child:
            yield child, log

    def run(self, kind: str, suffix: str, name: str) -> str:
        """Run one container to its end; what it said."""
        with self.start(kind, suffix, name) as (child, log):
            code = child.wait(180)
        said = log.read_text()
        assert code == 0, said
        return said

    def translated(
        self, kind: str, suffix: str, name: str | None, index: int
    ) -> tuple[list[str], dict[str, str], list[Path]]:
        """Arguments, environment and writable folders."""
        found = self.chart[kind, suffix]
        pod = found["spec"] if kind == "Pod" else found["spec"]["template"]["spec"]
        boxes = [*pod.get("initContainers", []), *pod["containers"]]
        box = next(box for box in boxes if name in (None, box["name"]))
        ports = dict(self.ports)
        own = {port["containerPort"] for port in box.get("ports", [])} - set(ports)
        ports |= {port: free_port() for port in own}
        folders, writable = self._mounted(pod, box, f"{box['name']}-{index}")

        def here(text: str) -> str:
            if folders:
                paths = "|".join(re.escape(path) for path in sorted(folders, reverse=True))
                pattern = rf"(?<![\w/])({paths})(?=[/\s,}}]|$)"
                text = re.sub(pattern, lambda m: str(folders[m[1]]), text)
            text = re.sub(rf"[-\w]+\.{NAMESPACE}\.svc:", "127.0.0.1:", text)
            text = text.replace("0.0.0.0", "127.0.0.1")
            text = re.sub(r"(?<==):(?=\d)", "127.0.0.1:", text)  # all addresses -> loopback
            return re.sub(
                r"(?<![\d.])(\d{4})(?!\d)", lambda m: str(ports.get(int(m[1]), m[1])), text
            )

        env = {key: here(value) for key, value in image_environment().items()}
        env |= {key: here(value) for key, value in self._environment(box, index).items()}
        # The checkout stands for the image's own folder; it may lie in /tmp, as no image does.
        env |= {"PYTHONPATH": str(ROOT), "EVDIST_SOURCE": str(ROOT)}
        # Kernels that other tests have compiled are used, or each process takes a minute for them.
        env.pop("NUMBA_CACHE_DIR")
        writable.extend(KERNELS)
        env["TMPDIR"] = str(folders["/tmp"])  # what a program takes for granted
        env["DASK_CONFIG"] = str(folders.get("/etc/dask", self.folder / "none"))
        for path in folders.values():
            for file in path.glob("*.yaml"):
                file.write_text(here(file.read_text()))
        arguments = [
            re.sub(r"\$\((\w+)\)", lambda m: env[m[1]], here(argument)) for argument in box["args"]
        ]
        if arguments[0] == "dask":  # in a pod, its own address
            arguments.append("--host=127.0.0.1")
        return [str(BIN / arguments[0]), *arguments[1:]], env, writable

    def _mounted(self, pod: Object, box: Object, name: str) -> tuple[dict[str, Path], list[Path]]:
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        folders, writable = {}, []
        for mount in box["volumeMounts"]:
            volume = volumes[mount["name"]]
            folder = self.folder / name / mount["name"]
            if "secret" in volume:
                source = self.secrets[volume["secret"]["secretName"]]
                assert isinstance(source, Path)
                folder = source
            elif "configMap" in volume:
                folder.mkdir(parents=True, exist_ok=True)
                held = next(
                    found["data"]
                    for found in self.chart.objects
                    if found["kind"] == "ConfigMap"
                    and found["metadata"]["name"] == volume["configMap"]["name"]
                )
                for file, text in held.items():
                    (folder / file).write_text(text)
            elif "persistentVolumeClaim" in volume:
                folder = self.folder / "data"
            if not mount.get("readOnly"):
                folder.mkdir(parents=True, exist_ok=True)
                writable.append(folder)
            folders[mount["mountPath"]] = folder
        return folders, writable

    def _environment(self, box: Object, index: int) -> dict[str, str]:
        found = {}
        for entry in box.get("env", []):
            source = entry.get("valueFrom", {})
            if "secretKeyRef" in source:
                held = self.secrets[source["secretKeyRef"]["name"]]
                assert isinstance(held, Mapping)
                found[entry["name"]] = held[source["secretKeyRef"]["key"]]
            elif "fieldRef" in source:
                found[entry["name"]] = f"{box['name']}-{index}"
            elif "resourceFieldRef" in source:
                small = {"limits.cpu": "1", "limits.memory": str(2 << 30)}
                found[entry["name"]] = small[source["resourceFieldRef"]["resource"]]
            else:
                found[entry["name"]] = entry["value"]
        return found


def image_environment() -> dict[str, str]:
    """What the image sets, but for where its programs are."""
    text = (ROOT / "deploy" / "Dockerfile").read_text().rpartition("\nFROM ")[2]
    block = re.search(r"^ENV (.*?[^\\])$", text, re.M | re.S)
    assert block is not None
    pairs = re.findall(r"(\w+)=(\S+)", block[1].replace("\\\n", " "))
    found = {key: value for key, value in pairs if key not in ("PATH", "PYTHONDONTWRITEBYTECODE")}
    return {**found, "PYTHONDONTWRITEBYTECODE": "1"}
