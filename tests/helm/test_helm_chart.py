"""The chart over a matrix of values: valid for Kubernetes, and every reference leads somewhere."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import chart_checks
import jsonschema
import kubernetes_validate
import pytest
import yaml
from chart_render import (
    CHART,
    NAMES,
    NAMESPACE,
    ROOT,
    VALUES,
    Rendered,
    defaults,
    merged,
    refusals,
    render_files,
    render_values,
    rendered,
)

pytestmark = pytest.mark.process

#: The oldest Kubernetes that the chart is for, and the newest whose schemas are at hand.
VERSIONS = ("1.29", kubernetes_validate.latest_version())
CUSTOM = {"DaskCluster", "DaskWorkerGroup", "DaskAutoscaler", "Certificate", "Issuer",
          "HTTPRoute", "PrometheusRule", "ServiceMonitor"}  # fmt: skip
Object = dict[str, Any]


@pytest.fixture(scope="module", params=NAMES)
def chart(request: pytest.FixtureRequest) -> Rendered:
    return rendered(request.param)


def everything(chart: Rendered) -> list[Object]:
    """All objects, with those that the Dask operator and the Prefect worker will make."""
    found = chart_checks.expanded(chart.objects, NAMESPACE)
    run = chart_checks.flow_run(chart.objects)
    return [*found, run] if run is not None else found


def outside(values: Object) -> set[str]:
    """What the values say is made elsewhere."""
    tls, storage, prefect, ingress = (values[k] for k in ("tls", "storage", "prefect", "ingress"))
    declared = {
        *(tls["secretName"], tls["clientSecretName"], tls["certManager"]["issuerName"]),
        *(storage["existingSecret"], storage["pvc"]["existingClaim"]),
        *(prefect["auth"]["existingSecret"], prefect["database"]["existingSecret"]),
        *(ingress["tlsSecretName"], ingress["dashboard"]["auth"]["existingSecret"]),
        values["monitoring"]["serviceMonitor"]["prefect"]["existingSecret"],
        *values["image"]["pullSecrets"],
    }
    return declared - {""}


def test_the_matrix_is_wide_enough() -> None:
    assert len(NAMES) >= 12


# ---------------------------------------------------------------------- Kubernetes' own schemas
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_valid_for_kubernetes(chart: Rendered, version: str) -> None:
    for found in everything(chart):
        if found["kind"] not in CUSTOM:
            validate(json.dumps(found, sort_keys=True), version)


@functools.cache
def validate(text: str, version: str) -> None:
    """Most objects are the same for many values: each is validated once."""
    kubernetes_validate.validate(json.loads(text), version, strict=True)


#: Fields of kinds whose schemas are not in Kubernetes, as far as the chart uses them.
SHAPES: dict[str, Object] = {
    "Issuer": {"ca": {"secretName": str}, "selfSigned": {}},
    "Certificate": {
        **{"isCA": bool, "commonName": str, "secretName": str, "dnsNames": list, "usages": list},
        **{"duration": str, "renewBefore": str},
        "privateKey": {"algorithm": str, "size": int, "rotationPolicy": str},
        "issuerRef": {"name": str, "kind": str, "group": str},
    },
    "HTTPRoute": {"parentRefs": list, "hostnames": list, "rules": list},
    "PrometheusRule": {"groups": list},
    "ServiceMonitor": {
        "selector": {"matchLabels": dict, "matchExpressions": list},
        "endpoints": list,
    },
}


def test_custom_objects_have_the_fields_that_their_kinds_have(chart: Rendered) -> None:
    def check(spec: Object, shape: Object, where: str) -> None:
        for key, value in spec.items():
            assert key in shape, f"{where}: unknown field {key}"
            if isinstance(shape[key], dict):
                check(value, shape[key], f"{where}.{key}")
            else:
                assert isinstance(value, shape[key]), f"{where}.{key}: {value!r}"

    for found in chart.objects:
        if found["kind"] in SHAPES:
            check(found["spec"], SHAPES[found["kind"]], found["kind"])


def test_objects_of_the_dask_operator_fit_its_definitions(chart: Rendered) -> None:
    folder = files("dask_kubernetes.operator").joinpath("customresources")
    definitions = yaml.safe_load(folder.joinpath("templates.yaml").read_text())["definitions"]

    def resolved(node: Any) -> Any:
        if isinstance(node, list):
            return [resolved(value) for value in node]
        if not isinstance(node, dict):
            return node
        name = node.get("$ref", "").rpartition("/")[2]
        if name.startswith("dask."):
            return resolved({"additionalProperties": False, **definitions[name]})
        if name:  # a pod or a service: checked as Kubernetes' own
            return {"type": "object"}
        return {key: resolved(value) for key, value in node.items()}

    for found in chart.objects:
        if found["apiVersion"] == "kubernetes.dask.org/v1":
            file = folder.joinpath(f"{found['kind'].lower()}.yaml")
            version = yaml.safe_load(file.read_text())["spec"]["versions"][0]
            shape = resolved(version["schema"]["openAPIV3Schema"])
            assert version["name"] == "v1"
            shape["properties"]["spec"]["additionalProperties"] = False
            jsonschema.validate({"spec": found["spec"]}, shape)


# ---------------------------------------------------------------------- our own checks
@pytest.mark.parametrize(
    "check",
    [chart_checks.selectors, chart_checks.ports, chart_checks.containers, chart_checks.names],
    ids=lambda check: check.__name__,
)
def test_cross_checks(chart: Rendered, check: Callable[[list[Object]], list[str]]) -> None:
    assert check(everything(chart)) == []


def test_secrets_config_maps_claims_and_accounts_exist_or_are_declared(chart: Rendered) -> None:
    assert chart_checks.references(everything(chart), outside(chart.values)) == []


def test_every_declared_secret_is_used(chart: Rendered) -> None:
    text = json.dumps(everything(chart))
    assert [name for name in outside(chart.values) if f'"{name}"' not in text] == []


def test_the_scheduler_is_one_pod_that_is_replaced_not_doubled() -> None:
    spec = rendered("minimal")["Deployment", "-scheduler"]["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_dask_wants_encryption_unless_the_values_are_insecure(chart: Rendered) -> None:
    config = yaml.safe_load(chart["ConfigMap", "-dask"]["data"]["evdist.yaml"])
    comm = config["distributed"]["comm"]
    assert comm["require-encryption"] is not chart.values["insecure"]
    arguments = json.dumps([pod.spec for pod in chart_checks.pods(everything(chart))])
    assert ("tcp://" in arguments.replace("tcp://prod-evdist-scheduler.clustering.svc.cluster", "")
            ) is chart.values["insecure"]  # fmt: skip


def test_a_changed_setting_restarts_the_pods_that_read_it(tmp_path: Path) -> None:
    base = yaml.safe_load((VALUES / "minimal.yaml").read_text())
    other = render_values(merged(base, {"insecure": True, "tls": {"enabled": False}}), tmp_path)

    def checksum(chart: Rendered) -> str:
        pod = chart["Deployment", "-scheduler"]["spec"]["template"]
        return pod["metadata"]["annotations"]["checksum/dask"]

    assert checksum(rendered("minimal")) != checksum(other)


# ---------------------------------------------------------------------- the network
DNS = {
    *("scheduler", "worker", "prefect-worker", "prefect-server", "keeper"),
    *("run", "test", "deploy"),
}


def ways(*rows: str) -> set[tuple[str, str, str]]:
    return {(a, b, port) for row in rows for a, b, *ports in [row.split()] for port in ports}


def test_policies_allow_what_is_needed_and_nothing_else() -> None:
    found = chart_checks.reachable(everything(rendered("minimal")))
    # The DNS service, and the caches on the nodes.
    ports = ("53", "5353")
    names = {
        (name, to, port) for name in DNS for to in ("@kube-system", "outside") for port in ports
    }
    assert found == names | ways(
        "worker scheduler 8786", "run scheduler 8786", "test scheduler 8786",
        "scheduler worker 8788 8789", "worker worker 8788",
        "prefect-worker prefect-server 4200", "run prefect-server 4200",
        "test prefect-server 4200", "deploy prefect-server 4200", "keeper prefect-server 4200",
        "worker outside 443", "run outside 443", "test outside 443", "keeper outside 443",
        "prefect-server outside 5432", "prefect-worker outside 443 6443",
    )  # fmt: skip


def test_policies_of_a_full_release() -> None:
    found = chart_checks.reachable(everything(rendered("operator-adaptive-gpu")))
    extra = found - chart_checks.reachable(everything(rendered("minimal")))
    assert extra == ways(
        "@dask-operator scheduler 8787", "@monitoring scheduler 8787",
        "@ingress-nginx scheduler 8787", "@monitoring worker 8790", "worker worker 32768-60999",
        "@monitoring keeper 9108",
    )  # fmt: skip


def test_nobody_but_workers_and_clients_reaches_the_scheduler(chart: Rendered) -> None:
    if not chart.values["networkPolicy"]["enabled"]:
        assert chart.values["insecure"]
        return
    found = chart_checks.reachable(everything(chart))
    client = "prefect-worker" if chart.values["prefect"]["worker"]["type"] == "process" else "run"
    assert {a for a, b, port in found if (b, port) == ("scheduler", "8786")} == {
        *("worker", "test", client)
    }
    assert not {row for row in found if row[0] == "outside"}


def test_every_alert_is_what_prometheus_reads() -> None:
    """A comma in a text that is not quoted makes a second annotation, which it refuses."""
    (group,) = rendered("locked")["PrometheusRule", "evdist"]["spec"]["groups"]
    assert len(group["rules"]) >= 14
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule
        assert set(rule["annotations"]) == {"summary"}, rule
        assert rule["annotations"]["summary"].endswith("."), rule


# ---------------------------------------------------------------------- access
def test_roles_hold_only_verbs_that_the_prefect_worker_uses(chart: Rendered) -> None:
    """Counted from the calls in its own code; kopf, which watches for it, lists and watches."""
    text = "".join(
        files("prefect_kubernetes").joinpath(name).read_text()
        for name in ("worker.py", "observer.py")
    )
    verbs = {"read": "get", "list": "list", "create": "create", "delete": "delete",
             "patch": "patch", "replace": "update"}  # fmt: skip
    used = {
        ({"pod": "pods", "pod_log": "pods/log", "job": "jobs", "secret": "secrets"}[what],
         verbs[verb])
        for verb, what in re.findall(r"\.(\w+?)_namespaced_(\w+)\(", text)
    }  # fmt: skip
    used |= {(what, verb) for what in ("pods", "jobs") for verb in ("list", "watch")}
    # Secrets: for an API key of Prefect Cloud or an environment kept in a secret; we set neither.
    used = {pair for pair in used if pair[0] != "secrets"}
    granted = {
        (resource, verb)
        for found in chart.objects
        if found["kind"] == "Role"
        for rule in found["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    kubernetes = chart.values["prefect"]["worker"]["type"] == "kubernetes"
    assert granted == (used if kubernetes else set())
    assert not [o for o in chart.objects if o["kind"].startswith("ClusterRole")]


def test_only_the_prefect_worker_has_a_token(chart: Rendered) -> None:
    holders = [
        pod.labels["app.kubernetes.io/component"]
        for pod in chart_checks.pods(everything(chart))
        if pod.spec["automountServiceAccountToken"]
    ]
    kubernetes = chart.values["prefect"]["worker"]["type"] == "kubernetes"
    assert holders == (["prefect-worker"] if kubernetes else [])


def test_the_operators_orders_are_not_behind_the_ingress() -> None:
    chart = rendered("operator-adaptive-gpu")
    paths = chart["Ingress", "-dashboard"]["spec"]["rules"][0]["http"]["paths"]
    where = {path["path"]: path["backend"]["service"]["name"] for path in paths}
    assert where["/api"].endswith("-nowhere")
    assert "selector" not in chart["Service", "-nowhere"]["spec"]


# ---------------------------------------------------------------------- the renderer itself
@pytest.mark.parametrize("name", NAMES)
def test_the_values_are_merged_as_the_tests_merge_them(name: str) -> None:
    given = yaml.safe_load((VALUES / f"{name}.yaml").read_text())
    assert rendered(name).values == merged(defaults(), given)


def test_the_schema_takes_every_value_file_of_the_matrix(chart: Rendered) -> None:
    assert refusals(chart.values) == []


def test_the_engine_refuses_a_key_of_something_missing(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    file.write_text("dask: null\n")
    assert "nil pointer evaluating interface {}." in render_files(str(file))[str(file)]["error"]


def test_contradictory_numbers_are_refused_in_a_sentence(tmp_path: Path) -> None:
    base = yaml.safe_load((VALUES / "operator.yaml").read_text())
    wrong = {"dask": {"workers": {"adaptive": {"enabled": True, "minimum": 9, "maximum": 3}}}}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(merged(base, wrong)))
    said = render_files(str(file))[str(file)]["error"]
    assert "minimum must not exceed maximum, got 9 and 3" in said


def test_jobs_use_the_storage_and_what_else_is_allowed() -> None:
    run = chart_checks.flow_run(rendered("locked").objects)
    assert run is not None
    (container,) = run["spec"]["template"]["spec"]["containers"]
    found = {one["name"]: one.get("value") for one in container["env"]}
    assert found["EVDIST_ALLOWED"] == "s3://evdist/prod,/etc/evdist/test,s3://evdist/public"
    assert "EVDIST_ALLOWED" not in json.dumps(rendered("minimal").objects)


def test_a_proxy_reaches_prefect_and_nothing_else() -> None:
    def reached(name: str) -> list[str]:
        policies = [o for o in rendered(name).objects if o["kind"] == "NetworkPolicy"]
        return [o["metadata"]["name"] for o in policies if "name: auth\n" in yaml.safe_dump(o)]

    assert reached("placed") == ["prod-evdist-prefect-server"]
    assert reached("minimal") == []


def test_a_gateway_and_prometheus_reach_prefect_and_nothing_else() -> None:
    chart = rendered("gateway")
    found = chart_checks.reachable(everything(chart))
    assert {row for row in found if row[0] == "@gateways"} == ways("@gateways prefect-server 4200")
    assert {b for a, b, _ in found if a == "@monitoring"} == {
        "scheduler", "worker", "prefect-server", "keeper"
    }  # fmt: skip
    route = chart["HTTPRoute", "prefect"]["spec"]
    assert route["hostnames"] == ["prefect.example.org"]
    (target,) = route["rules"][0]["backendRefs"]
    service = chart["Service", target["name"]]
    assert target["port"] in [port["port"] for port in service["spec"]["ports"]]


def test_prefect_is_scraped_with_its_auth_string() -> None:
    chart = rendered("gateway")
    (end,) = chart["ServiceMonitor", "evdist-prefect"]["spec"]["endpoints"]
    assert (end["port"], end["path"]) == ("http-prefect", "/api/metrics")
    assert end["basicAuth"]["password"] == {"name": "prefect-scrape", "key": "password"}
    (server,) = [pod for pod in chart_checks.pods(chart.objects) if "-prefect" in pod.owner
                 and pod.labels["app.kubernetes.io/component"] == "prefect-server"]  # fmt: skip
    variables = {one["name"]: one.get("value") for one in server.containers[0]["env"]}
    assert variables["PREFECT_SERVER_METRICS_ENABLED"] == "true"


def test_the_database_is_migrated_before_an_upgrade_by_a_pod_that_reaches_nothing_else() -> None:
    chart = rendered("gateway")
    job, policy = chart["Job", "migrate"], chart["NetworkPolicy", "migrate"]
    weights = []
    for one in (policy, job):  # the policy first: all else is denied
        notes = one["metadata"]["annotations"]
        assert notes["helm.sh/hook"] == "pre-upgrade"
        weights.append(int(notes.get("helm.sh/hook-weight", "0")))
    assert weights[0] < weights[1]
    found = chart_checks.reachable(everything(chart))
    assert {row for row in found if row[0] == "migrate" and row[2] not in ("53", "5353")} == ways(
        "migrate outside 5432"
    )


def test_renewed_certificates_replace_the_pods_that_have_read_them() -> None:
    chart = rendered("gateway")
    made = {one["spec"]["secretName"] for one in chart.objects if one["kind"] == "Certificate"}
    key = "secret.reloader.stakater.com/reload"
    told = {
        one["metadata"]["name"]: one["metadata"].get("annotations", {}).get(key)
        for one in chart.objects if one["kind"] == "Deployment"
    }  # fmt: skip
    for name, secret in told.items():
        # A Prefect worker of the kind kubernetes has no certificate: its flow runs have.
        assert (secret in made) == name.endswith(("scheduler", "worker")) or "prefect" in name
    assert {name for name, secret in told.items() if secret} == {
        "prod-evdist-scheduler", "prod-evdist-worker"
    }  # fmt: skip


def test_traces_are_sent_by_variables_that_reach_flow_runs_and_workers(tmp_path: Path) -> None:
    """OpenTelemetry's own variables; docs/kubernetes.md says what Prefect makes of them."""
    mine = yaml.safe_load((VALUES / "minimal.yaml").read_text())
    page = (ROOT / "docs/kubernetes.md").read_text()
    (text,) = re.findall(r"```yaml\n(# traces\n.*?)```", page, re.S)
    values = merged(mine, yaml.safe_load(text))
    assert refusals(merged(defaults(), values)) == []
    chart = render_values(values, tmp_path)
    wanted = {one["name"] for one in values["extraEnv"]}
    pods = chart_checks.pods(everything(chart))
    for owner in ("Job flow-run", "Deployment prod-evdist-worker"):
        (pod,) = [pod for pod in pods if pod.owner == owner]
        assert wanted <= {one["name"] for one in pod.containers[0]["env"]}


def test_notes_warn_of_an_insecure_release(chart: Rendered) -> None:
    assert ("WARNING: insecure" in chart.notes) is chart.values["insecure"]
    assert "<no value>" not in chart.notes


# ---------------------------------------------------------------------- documented
def leaves(values: Object, path: str = "") -> list[str]:
    found = []
    for key, value in values.items():
        here = f"{path}.{key}" if path else key
        inner = isinstance(value, dict) and value and key not in ("resources", "labels")
        found += leaves(value, here) if inner else [here]
    return found


def test_every_value_is_documented() -> None:
    page = (CHART / "README.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \|", page, re.M)
    assert sorted(rows) == sorted(leaves(defaults()))


def test_every_value_changes_something(tmp_path: Path) -> None:
    """A value that no template reads is no value."""
    silent = leaves(defaults())
    for base in ("locked", "gpu", "operator-adaptive-gpu", "volume", "ingress",
                 "cert-manager-issuer", "external-prefect", "gateway"):  # fmt: skip
        values = rendered(base).values
        files = {name: tmp_path / f"{base}-{name}.json" for name in silent}
        for name, file in files.items():
            file.write_text(json.dumps(changed(values, name.split("."))))
        plain = str(VALUES / f"{base}.yaml")
        found = render_files(plain, *map(str, files.values()))
        before = found[plain]["templates"]
        silent = [n for n, file in files.items() if found[str(file)].get("templates") == before]
    assert silent == []


def changed(values: Object, path: list[str]) -> Object:
    """The values with one of them replaced by another of its type."""
    key, *inner = path
    old = values[key]
    if inner:
        return {**values, key: changed(old, inner)}
    other = {bool: lambda: not old, int: lambda: old + 1, str: lambda: "changed",
             list: lambda: [{"key": "changed"}] if key == "tolerations" else [1],
             dict: lambda: {**old, "changed": "x"}}[type(old)]()  # fmt: skip
    if key == "resources":
        other = {**old, "limits": {"cpu": "77", "memory": "777Gi"}}
    return {**values, key: other}


def test_the_stored_job_template_is_that_of_the_chart() -> None:
    """deploy/job-template.json is for those who make the work pool by hand."""
    of_chart = json.loads(rendered("minimal")["ConfigMap", "evdist-prefect"]["data"][
        "job-template.json"])  # fmt: skip
    stored = json.loads((ROOT / "deploy" / "job-template.json").read_text())
    assert stored == of_chart


# ---------------------------------------------------------------------- the checks can fail
def broken(change: Callable[[dict[str, Object]], None], name: str = "minimal") -> list[Object]:
    objects = copy.deepcopy(everything(rendered(name)))
    change({f"{o['kind']} {o['metadata']['name'].removeprefix('prod-evdist')}": o for o in objects})
    return objects


def pod_of(found: dict[str, Object], name: str) -> Object:
    return found[f"Deployment -{name}"]["spec"]["template"]["spec"]


def box_of(found: dict[str, Object], name: str) -> Object:
    return pod_of(found, name)["containers"][0]


FAULTS: list[tuple[str, Callable[[dict[str, Object]], Any], str]] = [
    ("selectors", lambda o: o["Service -scheduler"]["spec"]["selector"].update(x="y"),
     "no pod has the labels"),
    ("selectors", lambda o: o["Deployment -worker"]["spec"]["selector"]["matchLabels"]
     .update(x="y"),
     "does not take its own pods"),
    ("selectors", lambda o: o["PodDisruptionBudget -worker"]["spec"]["selector"]["matchLabels"]
     .update({"app.kubernetes.io/component": "wroker"}), "no pod has the labels"),
    ("selectors", lambda o: o["NetworkPolicy -worker"]["spec"]["ingress"][0]["from"][0]
     ["podSelector"]["matchLabels"].update({"app.kubernetes.io/component": "schedular"}),
     "no pod has the labels"),
    ("ports", lambda o: o["Service -scheduler"]["spec"]["ports"][0].update(targetPort="comm"),
     "has no port comm"),
    ("ports", lambda o: o["Service -prefect"]["spec"]["ports"][0].update(port=99999), "port 99999"),
    ("ports", lambda o: box_of(o, "worker")["livenessProbe"]["httpGet"].update(port="http"),
     "livenessProbe of worker asks port http"),
    ("ports", lambda o: o["NetworkPolicy -worker"]["spec"]["ingress"][0]["ports"][0].update(port=9),
     "does not listen on 9"),
    ("containers", lambda o: box_of(o, "worker")["resources"]["limits"].update(cpu="banana"),
     "'banana' is no quantity"),
    ("containers", lambda o: box_of(o, "worker")["resources"].pop("limits"), "cpu is missing"),
    ("containers", lambda o: box_of(o, "worker")["resources"]["requests"].update(memory="1Ti"),
     "asks for more than its limit"),
    ("containers", lambda o: box_of(o, "scheduler")["securityContext"]
     .pop("readOnlyRootFilesystem"),
     "readOnlyRootFilesystem is None"),
    ("containers", lambda o: pod_of(o, "prefect")["securityContext"].update(runAsNonRoot=False),
     "may run as root"),
    ("containers", lambda o: box_of(o, "prefect").update(image="evdist:latest"), "is not pinned"),
    ("names", lambda o: o["Service -prefect"]["metadata"].update(name="Prod_Prefect"),
     "an illegal name"),
    ("names", lambda o: o["Service -prefect"].update(kind="HorizontalPodAutoscaler"),
     "not their CPU"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "fault", "words"), FAULTS)
def test_a_broken_chart_is_found(check: str, fault: Callable[..., Any], words: str) -> None:
    problems = getattr(chart_checks, check)(broken(fault))
    assert any(words in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda o: pod_of(o, "scheduler")["volumes"][0]["configMap"].update(name="x"),
         "no config map 'x'"),
        (lambda o: pod_of(o, "worker").update(serviceAccountName="x"), "no service account 'x'"),
        (lambda o: box_of(o, "worker")["env"].append({"name": "A_PASSWORD", "value": "x"}),
         "does not come from a secret"),
        (lambda o: box_of(o, "worker")["volumeMounts"].append({"name": "x", "mountPath": "/x"}),
         "which is no volume"),
        (lambda o: box_of(o, "prefect-worker")["volumeMounts"].pop(), "which nothing mounts"),
        (lambda o: box_of(o, "worker")["env"].pop(0), "DASK_WORKER_NAME in the arguments"),
    ],
)  # fmt: skip
def test_a_broken_reference_is_found(fault: Callable[..., Any], words: str) -> None:
    problems = chart_checks.references(broken(fault), outside(rendered("minimal").values))
    assert any(words in problem for problem in problems), problems
