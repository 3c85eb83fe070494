"""What parts of the trial cluster read: certificates, settings, objects. Pure but for `write`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

#: Addresses, all of them inside network namespaces of the cluster's own.
SERVICES, PODS, DNS = "10.96.0.0/16", "10.91.0.0/16", "10.96.0.10"
API, OUTSIDE = "10.90.0.1", "10.92.0.2"
#: Sysctls of the machine that kubelet writes: it gets scratch files in their place.
SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


@dataclass(frozen=True)
class Node:
    """One node: its number, from 1, decides its name and addresses."""

    number: int

    @property
    def name(self) -> str:
        return f"node-{self.number}"

    @property
    def address(self) -> str:
        return f"10.90.0.{self.number}"

    @property
    def pods(self) -> str:
        return f"10.91.{self.number}.0/24"


# ---------------------------------------------------------------------- certificates
@dataclass(frozen=True)
class Issued:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes


def authority() -> Issued:
    key = ec.generate_private_key(ec.SECP256R1())
    return _issue("evdist-cluster", [], [], key, None)


def issue(ca: Issued, name: str, groups: list[str], hosts: list[str]) -> Issued:
    """A certificate of both kinds, for clients (name, groups) and for servers (hosts)."""
    return _issue(name, groups, hosts, ec.generate_private_key(ec.SECP256R1()), ca)


def _issue(name: str, groups: list[str], hosts: list[str], key: Any, ca: Issued | None) -> Issued:
    subject = x509.Name(
        [
            *(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups),
            x509.NameAttribute(NameOID.COMMON_NAME, name),
        ]
    )
    issuer, signer = subject, key
    if ca is not None:
        issuer = x509.load_pem_x509_certificate(ca.certificate).subject
        signer = serialization.load_pem_private_key(ca.key, None)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca is None, None), critical=True)
    )
    if ca is not None:
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
        made = made.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in hosts])
        made = made.add_extension(names, critical=False)
    return Issued(
        made.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def certificates(nodes: list[Node]) -> dict[str, Issued]:
    """Of every part, by the name of its files."""
    ca = authority()
    names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"]
    masters = ["system:masters"]
    return {
        "ca": ca,
        "apiserver": issue(ca, "apiserver", masters, [*names, "10.96.0.1", API, "127.0.0.1"]),
        "admin": issue(ca, "admin", masters, []),
        "policies": issue(ca, "policies", masters, []),
        "controllers": issue(ca, "system:kube-controller-manager", [], []),
        "scheduler": issue(ca, "system:kube-scheduler", [], []),
        "proxy": issue(ca, "system:kube-proxy", [], []),
        "accounts": issue(ca, "accounts", [], []),
        **{
            node.name: issue(ca, f"system:node:{node.name}", ["system:nodes"], [node.address])
            for node in nodes
        },
    }


def kubeconfig(folder: Path, name: str) -> str:
    """How a part reaches the API server."""
    cluster = {
        "server": f"https://{API}:6443",
        "certificate-authority": str(folder / "ca.crt"),
    }
    user = {
        "client-certificate": str(folder / f"{name}.crt"),
        "client-key": str(folder / f"{name}.key"),
    }
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "here", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": name}}],
            "current-context": "here",
        },
        indent=1,
    )


# ---------------------------------------------------------------------- settings
def containerd(folder: Path, pause: str) -> str:
    """Settings of a node's containerd."""
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""version = 2
root = "{folder}/containerd"
state = "{folder}/containerd-state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs"]
[grpc]
address = "{folder}/containerd.sock"
[{cri}]
sandbox_image = "{pause}"
# The machine may lack CAP_SYS_RESOURCE: no process can lower its score of the out-of-memory killer.
restrict_oom_score_adj = true
[{cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "{folder}/cni"
[{cri}.containerd]
default_runtime_name = "runc"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


def network(node: Node) -> str:
    """Pods are routed: each has a pair of interfaces of its own, and every packet is forwarded."""
    pods = {"type": "host-local", "ranges": [[{"subnet": node.pods}]],
            "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/evdist-cni"}  # fmt: skip
    return json.dumps(
        {
            "cniVersion": "0.4.0",
            "name": "evdist",
            "plugins": [{"type": "ptp", "ipMasq": False, "mtu": 1500, "ipam": pods}],
        }
    )


def kubelet(folder: Path, pki: Path, node: Node) -> str:
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(pki / "ca.crt")},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "tlsCertFile": str(pki / f"{node.name}.crt"),
            "tlsPrivateKeyFile": str(pki / f"{node.name}.key"),
            "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
            "cgroupDriver": "cgroupfs",
            # Two nodes on one machine share its cgroups: each has a part of its own.
            "cgroupRoot": f"/evdist-cluster/{node.name}",
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "failCgroupV1": False,
            "clusterDNS": [DNS],
            "clusterDomain": "cluster.local",
            "resolvConf": str(folder / "resolv.conf"),
            "podLogsDir": str(folder / "logs"),
            "volumePluginDir": str(folder / "plugins"),
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "5s",
            "shutdownGracePeriod": "0s",
            "oomScoreAdj": 0,
        },
        indent=1,
    )


def proxy(folder: Path, node: Node) -> str:
    return json.dumps(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "hostnameOverride": node.name,
            "clusterCIDR": PODS,
            "clientConnection": {"kubeconfig": str(folder / "proxy.conf")},
            # Of the whole machine: left as they are.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
            "oomScoreAdj": 0,
        }
    )


def apiserver(pki: Path) -> list[str]:
    return [
        "kube-apiserver",
        "--etcd-servers=http://127.0.0.1:2379",
        f"--advertise-address={API}",
        "--secure-port=6443",
        f"--service-cluster-ip-range={SERVICES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=false",
        f"--client-ca-file={pki}/ca.crt",
        f"--tls-cert-file={pki}/apiserver.crt",
        f"--tls-private-key-file={pki}/apiserver.key",
        f"--kubelet-certificate-authority={pki}/ca.crt",
        f"--kubelet-client-certificate={pki}/apiserver.crt",
        f"--kubelet-client-key={pki}/apiserver.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={pki}/accounts.crt",
        f"--service-account-signing-key-file={pki}/accounts.key",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--event-ttl=3h",
        # It asks etcd for what only a newer one than Debian's answers.
        "--feature-gates=SizeBasedListCostEstimate=false",
    ]


def controllers(pki: Path) -> list[str]:
    return [
        "kube-controller-manager",
        f"--kubeconfig={pki}/controllers.conf",
        f"--root-ca-file={pki}/ca.crt",
        f"--service-account-private-key-file={pki}/accounts.key",
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        "--authentication-skip-lookup=true",
    ]


def scheduler(pki: Path) -> list[str]:
    return [
        "kube-scheduler",
        f"--kubeconfig={pki}/scheduler.conf",
        "--leader-elect=false",
        "--authentication-skip-lookup=true",
    ]


# ---------------------------------------------------------------------- the DNS service
_COREFILE = """.:53 {
    errors
    health :8080
    ready :8181
    kubernetes cluster.local in-addr.arpa {
        pods insecure
    }
    cache 5
}
"""


def dns(image: str) -> str:
    """CoreDNS in kube-system, which network policies know by this namespace."""
    labels = {"k8s-app": "kube-dns"}
    meta = {"name": "coredns", "namespace": "kube-system"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coredns"}
    read = ["list", "watch"]
    container = {
        "name": "coredns",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"name": "dns", "containerPort": 53, "protocol": "UDP"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 2},
        "resources": {"requests": {"cpu": "20m", "memory": "30Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
    }
    spec = {
        "serviceAccountName": "coredns",
        "dnsPolicy": "Default",
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    objects: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "coredns"},
            "rules": [
                {"apiGroups": [""], "verbs": read,
                 "resources": ["endpoints", "services", "pods", "namespaces"]},
                {"apiGroups": ["discovery.k8s.io"], "verbs": read, "resources": ["endpointslices"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "coredns"},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", **meta}],
        },
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta,
         "data": {"Corefile": _COREFILE}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system"},
            "spec": {
                "clusterIP": DNS,
                "selector": labels,
                "ports": [{"name": "dns", "port": 53, "protocol": "UDP"},
                          {"name": "dns-tcp", "port": 53, "protocol": "TCP"}],
            },
        },
    ]  # fmt: skip
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def write(path: Path, content: str | bytes) -> None:
    """A file that only its owner reads; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(0o600)
