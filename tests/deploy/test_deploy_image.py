"""The image and the compose file: linted, installed in a clean environment, and cross-checked."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from chart_render import rendered
from cryptography import x509

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()


def steps(stage: str) -> list[tuple[str, str]]:
    """(instruction, rest) of one stage, continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.M).replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line.strip()]
    starts = [n for n, (word, _) in enumerate(lines) if word == "FROM"] + [len(lines)]
    for first, last in itertools.pairwise(starts):
        if lines[first][1].endswith(f"AS {stage}") or (stage == "" and last == len(lines)):
            return [(word, rest) for word, rest in lines[first:last]]
    raise AssertionError(f"no stage {stage!r}")


# ---------------------------------------------------------------------- Dockerfile
@pytest.mark.process
def test_hadolint_has_nothing_against_the_dockerfile() -> None:
    linter = Path(sys.executable).parent / "hadolint"
    done = subprocess.run(
        [linter, "--failure-threshold", "style", "--no-color", DEPLOY / "Dockerfile"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_runs_as_nobody_in_particular() -> None:
    final = steps("")
    assert ("USER", "10001:10001") in final
    assert all(word != "ADD" for word, _ in final)
    assert any(word == "HEALTHCHECK" for word, _ in final)


def test_the_recipe_of_published_images_has_platforms_a_list_of_parts_and_pins() -> None:
    """`docker buildx bake`: no option of it that the Dockerfile does not know."""
    recipe = json.loads((DEPLOY / "docker-bake.json").read_text())
    known = set(re.findall(r"^ARG (\w+)", DOCKERFILE, re.M))
    cpu, cuda = recipe["target"]["cpu"], recipe["target"]["cuda"]
    assert {*cpu["args"], *cuda["args"]} <= known
    assert (ROOT / cpu["dockerfile"]).is_file()
    assert set(cpu["platforms"]) == {"linux/amd64", "linux/arm64"}
    assert {"type=sbom", "type=provenance,mode=max"} == set(cpu["attest"])
    assert cuda["inherits"] == ["cpu"]
    named = set(re.findall(r"\$\{(\w+)\}", json.dumps(recipe["target"])))
    assert named == set(recipe["variable"])
    # A digest is part of PYTHON: every stage starts from it.
    assert {rest.split()[0] for stage in ("build", "") for word, rest in steps(stage)
            if word == "FROM"} == {"python:${PYTHON}"}  # fmt: skip
    chart = yaml.safe_load((ROOT / "helm/evdist/Chart.yaml").read_text())
    assert recipe["variable"]["VERSION"]["default"] == chart["appVersion"]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in ignored if line.startswith("!")}
    assert "*" in ignored
    copied = [
        source
        for stage in ("build", "")
        for word, rest in steps(stage)
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert set(copied) == allowed
    assert [name for name in copied if not (ROOT / name).exists()] == []


@pytest.mark.process
@pytest.mark.timeout(1500)
def test_the_install_steps_run_in_a_clean_environment(tmp_path: Path) -> None:
    """The RUN steps of the build stage, as they stand, with other folders and the index at hand.

    Then the image's programs are there and answer, with nothing of this environment in sight.
    """
    source, target = tmp_path / "src", tmp_path / "evdist"
    source.mkdir()
    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        "TORCH_INDEX": "",  # that of this machine holds builds for the CPU
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_QUIET": "1",
        "PIP_NO_COMPILE": "0",  # pip takes it for the value of "compile"
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    for word, rest in steps("build"):
        if word == "COPY":
            *names, _ = rest.split()
            for name in names:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                copy(ROOT / name, source / name)
        elif word == "RUN":
            command = rest.replace("/opt/evdist", str(target))
            done = subprocess.run(
                ["sh", "-ec", command], cwd=source, env=env, capture_output=True, text=True,
                check=False, timeout=1400,
            )  # fmt: skip
            assert done.returncode == 0, done.stdout + done.stderr
    programs = target / "bin"
    checks = [
        [programs / "evdist", "--version"],
        [programs / "dask", "scheduler", "--version"],
        [programs / "python", "-c", "import evdist.service.monitor.scheduler, prefect_kubernetes,"
         " asyncpg, s3fs, torch, evdist.service.client.deployment"],
        [programs / "python", DEPLOY / "health.py"],
    ]  # fmt: skip
    for check in checks:
        subprocess.run(check, cwd=tmp_path, env=env, check=True, timeout=120, capture_output=True)
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines()
        if "==" in line
    )  # fmt: skip
    listed = subprocess.run(
        [programs / "pip", "list", "--format=json"], env={**env, "PIP_QUIET": "0"}, check=True,
        capture_output=True, text=True, timeout=60,
    ).stdout  # fmt: skip
    pinned = {name.lower().replace("_", "-").replace(".", "-"): v for name, v in pins.items()}
    known = {"pip", "setuptools", "evdist"}
    loose = [
        f"{package['name']} {package['version']}"
        for package in json.loads(listed)
        if (name := package["name"].lower().replace("_", "-").replace(".", "-")) not in known
        and pinned.get(name) != package["version"].partition("+")[0]
        # An index without builds of torch for the CPU gives one that brings CUDA along.
        and not name.startswith(("nvidia-", "cuda-", "triton"))
    ]
    assert loose == []


# ---------------------------------------------------------------------- health.py
def test_the_health_command(monkeypatch: pytest.MonkeyPatch) -> None:
    main = runpy.run_path(str(DEPLOY / "health.py"))["main"]
    monkeypatch.delenv("EVDIST_HEALTH_URL", raising=False)
    assert main([]) is None
    assert "must be an http address" in main(["file:///etc/passwd"])
    assert "does not answer" in main(["http://127.0.0.1:9/health"])


@pytest.mark.process
def test_a_container_starts_with_the_kernels_of_the_image(tmp_path: Path) -> None:
    """They are copied to where numba may write, once; without them the command runs as well."""
    kernels, kept = tmp_path / "kernels", tmp_path / "numba"
    (kernels / "a").mkdir(parents=True)
    (kernels / "a" / "one.nbi").write_text("1")
    script = (DEPLOY / "start.sh").read_text().replace("/opt/evdist/kernels", str(kernels))
    (tmp_path / "start.sh").write_text(script)
    env = {"PATH": os.environ["PATH"], "NUMBA_CACHE_DIR": str(kept)}

    def start() -> str:
        return subprocess.run(
            ["sh", tmp_path / "start.sh", "cat", kept / "a" / "one.nbi"], env=env, check=False,
            capture_output=True, text=True, timeout=10,
        ).stdout  # fmt: skip

    assert start() == "1"
    (kept / "a" / "one.nbi").write_text("2")
    assert start() == "2"
    shutil.rmtree(kernels), shutil.rmtree(kept)
    assert start() == ""


# ---------------------------------------------------------------------- certificates.py
def test_certificates_are_renewed_with_the_same_authority(tmp_path: Path) -> None:
    make = runpy.run_path(str(DEPLOY / "certificates.py"))["make"]

    def read(name: str) -> x509.Certificate:
        return x509.load_pem_x509_certificate((tmp_path / name).read_bytes())

    make(tmp_path, ["scheduler", "127.0.0.1"], 30)
    old, ca = read("dask/tls.crt"), read("ca/ca.crt")
    make(tmp_path, ["scheduler", "127.0.0.1"], 90)
    new = read("dask/tls.crt")
    assert read("ca/ca.crt") == ca == read("client/ca.crt")
    assert new.serial_number != old.serial_number
    new.verify_directly_issued_by(ca)
    assert (new.not_valid_after_utc - new.not_valid_before_utc).days == 90
    usage = read("client/tls.crt").extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert [use._name for use in usage] == ["clientAuth"]
    for name in ("ca/ca.key", "dask/tls.key", "client/tls.key"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


# ---------------------------------------------------------------------- compose.yaml
@functools.cache
def compose() -> dict[str, Any]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def services() -> dict[str, dict[str, Any]]:
    return compose()["services"]


def test_the_compose_file_fits_the_specification() -> None:
    folder = files("check_jsonschema").joinpath("builtin_schemas/vendor")
    schema = json.loads(folder.joinpath("compose-spec.json").read_text())
    jsonschema.validate(compose(), schema)


def test_services_and_volumes_that_are_named_exist() -> None:
    for name, service in services().items():
        assert set(service.get("depends_on", {})) <= set(services()), name
        for volume in service.get("volumes", []):
            source = volume["source"] if isinstance(volume, dict) else volume.partition(":")[0]
            there = source in compose()["volumes"] or (DEPLOY / source).is_file()
            assert there, f"{name}: {source}"


def test_who_waits_for_health_waits_for_somebody_who_tells_it() -> None:
    for name, service in services().items():
        for other, wait in service.get("depends_on", {}).items():
            asked = services()[other]
            if wait["condition"] == "service_healthy":
                url = asked.get("environment", {}).get("EVDIST_HEALTH_URL")
                assert url or "healthcheck" in asked, f"{name} waits for {other}"
            if wait["condition"] == "service_completed_successfully":
                assert asked["restart"] == "on-failure", f"{name} waits for {other}"


def test_prefect_is_well_only_with_its_database() -> None:
    assert services()["prefect"]["environment"]["EVDIST_HEALTH_URL"].endswith("/api/ready")


def test_every_container_of_ours_has_its_check_in_the_file() -> None:
    """Images in OCI's format have none: podman would wait for their health for ever."""
    for name, service in services().items():
        if service["image"].startswith("evdist"):
            check = service["healthcheck"]
            assert check.get("disable") or "/app/health.py" in check["test"], name


def test_only_this_machine_reaches_published_ports() -> None:
    ports = [port for service in services().values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_containers_of_ours_are_locked() -> None:
    for name, service in services().items():
        if service["image"].startswith("evdist"):
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
        assert re.search(r":[\w.-]*\d", service["image"]), f"{name}: {service['image']}"


def test_no_password_stands_in_the_file() -> None:
    example = (DEPLOY / "env.example").read_text()
    wanted = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose.yaml").read_text()))
    given = set(re.findall(r"^(\w+)=", example, re.M))
    assert wanted <= given
    for service in services().values():
        for key, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|AUTH", key):
                assert re.fullmatch(r"\$\{\w+(:\?[^}]*)?\}", value), key


def test_the_settings_of_dask_are_those_of_the_chart() -> None:
    chart = yaml.safe_load(rendered("minimal")["ConfigMap", "-dask"]["data"]["evdist.yaml"])
    text = (DEPLOY / "dask.yaml").read_text().replace("/tls/dask/", "/tls/")
    assert yaml.safe_load(text) == chart


@pytest.mark.parametrize("name", ["scheduler", "worker", "prefect", "prefect-worker"])
def test_command_lines_are_those_of_the_chart(name: str) -> None:
    """But for addresses, names and amounts."""
    chart = rendered("process-s3")
    ours = {"scheduler": "evdist-scheduler", "worker": "evdist-worker", "prefect": "evdist-prefect",
            "prefect-worker": "prefect-worker"}[name]  # fmt: skip
    args = chart["Deployment", ours]["spec"]["template"]["spec"]["containers"][0]["args"]

    def plain(arguments: list[str]) -> list[str]:
        return [re.sub(r"=[$\d].*|//[^:]*", "", a) for a in arguments if "--name=" not in a]

    assert plain(services()[name]["command"]) == plain(args)
