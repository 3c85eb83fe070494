"""values.schema.json refuses what is unknown, of a wrong type, or contradicts itself."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from chart_render import VALUES, defaults, merged, refusals

BASE = yaml.safe_load((VALUES / "minimal.yaml").read_text())

#: What is put over good values, and what the answer must say.
WRONG: list[tuple[dict[str, Any], str]] = [
    # unknown
    ({"replicas": 3}, r"values: .*'replicas' was unexpected"),
    ({"dask": {"worker": {}}}, r"dask: .*'worker' was unexpected"),
    ({"tls": {"secret": "x"}}, r"tls: .*'secret' was unexpected"),
    ({"storage": {"secretAccessKey": "x"}}, r"storage: .*'secretAccessKey' was unexpected"),
    ({"prefect": {"auth": {"password": "x"}}}, r"prefect.auth: .*'password' was unexpected"),
    ({"dask": {"workers": {"hpa": {}}}}, r"dask.workers: .*'hpa' was unexpected"),
    # of a wrong kind
    ({"dask": {"workers": {"replicas": "two"}}}, r"workers.replicas: 'two' is not of type"),
    ({"dask": {"workers": {"replicas": -1}}}, r"workers.replicas: -1 is less than the minimum"),
    ({"dask": {"workers": {"resources": {"limits": {"cpu": "banana"}}}}}, r"cpu: 'banana' does"),
    ({"dask": {"workers": {"resources": {"limits": {"memory": "16GB"}}}}}, r"memory: '16GB' does"),
    ({"dask": {"workers": {"resources": {"limits": None}}}}, r"'limits' is a required property"),
    ({"dask": {"mode": "statefulset"}}, r"dask.mode: 'statefulset' is not one of"),
    ({"dask": {"gpu": {"count": 0}}}, r"dask.gpu.count: 0 is less than the minimum"),
    ({"dask": {"workers": {"tolerations": [{"effect": "Never"}]}}}, r"effect: 'Never' is not one"),
    ({"image": {"pullPolicy": "Sometimes"}}, r"image.pullPolicy: 'Sometimes' is not one of"),
    ({"image": {"digest": "sha256:12"}}, r"image.digest: 'sha256:12' does not match"),
    ({"networkPolicy": {"storage": {"ports": [99999]}}}, r"ports.0: 99999 is greater than"),
    ({"networkPolicy": {"storage": {"cidrs": ["everywhere"]}}}, r"cidrs.0: 'everywhere' does not"),
    ({"networkPolicy": {"storage": {"cidrs": []}}}, r"storage.cidrs: \[\] should be non-empty"),
    ({"tls": {"source": "letsencrypt"}}, r"tls.source: 'letsencrypt' is not one of"),
    ({"storage": {"url": "gs://bucket"}}, r"storage.url: 'gs://bucket' does not match"),
    ({"fullnameOverride": "My_Release"}, r"fullnameOverride: 'My_Release' does not match"),
    ({"monitoring": {"serviceMonitor": {"interval": "often"}}}, r"interval: 'often' does not"),
    ({"insecure": "false"}, r"insecure: 'false' is not of type 'boolean'"),
    # not secure, and nobody said so
    ({"tls": {"enabled": False}}, r"tls.enabled: True was expected"),
    ({"networkPolicy": {"enabled": False}}, r"networkPolicy.enabled: True was expected"),
    ({"prefect": {"auth": {"existingSecret": ""}}}, r"prefect.auth.existingSecret: '' (is|should)"),
    ({"storage": {"endpoint": "http://minio:9000"}}, r"storage.endpoint: .* does not match"),
    ({"prefect": {"server": {"enabled": False}, "database": {"existingSecret": ""},
                  "externalUrl": "http://prefect.example.org/api"}},
     r"prefect.externalUrl: 'http://prefect.example.org/api' does not match"),
    ({"ingress": {"enabled": True, "tlsSecretName": "web", "dashboard": {"host": "a.example.org"}}},
     r"is not valid under any of the given schemas"),
    ({"ingress": {"enabled": True, "prefect": {"host": "a.example.org"}}},
     r"ingress.tlsSecretName: '' (is|should)"),
    # contradictions
    ({"tls": {"secretName": ""}}, r"tls.secretName: '' (is|should)"),
    ({"tls": {"source": "certManager"}}, r"tls.secretName: 'dask-certificates' is"),
    ({"tls": {"certManager": {"issuerName": "ca"}}}, r"tls.certManager.issuerName: 'ca'"),
    ({"storage": {"url": ""}}, r"storage.url: '' (is|should)"),
    ({"storage": {"kind": "pvc"}}, r"storage.url: 's3://evdist/prod' is"),
    ({"storage": {"pvc": {"existingClaim": "x"}}}, r"storage.pvc.existingClaim: 'x'"),
    ({"dask": {"workers": {"adaptive": {"enabled": True}}}}, r"dask.mode: 'operator' was expected"),
    ({"prefect": {"externalUrl": "https://prefect.example.org/api"}}, r"prefect.externalUrl: "),
    ({"prefect": {"database": {"existingSecret": ""}}}, r"prefect.database.existingSecret: ''"),
    ({"prefect": {"server": {"enabled": False}}}, r"prefect.externalUrl: '' (is|should)"),
    ({"ingress": {"enabled": True, "tlsSecretName": "web"}}, r"is not valid under any of the"),
    ({"ingress": {"prefect": {"host": "a.example.org"}}}, r"ingress.prefect.host: 'a.example.org'"),
    ({"ingress": {"enabled": True, "tlsSecretName": "web", "dashboard": {
        "host": "a.example.org", "auth": {"existingSecret": "x", "url": "https://b.example.org"}}}},
     r"ingress.dashboard.auth.url: 'https://b.example.org' is"),
    ({"gateway": {"enabled": True, "host": "a.example.org"}}, r"gateway.parentRefs: \[\] "),
    ({"gateway": {"enabled": True, "parentRefs": [{"name": "g"}]}}, r"gateway.host: '' "),
    ({"gateway": {"parentRefs": [{"gateway": "g"}]}}, r"gateway.parentRefs.0: "),
    ({"monitoring": {"serviceMonitor": {"prefect": {"enabled": True}}}},
     r"serviceMonitor.prefect.existingSecret: '' (is|should)"),
    ({"image": {"tag": "1", "digest": "sha256:" + "0" * 64}}, r"image.tag: '1' is"),
]  # fmt: skip


def test_there_are_enough_wrong_values() -> None:
    assert len(WRONG) >= 30


def test_the_values_that_the_wrong_ones_are_put_over_are_good() -> None:
    assert refusals(merged(defaults(), BASE)) == []


@pytest.mark.parametrize(("over", "words"), WRONG)
def test_wrong_values_are_refused_with_a_message(over: dict[str, Any], words: str) -> None:
    found = refusals(merged(merged(defaults(), BASE), over))
    assert any(re.search(words, line) for line in found), found


@pytest.mark.parametrize(
    "over",
    [
        {"tls": {"enabled": False, "secretName": ""}},
        {"networkPolicy": {"enabled": False}},
        {"prefect": {"auth": {"existingSecret": ""}}},
        {"storage": {"endpoint": "http://minio:9000"}},
        {"ingress": {"enabled": True, "dashboard": {"host": "dask.example.org"}}},
    ],
)
def test_insecure_allows_each_of_them(over: dict[str, Any]) -> None:
    values = merged(merged(defaults(), BASE), over)
    assert refusals(values)
    assert refusals(merged(values, {"insecure": True})) == []


def test_the_defaults_alone_are_refused_until_secrets_are_named() -> None:
    found = "\n".join(refusals(defaults()))
    for name in ("tls.secretName", "storage.url", "prefect.auth.existingSecret",
                 "prefect.database.existingSecret"):  # fmt: skip
        assert name in found
