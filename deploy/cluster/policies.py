"""NetworkPolicies of Kubernetes as rules of nftables: ``python policies.py FOLDER HOST NETWORK``.

The smallest thing that enforces them, for a cluster whose pods are routed, not bridged: every
packet of a pod passes the hooks `forward` or `input` of its node. What a policy means is computed
from the objects alone and written as one ruleset, which the kernel takes as a whole. A pod that is
not known yet may reach nothing and is reached by nothing: between its start and its rules there is
no moment in which it is open.

Traffic of a node's own processes to its pods is not filtered: Kubernetes wants its probes to pass.
"""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Object = Mapping[str, Any]
#: Seconds between two looks at the objects.
_LOOK = 0.5
_TABLE = "evdist_policies"


@dataclass(frozen=True)
class Pod:
    """What policies see of a pod."""

    namespace: str
    name: str
    ip: str
    labels: Mapping[str, str]
    #: Name of a port -> number.
    ports: Mapping[str, int] = field(default_factory=dict)


def pods_of(found: Object) -> list[Pod]:
    """Pods with an address of their own; those that have ended have given it back."""
    return [
        Pod(
            item["metadata"]["namespace"],
            item["metadata"]["name"],
            item["status"]["podIP"],
            item["metadata"].get("labels", {}),
            {
                port["name"]: port["containerPort"]
                for container in item["spec"]["containers"]
                for port in container.get("ports", [])
                if "name" in port
            },
        )
        for item in found["items"]
        if item["status"].get("podIP")
        and not item["spec"].get("hostNetwork")
        and item["status"].get("phase") not in ("Succeeded", "Failed")
    ]


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Whether a label selector takes what has these labels; an empty one takes all."""
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for one in selector.get("matchExpressions", []):
        key, values = one["key"], one.get("values", [])
        there = key in labels
        good = {
            "In": there and labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": there,
            "DoesNotExist": not there,
        }[one["operator"]]
        if not good:
            return False
    return True


def directions(policy: Object) -> list[str]:
    """What a policy isolates its pods from."""
    spec = policy["spec"]
    return spec.get("policyTypes") or ["Ingress", *(["Egress"] if "egress" in spec else [])]


def peers(
    peer: Object, namespace: str, pods: Iterable[Pod], namespaces: Mapping[str, Mapping[str, str]]
) -> Iterator[str]:
    """Addresses of one peer of a rule, as nftables writes them."""
    if "ipBlock" in peer:
        without = "".join(f" ip ADDR != {one}" for one in peer["ipBlock"].get("except", []))
        yield f"ip ADDR {peer['ipBlock']['cidr']}{without}"
        return
    wanted = peer.get("podSelector", {})
    found = [
        pod.ip
        for pod in pods
        if selects(wanted, pod.labels)
        and (
            selects(peer["namespaceSelector"], namespaces.get(pod.namespace, {}))
            if "namespaceSelector" in peer
            else pod.namespace == namespace
        )
    ]
    if found:
        yield f"ip ADDR {{ {', '.join(sorted(found))} }}"


def _ports(rule: Object, named: Mapping[str, int]) -> list[str]:
    """Conditions on the port, one of which must hold; a port by its name is the receiver's."""
    found = []
    for one in rule.get("ports", []):
        protocol, port = one.get("protocol", "TCP").lower(), one.get("port")
        port = named.get(port) if isinstance(port, str) else port
        if "port" not in one:
            found.append(f"meta l4proto {protocol}")
        elif port is not None:
            last = f"-{one['endPort']}" if "endPort" in one else ""
            found.append(f"{protocol} dport {port}{last}")
    return found if "ports" in rule else [""]


def allowed(
    pod: Pod,
    direction: str,
    pods: list[Pod],
    policies: Iterable[Object],
    namespaces: Mapping[str, Mapping[str, str]],
) -> list[str] | None:
    """Conditions under which a packet passes; None where no policy isolates the pod."""
    own = [
        policy
        for policy in policies
        if policy["metadata"]["namespace"] == pod.namespace
        and direction in directions(policy)
        and selects(policy["spec"].get("podSelector", {}), pod.labels)
    ]
    if not own:
        return None
    side, address = ("from", "saddr") if direction == "Ingress" else ("to", "daddr")
    found = []
    for policy in own:
        for rule in policy["spec"].get(direction.lower()) or []:
            places = [
                text.replace("ADDR", address)
                for peer in rule.get(side) or []
                for text in peers(peer, pod.namespace, pods, namespaces)
            ]
            for place in places if rule.get(side) else [""]:
                for port in _ports(rule, pod.ports if direction == "Ingress" else {}):
                    found.append(f"{place} {port}".strip())
    return sorted(set(found))


def ruleset(
    pods: list[Pod],
    policies: list[Object],
    namespaces: Mapping[str, Mapping[str, str]],
    network: str,
) -> str:
    """All rules of a node, in the place of those before. `network` holds the pods of all nodes."""
    lines = [f"table inet {_TABLE}", f"delete table inet {_TABLE}", f"table inet {_TABLE} {{"]
    ways: dict[str, list[str]] = {"Ingress": [], "Egress": []}
    for number, pod in enumerate(sorted(pods, key=lambda one: (one.namespace, one.name))):
        for direction, address in (("Ingress", "daddr"), ("Egress", "saddr")):
            conditions = allowed(pod, direction, pods, policies, namespaces)
            if conditions is None:
                ways[direction].append(f"ip {address} {pod.ip} return")
                continue
            chain = f"{direction.lower()}_{number}"
            lines.append(f"  chain {chain} {{")
            lines += [f"    {condition} return" for condition in conditions]
            lines += ["    reject with icmp type admin-prohibited", "  }"]
            ways[direction].append(f"ip {address} {pod.ip} goto {chain}")
    for direction, rules in ways.items():
        lines.append(f"  chain {direction.lower()} {{")
        lines += [f"    {rule}" for rule in rules]
        lines += ["    drop", "  }"]  # a pod that is not known yet
    lines += [
        "  chain forward {",
        "    type filter hook forward priority 0; policy accept;",
        "    ct state established,related accept",
        f"    ip saddr {network} jump egress",
        f"    ip daddr {network} jump ingress",
        "  }",
        # To the node itself: what a policy says of addresses outside holds for it, too.
        "  chain input {",
        "    type filter hook input priority 0; policy accept;",
        "    ct state established,related accept",
        f"    ip saddr {network} jump egress",
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------------- the process of a node
class Api:
    """Lists of objects from the API server."""

    def __init__(self, folder: Path, host: str):
        self._context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        self._context.load_cert_chain(folder / "policies.crt", folder / "policies.key")
        self._host = host
        self._line: http.client.HTTPSConnection | None = None

    def items(self, path: str) -> Any:
        if self._line is None:
            self._line = http.client.HTTPSConnection(
                self._host, 6443, context=self._context, timeout=10
            )
        try:
            # From the server's memory: it is asked twice a second.
            self._line.request("GET", f"{path}?resourceVersion=0")
            answer = self._line.getresponse()
            content = answer.read()
            if answer.status != 200:
                raise OSError(f"{path}: {answer.status} {content[:200]!r}")
            return json.loads(content)
        except Exception:
            self._line.close()
            self._line = None
            raise


def look(api: Api, network: str) -> str:
    """The rules for the objects as they are now."""
    names = {
        one["metadata"]["name"]: one["metadata"].get("labels", {})
        for one in api.items("/api/v1/namespaces")["items"]
    }
    policies = api.items("/apis/networking.k8s.io/v1/networkpolicies")["items"]
    return ruleset(pods_of(api.items("/api/v1/pods")), policies, names, network)


def main(folder: Path, host: str, network: str) -> None:
    api, before = Api(folder, host), ""
    while True:
        try:
            rules = look(api, network)
            if rules != before:
                subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
                before = rules
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")  # the rules of before stay
        time.sleep(_LOOK)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:4])
