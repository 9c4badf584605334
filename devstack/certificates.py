"""Certificates of one test: an authority, a server for loopback, and a client."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: str
    key: str


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority with one server and one client under it.

    Attributes:
        authority: PEM certificate that both sides trust.
        server, client: PEM pairs.
        folder: where the broker's copies lie.
    """

    authority: str
    server: Pair
    client: Pair
    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Make new ones, valid for a day."""
        authority_key = ec.generate_private_key(ec.SECP256R1())
        authority = _sign("lagscale devstack authority", authority_key, None, authority_key)
        made = cls(
            _pem(authority),
            _pair("localhost", authority, authority_key),
            _pair("lagscale", authority, authority_key),
            folder,
        )
        (folder / "authority.pem").write_text(made.authority)
        (folder / "server.pem").write_text(made.server.key + made.server.certificate)
        return made

    def server_properties(self, prefix: str) -> dict[str, str]:
        """The broker's settings for one listener that asks for a client certificate."""
        return {
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": str(self.folder / "server.pem"),
            f"{prefix}.ssl.truststore.type": "PEM",
            f"{prefix}.ssl.truststore.location": str(self.folder / "authority.pem"),
            f"{prefix}.ssl.client.auth": "required",
        }


def _pair(name: str, authority: x509.Certificate, authority_key: ec.EllipticCurvePrivateKey) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    return Pair(_pem(_sign(name, key, authority, authority_key)), text)


def _sign(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    authority: x509.Certificate | None,
    authority_key: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(name.replace(" ", "-")), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.subject if authority is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=authority is None, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
