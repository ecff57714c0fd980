"""Certificates and kubeconfigs, made on the spot for one cluster."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sandbox.cluster.layout import NODE, Layout

LIFETIME = dt.timedelta(days=3650)
"""As long as a state directory may live; a cluster is made anew in seconds."""

USERS = {
    "admin": ("sandbox-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
    "kube-proxy": ("system:kube-proxy", None),
    "sandbox": ("sandbox-controllers", "system:masters"),
}
"""Who talks to the API server: file name → user and group. `sandbox` is KWOK, kube-router and the volume provisioner."""


@dataclass(frozen=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def ensure(layout: Layout) -> None:
    """Makes what is missing: all of it for a new cluster, nothing for one that has it for these addresses."""
    mark = layout.pki / "complete"
    if mark.exists() and mark.read_text() == layout.node_address:
        return
    layout.pki.mkdir(parents=True, exist_ok=True)
    layout.pki.chmod(0o700)
    authority = _authority()
    _write(layout.pki / "ca.crt", _pem(authority.certificate))
    _write(layout.pki / "ca.key", _pem(authority.key))
    service_accounts = ec.generate_private_key(ec.SECP256R1())
    _write(layout.pki / "service-accounts.key", _pem(service_accounts))
    _write(
        layout.pki / "service-accounts.pub",
        service_accounts.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
    )
    names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ]
    addresses = [layout.node_address, layout.api_service_address, "127.0.0.1"]
    _issue(layout.pki / "apiserver", authority, user="kube-apiserver", names=names, addresses=addresses)
    _issue(layout.pki / "apiserver-kubelet", authority, user="kube-apiserver", group="system:masters")
    _issue(
        layout.pki / "kubelet-server",
        authority,
        user=f"system:node:{NODE}",
        names=[NODE],
        addresses=[layout.node_address],
    )
    for file, (user, group) in USERS.items():
        _issue(layout.pki / file, authority, user=user, group=group)
        _kubeconfig(layout.pki / f"{file}.kubeconfig", layout, certificate=layout.pki / file)
    _kubeconfig(layout.kubeconfig, layout, certificate=layout.pki / "admin")
    mark.write_text(layout.node_address)


def _authority() -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("llm-serving sandbox")
    certificate = (
        _builder(name, key.public_key())
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return _Authority(certificate, key)


def _issue(
    path: Path,
    authority: _Authority,
    *,
    user: str,
    group: str | None = None,
    names: list[str] | None = None,
    addresses: list[str] | None = None,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        _builder(_name(user, group), key.public_key())
        .issuer_name(authority.certificate.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]), critical=False
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    others = [x509.DNSName(n) for n in names or []] + [x509.IPAddress(ipaddress.ip_address(a)) for a in addresses or []]
    if others:
        builder = builder.add_extension(x509.SubjectAlternativeName(others), critical=False)
    _write(path.with_suffix(".crt"), _pem(builder.sign(authority.key, hashes.SHA256())))
    _write(path.with_suffix(".key"), _pem(key))


def _builder(subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + LIFETIME)
    )


def _name(user: str, group: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _pem(thing: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    if isinstance(thing, x509.Certificate):
        return thing.public_bytes(serialization.Encoding.PEM)
    return thing.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _kubeconfig(path: Path, layout: Layout, *, certificate: Path) -> None:
    """Self-contained, so that it can be copied; JSON is YAML."""

    def inline(file: Path) -> str:
        return base64.b64encode(file.read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "sandbox",
        "clusters": [
            {
                "name": "sandbox",
                "cluster": {"server": layout.server, "certificate-authority-data": inline(layout.pki / "ca.crt")},
            }
        ],
        "users": [
            {
                "name": "sandbox",
                "user": {
                    "client-certificate-data": inline(certificate.with_suffix(".crt")),
                    "client-key-data": inline(certificate.with_suffix(".key")),
                },
            }
        ],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
    }
    _write(path, json.dumps(config, indent=1).encode())


def _write(path: Path, content: bytes) -> None:
    fresh = path.with_name(f".{path.name}")
    fresh.write_bytes(content)
    fresh.chmod(0o600)
    fresh.replace(path)
