"""What a rendered chart must hold beyond the schemas of Kubernetes: references that lead somewhere.

Each check takes the objects of one rendering and gives a list of problems in words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from dask_kubernetes.operator.controller.controller import (
    build_scheduler_deployment_spec,
    build_scheduler_service_spec,
    build_worker_deployment_spec,
)

Object = dict[str, Any]


# ---------------------------------------------------------------------- what there is
@dataclass(frozen=True)
class Pod:
    """A pod as its template has it."""

    owner: str
    labels: Mapping[str, str]
    spec: Object

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def ports(self) -> dict[str, int]:
        return {
            port["name"]: port["containerPort"]
            for container in self.containers
            for port in container.get("ports", [])
        }


def expanded(objects: Sequence[Object], namespace: str) -> list[Object]:
    """The objects, with what the Dask operator makes of its own kinds, made by its own code."""
    result = []
    for found in objects:
        name = found["metadata"]["name"]
        spec = found.get("spec", {})
        labels = found["metadata"].get("labels", {})
        if found["kind"] == "DaskCluster":
            scheduler, worker = spec["scheduler"], spec["worker"]
            about = [
                scheduler["metadata"]["annotations"],
                {**labels, **scheduler["metadata"]["labels"]},
            ]
            result += [
                build_scheduler_deployment_spec(name, scheduler["spec"], *about),
                build_scheduler_service_spec(name, scheduler["service"], *about),
                _worker(f"{name}-default", name, namespace, worker, labels),
            ]
        elif found["kind"] == "DaskWorkerGroup":
            result.append(_worker(name, spec["cluster"], namespace, spec["worker"], labels))
        else:
            result.append(found)
    return result


def _worker(group: str, cluster: str, namespace: str, worker: Object, labels: Object) -> Object:
    return build_worker_deployment_spec(
        group, namespace, cluster, "0123456789", worker["spec"], worker["metadata"]["annotations"],
        {**labels, **worker["metadata"]["labels"]},
    )  # fmt: skip


def flow_run(objects: Sequence[Object]) -> Object | None:
    """The job of a flow run as the base job template has it with its defaults."""
    for found in objects:
        if found["kind"] == "ConfigMap" and "job-template.json" in found["data"]:
            template = json.loads(found["data"]["job-template.json"])
            values = {
                name: variable["default"]
                for name, variable in template["variables"]["properties"].items()
                if "default" in variable
            }
            manifest = _filled(template["job_configuration"]["job_manifest"], values)
            pod = manifest["spec"]["template"]["spec"]
            # Prefect insists on these two in a place where Kubernetes does not know them.
            del pod["parallelism"], pod["completions"]
            pod["containers"][0].pop("args")
            manifest["metadata"] = {"name": "flow-run", "labels": {}}
            return manifest
    return None


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, values) for value in node]
    match = re.fullmatch(r"\{\{ (\w+) \}\}", node) if isinstance(node, str) else None
    return values.get(match[1], node) if match else node


def pods(objects: Sequence[Object]) -> list[Pod]:
    found = []
    for one in objects:
        name = f"{one['kind']} {one['metadata']['name']}"
        if one["kind"] == "Pod":
            found.append(Pod(name, one["metadata"]["labels"], one["spec"]))
        elif "template" in one.get("spec", {}):
            template = one["spec"]["template"]
            found.append(Pod(name, template["metadata"]["labels"], template["spec"]))
    return found


def _of(objects: Sequence[Object], kind: str) -> Iterator[tuple[str, Object]]:
    for one in objects:
        if one["kind"] == kind:
            yield f"{kind} {one['metadata']['name']}", one


def matches(selector: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a label selector (matchLabels, matchExpressions with In) takes these labels."""
    exact = selector.get("matchLabels", {})
    among = selector.get("matchExpressions", [])
    return all(labels.get(key) == value for key, value in exact.items()) and all(
        labels.get(rule["key"]) in rule["values"] for rule in among
    )


# ---------------------------------------------------------------------- checks
#: Variables whose values may not stand in a manifest; endings of those that only name a secret.
_SENSITIVE = re.compile(r"SECRET|PASSWORD|AUTH_STRING|ACCESS_KEY|CONNECTION_URL")
_NAMES_ONLY = ("_SECRET_NAME", "_SECRET_KEY")


def selectors(objects: Sequence[Object]) -> list[str]:
    """Every selector takes the pods it means, and a workload its own."""
    there = pods(objects)
    wrong = []
    for kind in ("Deployment",):
        for name, one in _of(objects, kind):
            labels = one["spec"]["template"]["metadata"]["labels"]
            if not matches(one["spec"]["selector"], labels):
                wrong.append(f"{name}: its selector does not take its own pods")
            taken = [pod.owner for pod in there if matches(one["spec"]["selector"], pod.labels)]
            if len(taken) > 1:
                wrong.append(f"{name}: its selector takes pods of {', '.join(taken)}")
    asked: list[tuple[str, Mapping[str, Any]]] = []
    for name, one in _of(objects, "Service"):
        if "selector" in one["spec"]:
            asked.append((name, {"matchLabels": one["spec"]["selector"]}))
    for name, one in _of(objects, "PodDisruptionBudget"):
        asked.append((name, one["spec"]["selector"]))
    for name, one in _of(objects, "NetworkPolicy"):
        asked.append((name, one["spec"]["podSelector"]))
        for rule in [*one["spec"].get("ingress", []), *one["spec"].get("egress", [])]:
            peers = [*rule.get("from", []), *rule.get("to", [])]
            asked += [(name, peer["podSelector"]) for peer in peers if "podSelector" in peer]
    for pod in there:
        for spread in pod.spec.get("topologySpreadConstraints", []):
            if not matches(spread["labelSelector"], pod.labels):
                wrong.append(f"{pod.owner}: it is spread among pods that are not its own")
    for name, selector in asked:
        if not any(matches(selector, pod.labels) for pod in there):
            wrong.append(f"{name}: no pod has the labels {dict(selector)}")
    for name, one in _of(objects, "ServiceMonitor"):
        seen = [
            service["spec"]["ports"]
            for _, service in _of(objects, "Service")
            if matches(one["spec"]["selector"], service["metadata"]["labels"])
        ]
        named = {port["name"] for ports in seen for port in ports}
        wrong += [
            f"{name}: no service has the port {end['port']}"
            for end in one["spec"]["endpoints"]
            if end["port"] not in named
        ]
    return wrong


def ports(objects: Sequence[Object]) -> list[str]:
    """Every port that a service, probe, policy or ingress names exists."""
    there = pods(objects)
    wrong = []
    for pod in there:
        numbers = [p["containerPort"] for c in pod.containers for p in c.get("ports", [])]
        if len(numbers) != len(set(numbers)) or not all(0 < n < 65536 for n in numbers):
            wrong.append(f"{pod.owner}: ports {numbers}")
        for container in pod.containers:
            own = {port["name"] for port in container.get("ports", [])}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                port = container.get(probe, {}).get("httpGet", {}).get("port")
                if port is not None and port not in own:
                    wrong.append(f"{pod.owner}: {probe} of {container['name']} asks port {port}")
    services = {one["metadata"]["name"]: one["spec"] for _, one in _of(objects, "Service")}
    for name, spec in services.items():
        for pod in there:
            if "selector" in spec and matches({"matchLabels": spec["selector"]}, pod.labels):
                wrong += [
                    f"Service {name}: {pod.owner} has no port {port['targetPort']}"
                    for port in spec["ports"]
                    if port["targetPort"] not in pod.ports
                ]
        wrong += [
            f"Service {name}: port {port['port']}"
            for port in spec["ports"]
            if not 0 < port["port"] < 65536
        ]
    for name, one in _of(objects, "NetworkPolicy"):
        own = [pod for pod in there if matches(one["spec"]["podSelector"], pod.labels)]
        for rule in one["spec"].get("ingress", []):
            wrong += _listening(name, own, rule["ports"])
        for rule in one["spec"].get("egress", []):
            for peer in rule["to"]:
                if "podSelector" in peer:
                    others = [pod for pod in there if matches(peer["podSelector"], pod.labels)]
                    wrong += _listening(name, others, rule["ports"])
    for name, one in _of(objects, "Ingress"):
        for rule in one["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                target = path["backend"]["service"]
                known = {port["name"] for port in services.get(target["name"], {}).get("ports", [])}
                if target["port"]["name"] not in known:
                    wrong.append(f"{name}: there is no {target['name']}:{target['port']['name']}")
    return wrong


def _listening(name: str, there: list[Pod], wanted: list[Object]) -> list[str]:
    """Policy ports on which no container of these pods listens; a range is for ranks alone."""
    return [
        f"{name}: {pod.owner} does not listen on {port['port']}"
        for port in wanted
        for pod in there
        if "endPort" not in port and port["port"] not in pod.ports.values()
    ]


def references(objects: Sequence[Object], external: set[str]) -> list[str]:
    """Secrets, config maps, claims, accounts and volumes that are named exist or are `external`."""
    wrong = []
    maps = {one["metadata"]["name"]: one["data"] for _, one in _of(objects, "ConfigMap")}
    claims = {one["metadata"]["name"] for _, one in _of(objects, "PersistentVolumeClaim")}
    made = {one["spec"]["secretName"] for _, one in _of(objects, "Certificate")}
    accounts = {one["metadata"]["name"] for _, one in _of(objects, "ServiceAccount")}
    secrets = made | external

    def check(where: str, kind: str, name: str, known: set[str]) -> None:
        if name not in known:
            wrong.append(f"{where}: there is no {kind} {name!r}")

    for pod in pods(objects):
        check(pod.owner, "service account", pod.spec["serviceAccountName"], accounts)
        for secret in pod.spec.get("imagePullSecrets", []):
            check(pod.owner, "secret", secret["name"], secrets)
        volumes = {}
        for volume in pod.spec.get("volumes", []):
            volumes[volume["name"]] = volume
            if "secret" in volume:
                check(pod.owner, "secret", volume["secret"]["secretName"], secrets)
            if "configMap" in volume:
                check(pod.owner, "config map", volume["configMap"]["name"], set(maps))
            if "persistentVolumeClaim" in volume:
                name = volume["persistentVolumeClaim"]["claimName"]
                check(pod.owner, "claim", name, claims | external)
        used = set()
        for container in pod.containers:
            names = [entry["name"] for entry in container.get("env", [])]
            if len(names) != len(set(names)):
                wrong.append(f"{pod.owner}: a variable is set twice: {names}")
            for entry in container.get("env", []):
                source = entry.get("valueFrom", {})
                if "secretKeyRef" in source:
                    check(pod.owner, "secret", source["secretKeyRef"]["name"], secrets)
                elif _SENSITIVE.search(entry["name"]) and not entry["name"].endswith(_NAMES_ONLY):
                    wrong.append(f"{pod.owner}: {entry['name']} does not come from a secret")
            mounts = container.get("volumeMounts", [])
            used |= {mount["name"] for mount in mounts}
            wrong += [
                f"{pod.owner}: {container['name']} mounts {mount['name']}, which is no volume"
                for mount in mounts
                if mount["name"] not in volumes
            ]
            wrong += _unmounted(pod.owner, container, mounts)
            wrong += [
                f"{pod.owner}: {name} in the arguments of {container['name']} is not set"
                for argument in container.get("args", [])
                for name in re.findall(r"\$\((\w+)\)", argument)
                if name not in names
            ]
        wrong += [f"{pod.owner}: no container mounts {name}" for name in set(volumes) - used]
    for name, one in _of(objects, "Ingress"):
        for entry in one["spec"].get("tls", []):
            check(name, "secret", entry["secretName"], secrets)
        auth = one["metadata"]["annotations"].get("nginx.ingress.kubernetes.io/auth-secret")
        if auth is not None:
            check(name, "secret", auth, secrets)
    for name, one in _of(objects, "Issuer"):
        if "ca" in one["spec"]:
            check(name, "secret", one["spec"]["ca"]["secretName"], secrets)
    issuers = {one["metadata"]["name"] for _, one in _of(objects, "Issuer")}
    for name, one in _of(objects, "Certificate"):
        check(name, "issuer", one["spec"]["issuerRef"]["name"], issuers | external)
    for name, one in _of(objects, "RoleBinding"):
        roles = {role["metadata"]["name"] for _, role in _of(objects, "Role")}
        check(name, "role", one["roleRef"]["name"], roles)
        for subject in one["subjects"]:
            check(name, "service account", subject["name"], accounts)
    return wrong


def _unmounted(owner: str, container: Object, mounts: list[Object]) -> list[str]:
    """Files that arguments and variables name lie in something that is mounted."""
    texts = [*container.get("args", []), *(e.get("value", "") for e in container.get("env", []))]
    folders = [mount["mountPath"] for mount in mounts]
    return [
        f"{owner}: {container['name']} names {path}, which nothing mounts"
        for text in texts
        for path in re.findall(r"(?:^|=)(/(?:etc|data|scratch|tmp)\S*)", str(text))
        if not any(path == folder or path.startswith(folder + "/") for folder in folders)
    ]


def containers(objects: Sequence[Object]) -> list[str]:
    """Limits, no root, nothing written but in volumes, no rights, a pinned image."""
    wrong = []
    for pod in pods(objects):
        context = pod.spec.get("securityContext", {})
        if context.get("runAsNonRoot") is not True or not context.get("runAsUser"):
            wrong.append(f"{pod.owner}: may run as root")
        if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            wrong.append(f"{pod.owner}: no seccomp profile")
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(key):
                wrong.append(f"{pod.owner}: {key}")
        wrong += [
            f"{pod.owner}: volume {volume['name']} is none of those allowed"
            for volume in pod.spec.get("volumes", [])
            if not {"configMap", "secret", "emptyDir", "persistentVolumeClaim"} & set(volume)
        ]
        for container in pod.containers:
            where = f"{pod.owner}: container {container['name']}"
            held = container.get("securityContext", {})
            wanted = {
                "runAsNonRoot": True,
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            wrong += [
                f"{where}: {key} is {held.get(key)}, not {value}"
                for key, value in wanted.items()
                if held.get(key) != value
            ]
            wrong += _amounts(where, container.get("resources", {}))
            if re.search(r"(:latest|/[^:@]*|^[^:@]*)$", container["image"]):
                wrong.append(f"{where}: image {container['image']} is not pinned")
    return wrong


def _amounts(where: str, resources: Object) -> list[str]:
    wrong = []
    for name in ("cpu", "memory"):
        try:
            least = quantity(resources["requests"][name])
            most = quantity(resources["limits"][name])
        except (KeyError, ValueError) as error:
            wrong.append(f"{where}: {name} is missing or no amount ({error})")
            continue
        if not 0 < least <= most:
            wrong.append(f"{where}: {name} asks for more than its limit")
    return wrong


_UNITS = {"m": "0.001", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12", "": "1"}
_UNITS |= {f"{letter}i": str(1024**power) for power, letter in enumerate("KMGTP", 1)}


def quantity(text: str | int) -> Decimal:
    """A quantity of Kubernetes as a number."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]*)", str(text))
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is no quantity")
    return Decimal(match[1]) * Decimal(_UNITS[match[2]])


def names(objects: Sequence[Object]) -> list[str]:
    """Names are unique within a kind and legal; label values are legal; nothing scales by CPU."""
    wrong = []
    seen = set()
    for one in objects:
        name = one["metadata"]["name"]
        if (one["kind"], name) in seen:
            wrong.append(f"{one['kind']} {name} is there twice")
        seen.add((one["kind"], name))
        if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
            wrong.append(f"{one['kind']} {name}: an illegal name")
        if one["kind"] == "HorizontalPodAutoscaler":
            wrong.append(f"{name}: Dask says how many workers it needs, not their CPU")
        for value in one["metadata"].get("labels", {}).values():
            if not re.fullmatch(r"([A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?)?", value):
                wrong.append(f"{one['kind']} {name}: an illegal label {value!r}")
    return wrong


# ---------------------------------------------------------------------- who may reach whom
def reachable(objects: Sequence[Object]) -> set[tuple[str, str, str]]:
    """(from, to, port) that the policies allow between components and with what is outside.

    Both ends must allow: egress of the one, ingress of the other. "outside" is any address,
    "@namespace" the pods of a namespace.
    """
    policies = [one["spec"] for _, one in _of(objects, "NetworkPolicy")]
    there = {pod.labels["app.kubernetes.io/component"]: pod for pod in pods(objects)}

    def allowed(component: str, way: str, far: str) -> set[tuple[str, str]]:
        pod, found = there[component], set()
        for policy in policies:
            if not matches(policy["podSelector"], pod.labels):
                continue
            for rule in policy.get(way, []):
                numbers = [
                    f"{port['port']}" + (f"-{port['endPort']}" if "endPort" in port else "")
                    for port in rule["ports"]
                ]
                for peer in rule[far]:
                    found |= {(who, n) for who in _who(peer, there) for n in numbers}
        return found

    outgoing = {name: allowed(name, "egress", "to") for name in there}
    incoming = {name: allowed(name, "ingress", "from") for name in there}
    result = set()
    for name in there:
        for other, port in outgoing[name]:
            if other not in there or (name, port) in incoming[other]:
                result.add((name, other, port))
        result |= {(other, name, port) for other, port in incoming[name] if other not in there}
    return result


def _who(peer: Object, there: Mapping[str, Pod]) -> list[str]:
    if "ipBlock" in peer:
        return ["outside"]
    if "namespaceSelector" in peer:
        return ["@" + peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]]
    return [name for name, pod in there.items() if matches(peer["podSelector"], pod.labels)]
