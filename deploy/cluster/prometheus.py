"""Debian's Prometheus on the trial cluster, in the place of the Prometheus operator.

What the operator would make of the chart's ServiceMonitors and rules is made here, by pure
functions: which ports are scraped, and the rules with seconds in the place of their minutes.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from cluster import IMAGES, kubectl, wait_for
from policies import selects
from trial import NAMESPACE, RELEASE

#: As `networkPolicy.monitoringNamespace` of the chart.
MONITORING = "monitoring"
Object = Mapping[str, Any]
#: Of a rule's expression: what would take an hour to cause -> what takes a minute.
_SOONER = {
    "EvdistJobsQueued": (r"> 3600", "> 20"),
    "EvdistRunsCrash": (r"\[1h\]\) > 2", "[1h]) > 0"),
    "EvdistJobsFail": (r"\[1h\]\) > 5", "[1h]) > 1"),
}


def scrapes(monitor: Object, services: list[Object]) -> list[dict[str, Any]]:
    """What the operator makes of a ServiceMonitor: one job of Prometheus for each endpoint.

    Debian's Prometheus cannot ask Kubernetes: the services' names are asked of the DNS service.
    """
    meta, spec = monitor["metadata"], monitor["spec"]
    ours = [one for one in services if selects(spec["selector"], one["metadata"]["labels"])]
    found = []
    for number, endpoint in enumerate(spec["endpoints"]):
        for service in ours:
            for port in service["spec"]["ports"]:
                if port["name"] == endpoint["port"]:
                    name = f"{service['metadata']['name']}.{meta['namespace']}.svc.cluster.local"
                    found.append(
                        {
                            "job_name": f"{meta['name']}/{number}/{service['metadata']['name']}",
                            "metrics_path": endpoint["path"],
                            "dns_sd_configs": [{"names": [name], "type": "A",
                                                "port": port["port"], "refresh_interval": "5s"}],
                            "relabel_configs": [{"target_label": "namespace",
                                                 "replacement": meta["namespace"]}],
                        }
                    )  # fmt: skip
    return found


def sooner(rules: Object, seconds: int = 10) -> dict[str, Any]:
    """The chart's rules, with `seconds` in the place of their minutes, and with _SOONER."""
    found = copy.deepcopy(dict(rules["spec"]))
    for rule in (rule for group in found["groups"] for rule in group["rules"]):
        if "for" in rule:
            rule["for"] = f"{seconds}s"
        if rule["alert"] in _SOONER:
            old, new = _SOONER[rule["alert"]]
            rule["expr"], count = re.subn(old, new, rule["expr"])
            if count != 1:
                raise ValueError(f"{rule['alert']}: {old} is not in {rule['expr']}")
    return found


def settings(monitors: list[Object], services: list[Object]) -> dict[str, Any]:
    """prometheus.yml"""
    return {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": ["/etc/prometheus/rules.yml"],
        "scrape_configs": [job for monitor in monitors for job in scrapes(monitor, services)],
    }


def objects(files: Mapping[str, str]) -> dict[str, Any]:
    """Prometheus in its namespace."""
    meta = {"name": "prometheus", "namespace": MONITORING}
    container = {
        "name": "prometheus",
        "image": IMAGES["prometheus"],
        "imagePullPolicy": "Never",
        "args": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/data",
                 "--web.listen-address=:9090"],
        "ports": [{"name": "web", "containerPort": 9090}],
        "readinessProbe": {"httpGet": {"path": "/-/ready", "port": 9090}, "periodSeconds": 2},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/prometheus"},
                         {"name": "data", "mountPath": "/data"}],
    }  # fmt: skip
    spec = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "prometheus"}},
                    {"name": "data", "emptyDir": {}}],
    }  # fmt: skip
    labels = {"app": "prometheus"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MONITORING}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": dict(files)},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
         "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta,
         "spec": {"selector": labels, "ports": [{"name": "web", "port": 9090}]}},
    ]  # fmt: skip
    return {"apiVersion": "v1", "kind": "List", "items": items}


# ---------------------------------------------------------------------- on the cluster
def up() -> set[str]:
    """Start Prometheus with what the chart made; the names of its alerts."""
    monitors = _listed("servicemonitors.monitoring.coreos.com")
    (rules,) = _listed("prometheusrules.monitoring.coreos.com")
    quick = sooner(rules)
    # JSON is YAML.
    content = {
        "prometheus.yml": json.dumps(settings(monitors, _listed("services")), indent=1),
        "rules.yml": json.dumps(quick, indent=1),
    }
    kubectl("apply", "-f", "-", input=json.dumps(objects(content)))
    kubectl("-n", MONITORING, "rollout", "status", "deployment/prometheus", "--timeout=180s")
    wait_for("metrics of all parts", lambda: len(_ask("query?query=up==1")["result"]) >= 4)
    return {rule["alert"] for group in quick["groups"] for rule in group["rules"]}


def _listed(kind: str) -> list[Object]:
    ours = f"app.kubernetes.io/instance={RELEASE}"
    return json.loads(kubectl("-n", NAMESPACE, "get", kind, "-l", ours, "-o", "json"))["items"]


def down() -> None:
    kubectl("delete", "namespace", MONITORING, "--ignore-not-found", "--wait=false")


def _ask(what: str) -> Any:
    path = f"/api/v1/namespaces/{MONITORING}/services/prometheus:9090/proxy/api/v1/{what}"
    return json.loads(kubectl("get", "--raw", path))["data"]


def firing() -> set[str]:
    """Names of the alerts that fire now."""
    return {
        one["labels"]["alertname"] for one in _ask("alerts")["alerts"] if one["state"] == "firing"
    }


def fires(alert: str, seconds: float) -> float:
    """Wait until an alert fires; after how many seconds."""
    began = time.monotonic()
    wait_for(f"{alert}", lambda: alert in firing(), seconds)
    return time.monotonic() - began
