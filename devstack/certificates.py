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
class Request:
    """Content of a certificate.

    Attributes:
        names: alternative names, in order; if empty, the extension is omitted.
        begins, ends: validity period relative to now.
    """

    name: str
    names: tuple[x509.GeneralName, ...]
    begins: datetime.timedelta = -_DAY
    ends: datetime.timedelta = _DAY


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority."""

    signer: x509.Certificate
    signer_key: ec.EllipticCurvePrivateKey

    @classmethod
    def make(cls, name: str = "lagscale devstack authority") -> Authority:
        """Create an authority that is valid for one day."""
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(_sign(Request(name, _loopback(name)), key, None, key), key)

    @property
    def certificate(self) -> str:
        """The certificate of the authority, PEM."""
        return _pem(self.signer)

    def pair(self, name: str) -> Pair:
        """A certificate for this name and for loopback, with its key."""
        return self.sign(Request(name, _loopback(name)))

    def sign(self, request: Request, key: ec.EllipticCurvePrivateKey | None = None) -> Pair:
        """A certificate as requested, with its key; default: a new key."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        return Pair(_pem(_sign(request, key, self.signer, self.signer_key)), _key(key))

    def own(self) -> Pair:
        """The authority's certificate and key, as a self-signed client certificate."""
        return Pair(self.certificate, _key(self.signer_key))


@dataclass(frozen=True, slots=True)
class Certificates:
    """An authority with one server and one client under it.

    Attributes:
        authority: PEM certificate that both sides trust.
        server, client: PEM pairs.
        folder: folder with the broker's copies.
    """

    authority: str
    server: Pair
    client: Pair
    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Certificates:
        """Create new ones, valid for one day."""
        authority = Authority.make()
        certificates = cls(authority.certificate, authority.pair("localhost"), authority.pair("lagscale"), folder)
        (folder / "authority.pem").write_text(certificates.authority)
        (folder / "server.pem").write_text(certificates.server.key + certificates.server.certificate)
        return certificates

    def server_properties(self, prefix: str) -> dict[str, str]:
        """The broker's properties for a listener that requires a client certificate."""
        return {
            f"{prefix}.ssl.keystore.type": "PEM",
            f"{prefix}.ssl.keystore.location": str(self.folder / "server.pem"),
            f"{prefix}.ssl.truststore.type": "PEM",
            f"{prefix}.ssl.truststore.location": str(self.folder / "authority.pem"),
            f"{prefix}.ssl.client.auth": "required",
        }


def _loopback(name: str) -> tuple[x509.GeneralName, ...]:
    return x509.DNSName(name.replace(" ", "-")), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))


def _sign(
    request: Request,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    signer: ec.EllipticCurvePrivateKey,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, request.name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + request.begins)
        .not_valid_after(now + request.ends)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if request.names:
        builder = builder.add_extension(x509.SubjectAlternativeName(request.names), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
