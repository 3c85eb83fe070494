"""Build what the trial cluster needs, once: ``build.py``, and again after a change of evdist.

What is there already is not built again; a build that was cut off goes on. Kubernetes, helm and
CoreDNS come from the Go module proxy at the versions of go.mod, everything else from Debian:
PACKAGES. The image is made from deploy/Dockerfile as it stands, on a base by debootstrap, with
torch without CUDA's libraries (cpu_torch.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster import BIN, CACHE, HERE, IMAGES, NEWER, OLDER, ROOT, call, content, say

PACKAGES = (
    "etcd-server etcd-client containerd runc containernetworking-plugins buildah debootstrap "
    "prometheus nftables conntrack ipset iptables catatonit iproute2 socat ethtool postgresql gcc "
    "binutils"
).split()
PARTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet",
         "kubectl")  # fmt: skip
#: Of the base image, under the name that deploy/Dockerfile starts from.
BASE = "docker.io/library/python:3.11-slim-bookworm"
#: What deploy/Dockerfile compiles.
KERNELS = ("evclus", "ecm", "bootclus")
_BASE_PACKAGES = "python3,python3-venv,python3.11-venv,python3-distutils,ca-certificates"


def version_of(module: str, text: str) -> str:
    """The version that a go.mod requires of a module."""
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v[\d.]+)$", text, re.M)
    if found is None:
        raise SystemExit(f"go.mod does not require {module}")
    return found[1]


def flags(module: str) -> dict[str, str]:
    """Linker flags of each program: without them Kubernetes and helm know no version."""
    kubernetes = version_of("k8s.io/kubernetes", module)
    major, minor, _ = kubernetes.removeprefix("v").split(".")
    base, chart = "k8s.io/component-base/version", "helm.sh/helm/v3/pkg/chartutil"
    named = {
        "kube": {f"{base}.gitVersion": kubernetes, f"{base}.gitMajor": major,
                 f"{base}.gitMinor": minor, f"{base}.gitTreeState": "clean"},
        "helm": {"helm.sh/helm/v3/internal/version.version":
                 version_of("helm.sh/helm/v3", module),
                 f"{chart}.k8sVersionMajor": major, f"{chart}.k8sVersionMinor": minor},
        "coredns": {},
    }  # fmt: skip
    return {
        name: " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in values.items())])
        for name, values in named.items()
    }


def program(name: str, folder: Path, package: str, linker: str) -> None:
    if (BIN / name).exists():
        return
    began = time.monotonic()
    say(f"building {name}")
    env = {**os.environ, "GOFLAGS": "-buildvcs=false -p=2", "GOMAXPROCS": "2", "CGO_ENABLED": "0"}
    made = BIN / f"{name}.new"
    command = ["nice", "-n", "10", "go", "build", "-trimpath", "-ldflags", linker, "-o", made]
    subprocess.run([*map(str, command), package], cwd=folder, env=env, check=True)
    made.rename(BIN / name)
    say(
        f"{name} after {time.monotonic() - began:.0f} s, {(BIN / name).stat().st_size / 1e6:.0f} MB"
    )


def buildah(*arguments: str | Path) -> str:
    places = ["--root", CACHE / "buildah", "--runroot", CACHE / "buildah-run"]
    return call("nice", "-n", "10", "buildah", *places, *arguments).strip()


def archive(image: str, name: str) -> None:
    """An image as a file that containerd imports; not compressed, which takes longer than it."""
    path = CACHE / "images" / f"{name}.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = path.with_suffix(".new")  # what is cut off must not look like it
    whole.unlink(missing_ok=True)
    buildah("push", "--quiet", image, f"docker-archive:{whole}:{image}")
    path.with_suffix(".json").write_text(json.dumps([image]))
    whole.rename(path)
    say(f"{image}: {path.stat().st_size / 1e6:.0f} MB")


def small(image: str, name: str, file: Path, entry: list[str]) -> None:
    """An image of one static program."""
    if (CACHE / "images" / f"{name}.tar").exists():
        return
    container = buildah("from", "scratch")
    buildah("add", "--quiet", container, file, entry[0])
    buildah("config", "--entrypoint", json.dumps(entry), container)
    buildah("commit", "--quiet", "--rm", container, image)
    archive(image, name)


def base() -> None:
    """A Debian with Python, under the name of the Dockerfile's FROM."""
    if BASE in buildah("images", "--format", "{{.Name}}:{{.Tag}}"):
        return
    folder = CACHE / "base"
    shutil.rmtree(folder, ignore_errors=True)
    say("the base image, by debootstrap (four minutes)")
    call("debootstrap", "--variant=minbase", f"--include={_BASE_PACKAGES}", "bookworm", folder)
    (folder / "usr/bin/python").symlink_to("python3.11")
    container = buildah("from", "scratch")
    tar = CACHE / "base.tar"
    call("tar", "-C", folder, "-cf", tar, ".")
    buildah("add", "--quiet", container, tar, "/")
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    buildah("config", "--env", f"PATH={path}", "--cmd", "python3", container)
    buildah("commit", "--quiet", "--rm", container, BASE)
    tar.unlink()
    shutil.rmtree(folder)


def torch() -> Path:
    """The folder with a wheel of torch for this machine."""
    folder = CACHE / "wheels"
    if not list(folder.glob("torch-*.whl")):
        say("torch without CUDA's libraries (two minutes)")
        loaded = CACHE / "torch"
        (pin,) = re.findall(r"^torch==.*$", (ROOT / "constraints.txt").read_text(), re.M)
        call(sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", pin, "-d", loaded)
        folder.mkdir(exist_ok=True)
        call(sys.executable, HERE / "cpu_torch.py", next(loaded.glob("torch-*.whl")), folder)
        shutil.rmtree(loaded)
    return folder


def image(tag: str) -> None:
    """evdist's image, from deploy/Dockerfile and the files that git knows."""
    if (CACHE / "images" / f"evdist-{tag}.tar").exists():
        return
    base()
    wheels, pip = torch(), CACHE / "pip.conf"
    authorities = "/etc/ssl/certs/ca-certificates.crt"
    pip.write_text(f"[global]\nfind-links = /wheels\ncert = {authorities}\n")
    say(f"evdist:{tag} from deploy/Dockerfile (five minutes, on busy cores twenty)")
    name = f"docker.io/library/evdist:{tag}"
    buildah(
        "bud", "--isolation", "chroot", "--network", "host", "--pull=false", "--format", "docker",
        "--build-arg", "TORCH_INDEX=", "--volume", f"{wheels}:/wheels:ro",
        "--volume", f"{pip}:/etc/pip.conf:ro", "--volume", f"{authorities}:{authorities}:ro",
        "--file", ROOT / "deploy" / "Dockerfile", "--tag", name, ROOT,
    )  # fmt: skip
    archive(name, f"evdist-{tag}")


def newer(tag: str, old: str) -> None:
    """The image that is checked: a layer over the old one, with evdist as it stands now.

    An upgrade brings it, too. The old one may hold an older commit: it is not built again.
    """
    path = CACHE / "images" / f"evdist-{tag}.tar"
    mark, now = path.with_suffix(".content"), content()
    if path.exists() and mark.exists() and mark.read_text() == now:
        return
    container = buildah("from", "--pull=never", f"docker.io/library/evdist:{old}")
    places = {"evdist": "/opt/evdist/lib/python3.11/site-packages/evdist", "flows": "/app/flows"}
    run = ("run", "--isolation", "chroot", "--user", "0", container, "--")
    for folder, place in places.items():
        buildah(*run, "rm", "-r", place)  # or files that are no more would stay
        buildah("add", "--quiet", container, ROOT / folder, place)
    # As deploy/Dockerfile does: else each pod compiles what has changed.
    settings = ("NUMBA_CACHE_DIR=/opt/evdist/kernels", "MPLCONFIGDIR=/tmp/matplotlib")
    buildah(*run, "env", *settings, "/opt/evdist/bin/evdist", "warm", "--many", *KERNELS)
    buildah("config", "--label", f"evdist={now}", container)
    name = f"docker.io/library/evdist:{tag}"
    buildah("commit", "--quiet", "--rm", container, name)
    archive(name, f"evdist-{tag}")
    mark.write_text(now)


def prometheus() -> None:
    """Debian's Prometheus, for the alerts."""
    image = IMAGES["prometheus"]
    if (CACHE / "images" / "prometheus.tar").exists():
        return
    container = buildah("from", "--pull=never", BASE)
    buildah("add", "--quiet", container, "/usr/bin/prometheus", "/usr/bin/prometheus")
    buildah("config", "--entrypoint", json.dumps(["/usr/bin/prometheus"]), container)
    buildah("commit", "--quiet", "--rm", container, image)
    archive(image, "prometheus")


def images() -> None:
    image(OLDER)
    newer(NEWER, OLDER)
    prometheus()


def main() -> None:
    if missing := [name for name in PACKAGES if not _installed(name)]:
        raise SystemExit(f"apt-get install --no-install-recommends {' '.join(missing)}")
    BIN.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    free = shutil.disk_usage(CACHE).free / 1e9
    say(f"into {CACHE}: 25 GB with all caches ({free:.0f} GB are free); 20 minutes on two free "
        "cores, an hour on busy ones; what is there already is kept")  # fmt: skip
    # One of them loads while the other computes.
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(programs), pool.submit(images)]:
            done.result()
    say(f"built after {(time.monotonic() - began) / 60:.0f} minutes")


def programs() -> None:
    linker = flags((HERE / "kubernetes" / "go.mod").read_text())
    program("kube", HERE / "kubernetes", "./kube", linker["kube"])
    for part in PARTS:
        (BIN / part).unlink(missing_ok=True)
        (BIN / part).symlink_to("kube")
    program("helm", HERE / "kubernetes", "helm.sh/helm/v3/cmd/helm", linker["helm"])
    program("coredns", HERE / "dns", ".", linker["coredns"])
    small(IMAGES["pause"], "pause", Path("/usr/bin/catatonit"), ["/pause", "-P"])
    small(IMAGES["coredns"], "coredns", BIN / "coredns", ["/coredns"])


def _installed(package: str) -> bool:
    done = subprocess.run(
        ["dpkg-query", "-W", "-f=${Status}", package], capture_output=True, text=True, check=False
    )
    return done.stdout == "install ok installed"


if __name__ == "__main__":
    main()
