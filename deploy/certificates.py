"""Certificates for Dask: ``python certificates.py FOLDER [HOST ...]``.

    FOLDER/ca/{ca.crt,ca.key}             the CA; its key belongs in a safe, not in the cluster
    FOLDER/dask/{ca.crt,tls.crt,tls.key}  for the scheduler and the workers (the HOSTs)
    FOLDER/client/{...}                   for clients: flow runs, people

A CA that is there is used again: called a second time, it renews the other two. A holder of a
certificate of this CA may run code on the workers, so it must sign nothing else.
"""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey
CA_DAYS = 3650


def make(folder: Path, hosts: list[str], days: int) -> None:
    """Write all files; keys for their owner alone."""
    ca, ca_key = _ca(folder / "ca")
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    for name, names, usage in (("dask", hosts, both), ("client", ["client"], both[1:])):
        key = ec.generate_private_key(ec.SECP256R1())
        signed = (
            _certificate(f"evdist {name}", ca.subject, key, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
            .add_extension(x509.SubjectAlternativeName([_name(n) for n in names]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
                critical=False,
            )
            .sign(ca_key, hashes.SHA256())
        )
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        _write(place / "ca.crt", _pem(ca))
        _write(place / "tls.crt", _pem(signed))
        _write(place / "tls.key", _key_pem(key), mode=0o600)


def _ca(folder: Path) -> tuple[x509.Certificate, Key]:
    crt, secret = folder / "ca.crt", folder / "ca.key"
    if crt.exists():
        key = serialization.load_pem_private_key(secret.read_bytes(), None)
        if not isinstance(key, Key):
            raise SystemExit(f"{secret} must hold a key on an elliptic curve")
        return x509.load_pem_x509_certificate(crt.read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "evdist Dask CA")])
    ca = (
        _certificate("evdist Dask CA", name, key, CA_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=False, content_commitment=False, key_encipherment=False,
                data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
                encipher_only=False, decipher_only=False,
            ),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    _write(secret, _key_pem(key), mode=0o600)
    _write(crt, _pem(ca))
    return ca, key


def _certificate(subject: str, issuer: x509.Name, key: Key, days: int) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Certificates for Dask's scheduler and clients.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("hosts", nargs="*", default=["scheduler", "localhost", "127.0.0.1"])
    parser.add_argument("--days", type=int, default=90, help="until the two must be renewed")
    given = parser.parse_args()
    make(given.folder, given.hosts, given.days)
