"""The listener's certificate and the authorities of its clients: read from files, checked, and read again on rotation.

Kubernetes replaces mounted Secrets by swapping a link, so the files may be of two rotations for a moment. What does
not fit together is not taken; the listener goes on with what it has. Connections that are open stay as they are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from lagscale.errors import SettingsInvalid
from services.scaler import metrics

log = structlog.get_logger(__name__)

CERTIFICATE: Final = "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE"
KEY: Final = "LAGSCALE_SCALER_TLS_KEY_FILE"
CLIENT_CA: Final = "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE"
#: Between two looks at the files; what changed is taken when two looks in a row read the same.
_POLL_SECONDS: Final = 1.0
_MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where the PEM files lie. `client_ca` is None where no client is asked for a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class CertificateContent:
    """The bytes of the files, read in one go."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None


@dataclass(frozen=True, slots=True)
class CertificateBundle:
    """What was checked and fits together. Times are those at which it ends to be valid."""

    content: CertificateContent
    expires_at: datetime
    client_ca_expires_at: datetime | None

    def configuration(self, *, requires_client_certificate: bool) -> Any:
        """A fresh one for gRPC, which takes it over."""
        pair = (self.content.key, self.content.certificate)
        return grpc.ssl_server_certificate_configuration(
            [pair], self.content.client_ca if requires_client_certificate else None
        )


def read(files: CertificateFiles) -> CertificateContent:
    """The files as they are now.

    Raises:
        SettingsInvalid: one of them cannot be read; the text names its setting.
    """
    return CertificateContent(
        _read_bytes(CERTIFICATE, files.certificate),
        _read_bytes(KEY, files.key),
        None if files.client_ca is None else _read_bytes(CLIENT_CA, files.client_ca),
    )


def check(content: CertificateContent, now: datetime | None = None) -> CertificateBundle:
    """What the files hold, once it fits together.

    Args:
        content: of the files.
        now: given, the certificate must be valid then, and one of the authorities.

    Raises:
        SettingsInvalid: it does not; the text names the setting, and holds nothing of the content.
    """
    chain = _parse_certificates(CERTIFICATE, content.certificate)
    leaf = chain[0]
    if _parse_public_key(content.key) != leaf.public_key():
        raise SettingsInvalid(f"{KEY}: is not the key of the certificate; mount both from one Secret.")
    authorities = [] if content.client_ca is None else _parse_certificates(CLIENT_CA, content.client_ca)
    if now is not None:
        _check_validity(CERTIFICATE, [leaf], now)
        if authorities:
            _check_validity(CLIENT_CA, authorities, now)
    latest = max((one.not_valid_after_utc for one in authorities), default=None)
    return CertificateBundle(content, leaf.not_valid_after_utc, latest)


class CertificateReloader:
    """The material in use, and the watch over its files."""

    def __init__(self, files: CertificateFiles) -> None:
        """Read the files.

        Raises:
            SettingsInvalid: they cannot be used. A certificate that has expired can: its successor may come.
        """
        self._files = files
        self._last_read: CertificateContent | str | None = None
        self._refused = ""
        self.bundle = check(read(files))
        _check_servable(self.bundle)
        self._report()
        try:
            check(self.bundle.content, datetime.now(UTC))
        except SettingsInvalid as fault:
            log.warning("certificate_not_valid", error=fault.message)

    def credentials(self, *, requires_client_certificate: bool) -> Any:
        """Credentials of one listener, which takes new material at the next handshake after it came.

        Args:
            requires_client_certificate: whether clients must show a certificate of the authorities.
        """
        return grpc.dynamic_ssl_server_credentials(
            self.bundle.configuration(requires_client_certificate=requires_client_certificate),
            self._build_fetcher(requires_client_certificate),
            requires_client_certificate,
        )

    def reload(self) -> bool:
        """Look at the files; whether new material was taken. Blocks: call it in a thread."""
        current: CertificateContent | str
        try:
            current = read(self._files)
        except SettingsInvalid as fault:
            current = fault.message
        # Written in place, files are half there for a while: two looks must see the same.
        settled, self._last_read = current == self._last_read, current
        if current == self.bundle.content:
            self._set_refused("")
            return False
        if not settled:
            return False
        if isinstance(current, str):
            self._set_refused(current)
            return False
        try:
            # Whether it is valid depends on the time, so it is asked at every look.
            found = check(current, datetime.now(UTC))
            _check_servable(found)
            self.bundle = found
        except SettingsInvalid as fault:
            self._set_refused(fault.message)
            return False
        self._set_refused("")
        metrics.CERTIFICATE_RELOADS.labels("taken").inc()
        self._report()
        return True

    async def run(self) -> None:
        """Follow the files, for ever."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            await asyncio.to_thread(self.reload)

    def _build_fetcher(self, requires_client_certificate: bool) -> Callable[[], Any]:
        served = self.bundle

        def fetch() -> Any:
            # Called before every handshake, in a thread of gRPC's; None means no change.
            nonlocal served
            newest = self.bundle
            if newest is served:
                return None
            served = newest
            return newest.configuration(requires_client_certificate=requires_client_certificate)

        return fetch

    def _set_refused(self, why: str) -> None:
        previous, self._refused = self._refused, why
        metrics.CERTIFICATE_REFUSED.set(bool(why))
        if why and why != previous:
            # Counted when the state can be seen: whoever waits for the count finds it so.
            metrics.CERTIFICATE_RELOADS.labels("refused").inc()
            log.error("certificate_refused", error=why, expires_at=self.bundle.expires_at.isoformat())

    def _report(self) -> None:
        bundle = self.bundle
        metrics.CERTIFICATE_EXPIRY.labels("server").set(bundle.expires_at.timestamp())
        if bundle.client_ca_expires_at is not None:
            metrics.CERTIFICATE_EXPIRY.labels("client_ca").set(bundle.client_ca_expires_at.timestamp())
        log.info("certificate_taken", expires_at=bundle.expires_at.isoformat())


def _check_servable(bundle: CertificateBundle) -> None:
    """Let the TLS library say whether it can serve the material, at a port that nobody is told of.

    Raises:
        SettingsInvalid: it cannot. At a rotation it would only log that, and go on with the old one.
    """
    content = bundle.content
    pair = [(content.key, content.certificate)]
    server = grpc.server(ThreadPoolExecutor(1))
    try:
        asks = content.client_ca is not None
        server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(pair, content.client_ca, asks))
    except RuntimeError:
        raise SettingsInvalid(
            f"{CERTIFICATE}: cannot be served by the TLS library; use a key of RSA, or of the curve P-256 or P-384."
        ) from None
    finally:
        server.stop(None)


def _read_bytes(setting: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise SettingsInvalid(f"{setting}: cannot be read ({type(error).__name__}); mount the file.") from error
    if len(found) > _MAX_BYTES:
        raise SettingsInvalid(f"{setting}: is too large to be a PEM file of certificates or a key.")
    return found


def _parse_certificates(setting: str, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        # The cause would quote the content.
        raise SettingsInvalid(
            f"{setting}: holds no certificates in PEM that can be read; mount a whole file."
        ) from None


def _parse_public_key(pem: bytes) -> Any:
    try:
        return load_pem_private_key(pem, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SettingsInvalid(f"{KEY}: holds no private key in PEM without a password; mount a whole file.") from None


def _check_validity(setting: str, certificates: list[x509.Certificate], now: datetime) -> None:
    if not any(one.not_valid_before_utc <= now <= one.not_valid_after_utc for one in certificates):
        latest = max(one.not_valid_after_utc for one in certificates)
        raise SettingsInvalid(
            f"{setting}: is not valid now (its end is {latest:%Y-%m-%dT%H:%M:%SZ}); renew it, or correct the clock."
        )
