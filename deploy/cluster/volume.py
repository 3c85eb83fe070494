"""A shared volume in the place of S3, and what a job does when it is full.

The volume is a small file system in a file, mounted on both nodes and on the machine outside, where
the client sees it under the same path as the pods.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cluster import NODES, STATE, call, inside, kubectl
from trial import LONG, NAMESPACE, Submitted, forwarded, install

#: Where all see it.
DATA = Path("/data")
_MB = 400
_VALUES = (
    "--set", "storage.kind=pvc,storage.pvc.existingClaim=shared",
    "--set", "storage.url=,storage.endpoint=,storage.region=,storage.existingSecret=",
)  # fmt: skip


@contextmanager
def _disk() -> Iterator[None]:
    image, place = STATE / "disk.img", STATE / "disk"
    place.mkdir(exist_ok=True)
    new = not DATA.exists()
    DATA.mkdir(exist_ok=True)
    call("truncate", "-s", f"{_MB}M", image)
    call("mkfs.ext4", "-q", "-F", "-m", "0", image)
    device = call("losetup", "--find", "--show", image).strip()
    where = [("outside", DATA), *((node.name, place) for node in NODES)]
    mounted = []
    try:
        for name, at in where:
            call(*inside(name, "mount", device, at))
            mounted.append((name, at))
        call(*inside("outside", "chmod", "777", DATA))
        yield
    finally:
        for name, at in mounted:
            call(*inside(name, "umount", at))
        call("losetup", "--detach", device)
        image.unlink()
        if new:
            DATA.rmdir()


def _objects() -> str:
    """The volume, and the claim that the chart is given."""
    spec = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "capacity": {"storage": f"{_MB}Mi"},
        "hostPath": {"path": str(STATE / "disk"), "type": "Directory"},
    }
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": "shared",
        "resources": {"requests": {"storage": f"{_MB}Mi"}},
    }
    items = [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "shared"},
         "spec": spec},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
         "metadata": {"name": "shared", "namespace": NAMESPACE}, "spec": claim},
    ]  # fmt: skip
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def volume() -> str:
    """A job on a shared volume that fills up in its middle; it fails, is resumed and ends."""
    with _disk():
        kubectl("apply", "-f", "-", input=_objects())
        try:
            told = [install(_VALUES)]
            with forwarded():
                told += _filled()
        finally:
            install()
            kubectl("-n", NAMESPACE, "delete", "job,pod", "-l",
                    "app.kubernetes.io/component=run")  # fmt: skip
            kubectl("-n", NAMESPACE, "delete", "pvc/shared", "--timeout=120s")
            kubectl("delete", "pv/shared", "--timeout=120s")
    return "; ".join(told)


def _filled() -> list[str]:
    job = Submitted(*LONG, restarts=0, storage=str(DATA))
    job.sweeping()
    began = time.monotonic()
    with suppress(SystemExit):  # it ends with "No space left on device"
        call(*inside("outside", "dd", "if=/dev/zero", f"of={DATA}/filler", "bs=1M"))
    said = job.end()
    full = f"full: {said}, {time.monotonic() - began:.0f} s later"
    if "FAILED" not in said or "full" not in said:
        raise SystemExit(f"The volume was full, and the job said: {said}")
    call(*inside("outside", "rm", f"{DATA}/filler"))
    again = Submitted(*LONG, storage=str(DATA))
    return [full.replace("FAILED", "it failed"), f"resumed when it was not: {again.end()}"]
