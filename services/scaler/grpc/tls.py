"""TLS of the gRPC server: its certificates, reloaded on rotation, and the caller's, which identifies the KEDA instance.

Kubernetes replaces mounted Secrets by swapping a link, so that for a moment the files may come from two rotations.
Files that do not match are rejected, and the server continues with the loaded ones. Open connections are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lagscale.domain.tenancy import DEFAULT_INSTANCE
from lagscale.errors import SettingsInvalid
from services.scaler import deadlines, metrics

log = structlog.get_logger(__name__)

CERTIFICATE: Final = "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE"
KEY: Final = "LAGSCALE_SCALER_TLS_KEY_FILE"
CLIENT_CA: Final = "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE"
_MAX_BYTES: Final = 1024 * 1024
Context = Any  # grpc has no types
#: Returns the KEDA instance of a call; None for a certificate that no binding can match.
CallerIdentifier = Callable[[Context], str | None]
_CERTIFICATE: Final = "x509_pem_cert"
#: Cached certificates: each KEDA instance has one, or two during rotation.
_CACHE_SIZE: Final = 1024


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Paths of the PEM files. `client_ca` is None if client certificates are not requested."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class CertificateContent:
    """The content of the files, read together."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None


@dataclass(frozen=True, slots=True)
class CertificateBundle:
    """Checked content, and when it expires."""

    content: CertificateContent
    expires_at: datetime
    client_ca_expires_at: datetime | None

    def configuration(self, requires_client: bool) -> Any:
        """A new configuration for gRPC, which takes ownership of it."""
        content = self.content
        pairs = [(content.key, content.certificate)]
        return grpc.ssl_server_certificate_configuration(pairs, content.client_ca if requires_client else None)


def read(files: CertificateFiles) -> CertificateContent:
    """The files' current content.

    Raises:
        SettingsInvalid: one of them cannot be read; the text names its setting.
    """
    return CertificateContent(
        _read_bytes(CERTIFICATE, files.certificate),
        _read_bytes(KEY, files.key),
        None if files.client_ca is None else _read_bytes(CLIENT_CA, files.client_ca),
    )


def check(content: CertificateContent, now: datetime | None = None) -> CertificateBundle:
    """Check that certificate, key and authorities are usable together, and if `now` is given, that they are valid then.

    Raises:
        SettingsInvalid: they are not; the text names the setting, and contains nothing of the content.
    """
    chain = _parse_certificates(CERTIFICATE, content.certificate)
    leaf = chain[0]
    if _parse_public_key(content.key) != leaf.public_key():
        raise SettingsInvalid(f"{KEY}: does not match the certificate; mount both from the same Secret.")
    authorities = [] if content.client_ca is None else _parse_certificates(CLIENT_CA, content.client_ca)
    if now is not None:
        _check_validity(CERTIFICATE, [leaf], now)
        if authorities:
            _check_validity(CLIENT_CA, authorities, now)
    latest = max((one.not_valid_after_utc for one in authorities), default=None)
    return CertificateBundle(content, leaf.not_valid_after_utc, latest)


class CertificateReloader:
    """The loaded certificates, and the loop that reloads them."""

    def __init__(self, files: CertificateFiles) -> None:
        """Load the files.

        Raises:
            SettingsInvalid: they cannot be used. An expired certificate can, because it may be renewed.
        """
        self._files = files
        self._last_read: CertificateContent | str | None = None
        self._rejected_reason = ""
        self.bundle = check(read(files))
        _check_servable(self.bundle)
        self._report()
        try:
            check(self.bundle.content, datetime.now(UTC))
        except SettingsInvalid as error:
            log.warning("certificate_not_valid", reason=error.message)

    def credentials(self, requires_client: bool) -> Any:
        """Credentials of one listener; it uses reloaded certificates from the next handshake on."""
        configuration = self.bundle.configuration(requires_client)
        return grpc.dynamic_ssl_server_credentials(configuration, self._build_fetcher(requires_client), requires_client)

    def reload(self) -> bool:
        """Read the files, and load them if they changed; True if they were loaded. Blocks: call it in a thread."""
        current: CertificateContent | str
        try:
            current = read(self._files)
        except SettingsInvalid as error:
            current = error.message
        # Files that are written in place are incomplete for a while: two reads must agree.
        settled, self._last_read = current == self._last_read, current
        if current == self.bundle.content:
            self._set_rejected("")
        if current == self.bundle.content or not settled:
            return False
        try:
            if isinstance(current, str):
                raise SettingsInvalid(current)
            # Validity depends on the time, so it is checked at every read.
            bundle = check(current, datetime.now(UTC))
            _check_servable(bundle)
            self.bundle = bundle
        except SettingsInvalid as error:
            self._set_rejected(error.message)
            return False
        self._set_rejected("")
        metrics.CERTIFICATE_RELOADS.labels("loaded").inc()
        self._report()
        return True

    async def run(self) -> None:
        """Follow the files, without end."""
        while True:
            await asyncio.sleep(deadlines.CERTIFICATE_POLL_SECONDS)
            await asyncio.to_thread(self.reload)

    def _build_fetcher(self, requires_client: bool) -> Callable[[], Any]:
        served = self.bundle

        def fetch() -> Any:
            # gRPC calls this before every handshake, in its own thread; None means no change.
            nonlocal served
            newest = self.bundle
            if newest is served:
                return None
            served = newest
            return newest.configuration(requires_client)

        return fetch

    def _set_rejected(self, reason: str) -> None:
        previous, self._rejected_reason = self._rejected_reason, reason
        metrics.CERTIFICATE_REJECTED.set(bool(reason))
        if reason and reason != previous:
            # Counted after the state is visible, for those who wait for the count.
            metrics.CERTIFICATE_RELOADS.labels("rejected").inc()
            log.error("certificate_rejected", reason=reason, expires_at=self.bundle.expires_at.isoformat())

    def _report(self) -> None:
        bundle = self.bundle
        metrics.CERTIFICATE_EXPIRY.labels("server").set(bundle.expires_at.timestamp())
        if bundle.client_ca_expires_at is not None:
            metrics.CERTIFICATE_EXPIRY.labels("client_ca").set(bundle.client_ca_expires_at.timestamp())
        log.info("certificate_loaded", expires_at=bundle.expires_at.isoformat())


def _check_servable(bundle: CertificateBundle) -> None:
    """Check on an unused port that gRPC's TLS library can serve the certificate.

    Raises:
        SettingsInvalid: it cannot. At a rotation gRPC would only log that, and continue with the old one.
    """
    content = bundle.content
    pairs = [(content.key, content.certificate)]
    server = grpc.server(ThreadPoolExecutor(1))
    try:
        requires_client = content.client_ca is not None
        server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(pairs, content.client_ca, requires_client))
    except RuntimeError:
        raise SettingsInvalid(
            f"{CERTIFICATE}: cannot be served by the TLS library; use an RSA key, or an EC key of P-256 or P-384."
        ) from None
    finally:
        server.stop(None)


def _read_bytes(setting: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SettingsInvalid(f"{setting}: cannot be read ({type(error).__name__}); mount the file.") from error
    if len(content) > _MAX_BYTES:
        raise SettingsInvalid(f"{setting}: is too large to be a PEM file of certificates or a key.")
    return content


def _parse_certificates(setting: str, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        # Without a cause: it would quote the content.
        raise SettingsInvalid(f"{setting}: contains no readable PEM certificates; mount the complete file.") from None


def _parse_public_key(pem: bytes) -> Any:
    try:
        return load_pem_private_key(pem, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SettingsInvalid(f"{KEY}: contains no unencrypted PEM private key; mount the complete file.") from None


def _check_validity(setting: str, certificates: list[x509.Certificate], now: datetime) -> None:
    if not any(one.not_valid_before_utc <= now <= one.not_valid_after_utc for one in certificates):
        latest = max(one.not_valid_after_utc for one in certificates)
        raise SettingsInvalid(
            f"{setting}: is not currently valid (expires {latest:%Y-%m-%dT%H:%M:%SZ}); renew it or correct the clock."
        )


def identify_default(_context: Context) -> str | None:
    """For a scaler that requests no client certificates: the one default instance."""
    return DEFAULT_INSTANCE


def identify_by_certificate(context: Context) -> str | None:
    """For a scaler that requires client certificates at one of its two addresses."""
    return identify_by_required_certificate(context) if context.auth_context().get(_CERTIFICATE) else DEFAULT_INSTANCE


def identify_by_required_certificate(context: Context) -> str | None:
    """For a scaler that requires client certificates at every address."""
    certificates = list(context.auth_context().get(_CERTIFICATE, ()))
    return read_instance(certificates[0]) if certificates else None


@lru_cache(maxsize=_CACHE_SIZE)
def read_instance(certificate: bytes) -> str | None:
    """The first URI of a verified client certificate's alternative names (PEM), else its first DNS name, unchanged.

    None without such a name, and for `default`, which only callers without a certificate may have.
    """
    try:
        extensions = x509.load_pem_x509_certificate(certificate).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension, x509.InvalidVersion) as error:
        log.warning("client_certificate_without_name", reason=type(error).__name__)
        return None
    candidates = names.get_values_for_type(x509.UniformResourceIdentifier) or names.get_values_for_type(x509.DNSName)
    if not candidates or not candidates[0] or candidates[0] == DEFAULT_INSTANCE:
        log.warning("client_certificate_without_name", reason="certificate has no URI or DNS name that can be bound")
        return None
    return candidates[0]
