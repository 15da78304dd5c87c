"""Make the certificates and passwords of a deployment: `python make_secrets.py FOLDER`.

Each service gets a folder of its own under FOLDER, to be mounted into that service alone. What is
there stays as it is, except certificates that end within 30 days, so this may run at every start.
Certificates (ECDSA P-256) name a broker or an administrator; everybody else has a password.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import ipaddress
import os
import secrets
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

BROKERS: Final = ("kafka-1", "kafka-2", "kafka-3")
ADMINISTRATOR: Final = "administrator"
STORE_USERS: Final = ("migrate", "sink", "dashboard", "operator")
"""Users of ClickHouse, as `clickhouse/users.xml` defines them."""
VIEWER: Final = "viewer"
"""Who may look at the dashboard."""

_AUTHORITY_DAYS: Final = 3_650
_CERTIFICATE_DAYS: Final = 397
_RENEW_DAYS: Final = 30
_PASSWORD_BYTES: Final = 32
_SECRET: Final = 0o640
_PUBLIC: Final = 0o644


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """The deployment's own certificate authority."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """The certificate that everybody trusts."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def make_secrets(folder: Path, kafka_users: list[str]) -> list[str]:
    """Make what is missing; return the paths of what was made, relative to `folder`."""
    made = _Made(folder)
    authority = _authority(folder / "authority", made)
    for name in (*BROKERS, ADMINISTRATOR):
        _certificate(folder / name / "identity.pem", name, authority, made)
    for user in kafka_users:
        _password(folder / user / "kafka.password", made)
        _copy(folder / user / "kafka.password", folder / ADMINISTRATOR / f"{user}.password", made)
    for user in STORE_USERS:
        _password(folder / user / "clickhouse.password", made)
    _password(folder / VIEWER / "dashboard.password", made)
    _digests(folder, made)
    for name in (*BROKERS, ADMINISTRATOR, *kafka_users):
        made.write(folder / name / "ca.pem", authority.pem, _PUBLIC)
    return made.paths


class _Made:
    """Writes files in one step each and remembers those that changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.paths: list[str] = []

    def write(self, path: Path, content: bytes, mode: int = _SECRET) -> None:
        if path.exists() and path.read_bytes() == content:
            return
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.touch(mode=0o600)
        temporary.write_bytes(content)
        temporary.chmod(mode)
        temporary.replace(path)
        self.paths.append(str(path.relative_to(self._folder)))


def _authority(folder: Path, made: _Made) -> Authority:
    file = folder / "authority.pem"
    if file.exists():
        content = file.read_bytes()
        key = serialization.load_pem_private_key(content, password=None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{file} holds a key that was not made here: move it away")
        return Authority(certificate=x509.load_pem_x509_certificate(content), key=key)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Approval Trail deployment")
    certificate = (
        _builder(name, name, key, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    authority = Authority(certificate=certificate, key=key)
    made.write(file, _key_pem(key) + authority.pem)
    return authority


def _certificate(file: Path, name: str, authority: Authority, made: _Made) -> None:
    if file.exists() and not _ends_soon(file.read_bytes(), authority):
        return
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    certificate = (
        _builder(_name(name), issuer.subject, key, _CERTIFICATE_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .add_extension(
            x509.SubjectAlternativeName(
                [
                    x509.DNSName(name),
                    x509.DNSName("localhost"),
                    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
                ]
            ),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    chain = certificate.public_bytes(serialization.Encoding.PEM) + authority.pem
    made.write(file, _key_pem(key) + chain)


def _ends_soon(content: bytes, authority: Authority) -> bool:
    certificate = x509.load_pem_x509_certificates(content)[0]
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except (InvalidSignature, ValueError):
        return True  # of an authority that is gone
    return certificate.not_valid_after_utc - datetime.now(UTC) < timedelta(days=_RENEW_DAYS)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _password(file: Path, made: _Made) -> None:
    if not file.exists():
        made.write(file, secrets.token_urlsafe(_PASSWORD_BYTES).encode())


def _copy(source: Path, target: Path, made: _Made) -> None:
    made.write(target, source.read_bytes())


def _digests(folder: Path, made: _Made) -> None:
    """Write what ClickHouse and the dashboard's door check passwords against.

    The passwords are 256 random bits, which nobody guesses: a plain SHA-256 and a salted SHA-1 (the
    salted form that every build of nginx takes) lose nothing. The salt comes from the password, so
    that the file stays the same from run to run.
    """
    lines = ["<clickhouse>"]
    for user in STORE_USERS:
        password = (folder / user / "clickhouse.password").read_bytes()
        digest = hashlib.sha256(password).hexdigest()
        lines.append(f"  <{user}_password_sha256>{digest}</{user}_password_sha256>")
    text = "\n".join([*lines, "</clickhouse>", ""])
    made.write(folder / "clickhouse" / "passwords.xml", text.encode())
    password = (folder / VIEWER / "dashboard.password").read_bytes()
    salt = hashlib.sha256(b"salt" + password).digest()[:16]
    digest = hashlib.sha1(password + salt, usedforsecurity=False).digest()
    encoded = base64.b64encode(digest + salt).decode()
    made.write(folder / "door" / "viewers", f"{VIEWER}:{{SSHA}}{encoded}\n".encode())


def main(arguments: list[str] | None = None) -> int:
    """Make what is missing under the given folder and say what was made."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--acls", type=Path, default=Path(__file__).with_name("acls.yaml"))
    given = parser.parse_args(arguments)
    users = list(yaml.safe_load(given.acls.read_text("utf-8"))["users"])
    for path in make_secrets(given.folder, users):
        sys.stdout.write(f"made {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
