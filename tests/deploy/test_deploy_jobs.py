"""The job of a flow run, as the Prefect worker makes it from the base job template."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import chart_checks
import kubernetes_validate
import prefect.settings
import pytest
from chart_render import rendered
from kubernetes_asyncio.client import ApiClient, Configuration
from prefect.client.schemas.objects import FlowRun
from prefect_kubernetes.settings import KubernetesSettings
from prefect_kubernetes.worker import KubernetesWorker, KubernetesWorkerJobConfiguration

ROOT = Path(__file__).resolve().parents[2]
AUTH = "operator:correct horse battery staple"

pytestmark = [
    pytest.mark.process,
    # Of the worker's own dependencies, while they are imported.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def api() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Something that takes jobs as Kubernetes' API does, and keeps what it was sent."""
    taken: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            taken.append({"path": self.path, "body": body})
            answer = copy.deepcopy(body)
            answer["metadata"]["name"] = "run-1"
            content = json.dumps(answer).encode()
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def job(api: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the worker of the chart sends to Kubernetes for one flow run."""
    url, taken = api
    # As the chart sets it for the worker.
    prefix = "PREFECT_INTEGRATIONS_KUBERNETES_WORKER_API_AUTH_STRING_SECRET"
    monkeypatch.setenv(f"{prefix}_NAME", "prefect-auth")
    monkeypatch.setenv(f"{prefix}_KEY", "auth-string")
    template = json.loads((ROOT / "deploy" / "job-template.json").read_text())

    async def send() -> None:
        given = {"env": {"EVDIST_EXTRA": "1"}, "memory_limit": "12Gi", "gpus": 1}
        configuration = await KubernetesWorkerJobConfiguration.from_template_and_values(
            base_job_template=template,
            values=given,
            client=object(),  # no block is named: not asked
        )
        # The worker passes its own settings on to the job, the auth string among them.
        configuration.env["PREFECT_API_AUTH_STRING"] = AUTH
        configuration.prepare_for_flow_run(FlowRun(id=uuid.uuid4(), flow_id=uuid.uuid4(), name="r"))
        worker = KubernetesWorker(work_pool_name="evdist-kubernetes")
        async with ApiClient(Configuration(host=url)) as client:
            await worker._create_job(configuration, client)

    asyncio.run(send())
    (one,) = taken
    assert one["path"] == "/apis/batch/v1/namespaces/clustering/jobs"
    return one["body"]


def test_the_job_is_valid_locked_and_holds_no_secret(job: dict[str, Any]) -> None:
    assert AUTH not in json.dumps(job)
    entries = {e["name"]: e for e in job["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert entries["PREFECT_API_AUTH_STRING"]["valueFrom"] == {
        "secretKeyRef": {"name": "prefect-auth", "key": "auth-string"}
    }
    assert entries["EVDIST_SCHEDULER"]["value"].startswith("tls://prod-evdist-scheduler.")
    assert entries["AWS_SECRET_ACCESS_KEY"]["valueFrom"]["secretKeyRef"]["name"] == "s3-keys"
    assert entries["EVDIST_EXTRA"]["value"] == "1"

    pod = job["spec"]["template"]["spec"]
    # Prefect insists on these two in a place where Kubernetes does not know them.
    del pod["parallelism"], pod["completions"]
    job["metadata"]["name"] = "run-1"
    for version in ("1.29", kubernetes_validate.latest_version()):
        kubernetes_validate.validate(job, version, strict=True)
    assert chart_checks.containers([job]) == []


def test_variables_of_a_deployment_reach_the_pod(job: dict[str, Any]) -> None:
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "2", "memory": "12Gi", "nvidia.com/gpu": 1}


def test_the_pod_is_one_that_the_network_policies_know(job: dict[str, Any]) -> None:
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["app.kubernetes.io/instance"] == "prod"
    assert labels["app.kubernetes.io/component"] == "run"
    assert "prefect.io/flow-run-id" in labels


@pytest.mark.parametrize("name", ["minimal", "process-s3", "ingress"])
def test_prefect_knows_every_variable_that_the_chart_sets(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt one would be ignored without a word."""
    entries = {
        entry["name"]: entry.get("value", "from a secret")
        for pod in chart_checks.pods(rendered(name).objects)
        for container in pod.containers
        for entry in container.get("env", [])
        if entry["name"].startswith("PREFECT_")
    }
    own = {key: value for key, value in entries.items() if "_INTEGRATIONS_" in key}
    for key in set(entries) - set(own):
        assert getattr(prefect.settings, key).name == key
    plain = json.dumps(KubernetesSettings().model_dump(mode="json"))
    for key, value in own.items():
        with monkeypatch.context() as patch:
            patch.setenv(key, value)
            assert json.dumps(KubernetesSettings().model_dump(mode="json")) != plain, key
