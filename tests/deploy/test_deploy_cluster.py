"""The pure parts of the trial cluster: policies as rules, settings, versions, torch's wheel."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

ROOT = Path(__file__).resolve().parents[2]
CLUSTER = ROOT / "deploy" / "cluster"


@pytest.fixture(scope="module", autouse=True)
def importable() -> Any:
    """Its scripts import each other from their own folder."""
    sys.path.insert(0, str(CLUSTER))
    yield
    sys.path.remove(str(CLUSTER))


# ---------------------------------------------------------------------- network policies
def policy(name: str, pods: dict, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ours"},
        "spec": {"podSelector": {"matchLabels": pods}, **spec},
    }


NAMESPACES = {"ours": {"kubernetes.io/metadata.name": "ours"}, "kube-system": {"name": "dns"}}


@pytest.fixture
def pods() -> list[Any]:
    from policies import Pod

    return [
        Pod("ours", "a", "10.91.1.1", {"app": "a"}, {"web": 80}),
        Pod("ours", "b", "10.91.1.2", {"app": "b"}),
        Pod("kube-system", "dns", "10.91.1.3", {}),
    ]


def test_a_pod_without_policies_is_open(pods):
    from policies import allowed

    assert allowed(pods[0], "Ingress", pods, [], NAMESPACES) is None
    elsewhere = policy("x", {"app": "b"})
    assert allowed(pods[0], "Ingress", pods, [elsewhere], NAMESPACES) is None


def test_a_selected_pod_lets_in_what_the_rules_name_and_nothing_else(pods):
    from policies import allowed

    ports = [{"protocol": "TCP", "port": "web"}, {"port": 8000, "endPort": 9000}]
    rules = [{"from": [{"podSelector": {"matchLabels": {"app": "b"}}}], "ports": ports}]
    found = allowed(
        pods[0], "Ingress", pods, [policy("in", {"app": "a"}, ingress=rules)], NAMESPACES
    )
    assert found == [
        "ip saddr { 10.91.1.2 } tcp dport 80",
        "ip saddr { 10.91.1.2 } tcp dport 8000-9000",
    ]
    assert allowed(pods[0], "Ingress", pods, [policy("none", {})], NAMESPACES) == []


def test_peers_of_other_namespaces_and_addresses_outside(pods):
    from policies import allowed

    to = [
        {"to": [{"namespaceSelector": {"matchLabels": {"name": "dns"}}}],
         "ports": [{"protocol": "UDP", "port": 53}]},
        {"to": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]},
    ]  # fmt: skip
    found = allowed(pods[1], "Egress", pods, [policy("out", {"app": "b"}, egress=to)], NAMESPACES)
    assert found == [
        "ip daddr 10.0.0.0/8 ip daddr != 10.1.0.0/16",
        "ip daddr { 10.91.1.3 } udp dport 53",
    ]


def test_a_rule_whose_peers_are_no_pods_lets_nobody_in(pods):
    from policies import allowed

    rules = [{"from": [{"podSelector": {"matchLabels": {"app": "gone"}}}]}]
    assert allowed(pods[0], "Ingress", pods, [policy("in", {}, ingress=rules)], NAMESPACES) == []
    everybody = policy("all", {}, ingress=[{}])
    assert allowed(pods[0], "Ingress", pods, [everybody], NAMESPACES) == [""]


@pytest.mark.parametrize(
    ("selector", "labels", "taken"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {"a": "1"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
    ],
)
def test_selectors(selector, labels, taken):
    from policies import selects

    assert selects(selector, labels) is taken


def test_an_unknown_pod_is_dropped_and_a_known_one_goes_to_its_chain(pods):
    from policies import ruleset

    rules = ruleset(pods, [policy("deny", {"app": "a"})], NAMESPACES, "10.91.0.0/16")
    assert "ip daddr 10.91.1.1 goto ingress_1" in rules
    assert "ip daddr 10.91.1.2 return" in rules
    assert re.search(r"chain ingress \{[^}]*drop\s+\}", rules)
    assert rules.count("{") == rules.count("}")


def test_pods_that_have_ended_and_those_of_the_node_are_no_pods():
    from policies import pods_of

    def pod(name: str, **more: Any) -> dict[str, Any]:
        return {
            "metadata": {"name": name, "namespace": "ours"},
            "status": {"podIP": "10.91.1.9", "phase": more.pop("phase", "Running")},
            "spec": {"containers": [{"ports": [{"name": "p", "containerPort": 1}]}], **more},
        }

    items = [pod("a"), pod("b", phase="Succeeded"), pod("c", hostNetwork=True)]
    (found,) = pods_of({"items": items})
    assert (found.name, found.ports) == ("a", {"p": 1})


# ---------------------------------------------------------------------- settings
def test_nodes_have_addresses_and_pods_of_their_own():
    from files import Node

    one, two = Node(1), Node(2)
    assert (one.name, one.address, one.pods) == ("node-1", "10.90.0.1", "10.91.1.0/24")
    assert one.pods != two.pods


def test_every_part_has_a_certificate_of_one_authority():
    from files import Node, certificates

    made = certificates([Node(1)])
    ca = x509.load_pem_x509_certificate(made["ca"].certificate)
    for name, issued in made.items():
        if name != "ca":
            x509.load_pem_x509_certificate(issued.certificate).verify_directly_issued_by(ca)
    node = x509.load_pem_x509_certificate(made["node-1"].certificate).subject.rfc4514_string()
    assert "CN=system:node:node-1" in node
    assert "O=system:nodes" in node


def test_settings_are_what_they_are_read_as(tmp_path):
    from files import Node, dns, kubeconfig, kubelet, network, proxy

    for text in (kubelet(tmp_path, tmp_path, Node(1)), proxy(tmp_path, Node(1)), network(Node(1)),
                 kubeconfig(tmp_path, "admin"), dns("x")):  # fmt: skip
        assert isinstance(json.loads(text), dict)


# ---------------------------------------------------------------------- building
def test_programs_know_the_versions_of_go_mod():
    from build import flags

    linked = flags((CLUSTER / "kubernetes" / "go.mod").read_text())
    version = re.search(r"gitVersion=v1\.(\d+)\.\d+", linked["kube"])
    assert version is not None
    assert f"k8sVersionMinor={version[1]}" in linked["helm"]
    # 1.35 refuses the first version of cgroups by default.
    assert 29 <= int(version[1]) <= 34


def test_torch_without_a_gpu_wants_no_packages_of_cuda():
    from cpu_torch import functions, missing, new_name, script, versions, without_gpu

    text = "Name: torch\nVersion: 2.13.0\nRequires-Dist: nvidia-cublas\nRequires-Dist: sympy\n"
    assert without_gpu(text) == "Name: torch\nVersion: 2.13.0+cpuonly\nRequires-Dist: sympy"
    assert new_name("torch-2.13.0-cp311-cp311-x.whl") == "torch-2.13.0+cpuonly-cp311-cp311-x.whl"
    assert missing({"libcublas.so.13", "libc.so.6", "libc10.so"}, {"libc10.so"}) == [
        "libcublas.so.13"
    ]
    said = (
        "  000000: Version: 1  File: libcudart.so.13  Cnt: 1\n  0x0010:   Name: CUDART  Flags: none"
    )
    assert versions(said) == {"libcudart.so.13": {"CUDART"}}
    defined = functions({"CUDART"}, {"cudaFree@CUDART", "ncclSend", "memcpy"})
    assert defined == {"": ["ncclSend"], "CUDART": ["cudaFree"]}
    assert script(defined) == "CUDART { global: cudaFree; };\n"


def test_the_values_of_the_trial_are_locked():
    text = (CLUSTER / "values.yaml").read_text()
    assert "0.0.0.0/0" not in text


# ---------------------------------------------------------------------- alerts
MONITOR = {
    "metadata": {"name": "evdist", "namespace": "ours"},
    "spec": {
        "selector": {
            "matchLabels": {"app.kubernetes.io/instance": "evdist"},
            "matchExpressions": [
                {"key": "app.kubernetes.io/component", "operator": "In", "values": ["a", "b"]}
            ],
        },
        "endpoints": [{"port": "web", "path": "/metrics"}, {"port": "more", "path": "/m"}],
    },
}


def service(name: str, component: str, *ports: str) -> dict[str, Any]:
    labels = {"app.kubernetes.io/instance": "evdist", "app.kubernetes.io/component": component}
    numbered = [{"name": port, "port": number} for number, port in enumerate(ports, 9000)]
    return {"metadata": {"name": name, "labels": labels}, "spec": {"ports": numbered}}


def test_every_endpoint_of_a_monitor_is_scraped_at_the_services_that_it_selects():
    from prometheus import scrapes

    services = [service("one", "a", "comm", "web"), service("two", "b", "more"),
                service("other", "c", "web")]  # fmt: skip
    found = {
        job["dns_sd_configs"][0]["names"][0]: (
            job["metrics_path"], job["dns_sd_configs"][0]["port"], job["relabel_configs"]
        )
        for job in scrapes(MONITOR, services)
    }  # fmt: skip
    # Alerts ask for the namespace.
    ours = [{"target_label": "namespace", "replacement": "ours"}]
    assert found == {
        "one.ours.svc.cluster.local": ("/metrics", 9001, ours),
        "two.ours.svc.cluster.local": ("/m", 9000, ours),
    }


def test_rules_wait_seconds_and_those_of_an_hour_meet_a_smaller_number():
    from prometheus import sooner

    def rule(expr: str, **more: str) -> dict[str, Any]:
        rules = [{"alert": "EvdistJobsQueued", "expr": expr, **more}]
        return {"spec": {"groups": [{"name": "g", "rules": rules}]}}

    given = rule("waiting > 3600", **{"for": "5m"})
    (found,) = sooner(given)["groups"][0]["rules"]
    assert (found["expr"], found["for"]) == ("waiting > 20", "10s")
    assert given == rule("waiting > 3600", **{"for": "5m"})
    with pytest.raises(ValueError, match="EvdistJobsQueued: > 3600 is not in waiting > 7200"):
        sooner(rule("waiting > 7200"))


def test_every_alert_of_the_chart_is_caused_on_the_trial_cluster():
    from alerts import CAUSES

    text = (ROOT / "helm" / "evdist" / "templates" / "monitoring.yaml").read_text()
    caused = [alert for _, alerts in CAUSES.values() for alert in alerts]
    assert sorted(caused) == sorted(re.findall(r"alert: (\w+)", text))


def test_a_change_of_evdist_is_another_image(tmp_path, monkeypatch):
    import cluster

    (tmp_path / "evdist").mkdir()
    (tmp_path / "flows").mkdir()
    monkeypatch.setattr(cluster, "ROOT", tmp_path)
    (tmp_path / "evdist" / "a.py").write_text("1")
    before = cluster.content()
    (tmp_path / "evdist" / "__pycache__").mkdir()
    (tmp_path / "evdist" / "__pycache__" / "a.pyc").write_text("compiled")
    assert cluster.content() == before
    (tmp_path / "evdist" / "a.py").write_text("2")
    assert cluster.content() != before


def test_the_image_that_is_checked_has_the_kernels_that_the_dockerfile_compiles():
    from build import KERNELS

    text = (ROOT / "deploy" / "Dockerfile").read_text()
    assert re.findall(r"evdist warm --many (.*) &&", text) == [" ".join(KERNELS)]


# ---------------------------------------------------------------------- faults
def test_an_upgrade_to_another_image_begins_with_the_older_one_and_the_rollback_undoes_it():
    from cluster import NEWER, OLDER
    from faults import BEFORE, FAULTS

    upgrade = "helm upgrade, another image"
    assert NEWER != OLDER
    assert BEFORE == {upgrade: ("--set", f"image.tag={OLDER}")}
    names = list(FAULTS)
    assert names.index("helm rollback") == names.index(upgrade) + 1


def test_chains_that_part_the_nodes_are_statements_of_their_own():
    """As nft wants them: without the semicolon it refuses the second one."""
    from faults import cut_rules

    rules = cut_rules()
    assert 'iifname { "node-2" } drop; }; chain postrouting' in rules
    assert rules.endswith("drop; }; }")
