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
_LOOK_SECONDS: Final = 1.0
_GREATEST_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Files:
    """Where the PEM files lie. `client_ca` is None where no client is asked for a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of the files, read in one go."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None


@dataclass(frozen=True, slots=True)
class Material:
    """What was checked and fits together. Times are those at which it ends to be valid."""

    content: Content
    expires_at: datetime
    client_ca_expires_at: datetime | None

    def configuration(self, *, asks_clients: bool) -> Any:
        """A fresh one for gRPC, which takes it over."""
        pair = (self.content.key, self.content.certificate)
        return grpc.ssl_server_certificate_configuration([pair], self.content.client_ca if asks_clients else None)


def read(files: Files) -> Content:
    """The files as they are now.

    Raises:
        SettingsInvalid: one of them cannot be read; the text names its setting.
    """
    return Content(
        _bytes(CERTIFICATE, files.certificate),
        _bytes(KEY, files.key),
        None if files.client_ca is None else _bytes(CLIENT_CA, files.client_ca),
    )


def check(content: Content, now: datetime | None = None) -> Material:
    """What the files hold, once it fits together.

    Args:
        content: of the files.
        now: given, the certificate must be valid then, and one of the authorities.

    Raises:
        SettingsInvalid: it does not; the text names the setting, and holds nothing of the content.
    """
    chain = _certificates(CERTIFICATE, content.certificate)
    leaf = chain[0]
    if _key(content.key) != leaf.public_key():
        raise SettingsInvalid(f"{KEY}: is not the key of the certificate; mount both from one Secret.")
    authorities = [] if content.client_ca is None else _certificates(CLIENT_CA, content.client_ca)
    if now is not None:
        _valid(CERTIFICATE, [leaf], now)
        if authorities:
            _valid(CLIENT_CA, authorities, now)
    latest = max((one.not_valid_after_utc for one in authorities), default=None)
    return Material(content, leaf.not_valid_after_utc, latest)


class Certificates:
    """The material in use, and the watch over its files."""

    def __init__(self, files: Files) -> None:
        """Read the files.

        Raises:
            SettingsInvalid: they cannot be used. A certificate that has expired can: its successor may come.
        """
        self._files = files
        self._seen: Content | str | None = None
        self._refused = ""
        self.material = check(read(files))
        _try(self.material)
        self._tell()
        try:
            check(self.material.content, datetime.now(UTC))
        except SettingsInvalid as fault:
            log.warning("certificate_not_valid", error=fault.message)

    def credentials(self, *, asks_clients: bool) -> Any:
        """Credentials of one listener, which takes new material at the next handshake after it came.

        Args:
            asks_clients: whether clients must show a certificate of the authorities.
        """
        return grpc.dynamic_ssl_server_credentials(
            self.material.configuration(asks_clients=asks_clients), self._fetcher(asks_clients), asks_clients
        )

    def look(self) -> bool:
        """Look at the files; whether new material was taken. Blocks: call it in a thread."""
        seen: Content | str
        try:
            seen = read(self._files)
        except SettingsInvalid as fault:
            seen = fault.message
        # Written in place, files are half there for a while: two looks must see the same.
        settled, self._seen = seen == self._seen, seen
        if seen == self.material.content:
            self._refuse("")
            return False
        if not settled:
            return False
        if isinstance(seen, str):
            self._refuse(seen)
            return False
        try:
            # Whether it is valid depends on the time, so it is asked at every look.
            found = check(seen, datetime.now(UTC))
            _try(found)
            self.material = found
        except SettingsInvalid as fault:
            self._refuse(fault.message)
            return False
        self._refuse("")
        metrics.CERTIFICATE_RELOADS.labels("taken").inc()
        self._tell()
        return True

    async def run(self) -> None:
        """Follow the files, for ever."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.to_thread(self.look)

    def _fetcher(self, asks_clients: bool) -> Callable[[], Any]:
        given = self.material

        def fetch() -> Any:
            # Called before every handshake, in a thread of gRPC's; None means no change.
            nonlocal given
            present = self.material
            if present is given:
                return None
            given = present
            return present.configuration(asks_clients=asks_clients)

        return fetch

    def _refuse(self, why: str) -> None:
        told, self._refused = self._refused, why
        metrics.CERTIFICATE_REFUSED.set(bool(why))
        if why and why != told:
            # Counted when the state can be seen: whoever waits for the count finds it so.
            metrics.CERTIFICATE_RELOADS.labels("refused").inc()
            log.error("certificate_refused", error=why, expires_at=self.material.expires_at.isoformat())

    def _tell(self) -> None:
        material = self.material
        metrics.CERTIFICATE_EXPIRY.labels("server").set(material.expires_at.timestamp())
        if material.client_ca_expires_at is not None:
            metrics.CERTIFICATE_EXPIRY.labels("client_ca").set(material.client_ca_expires_at.timestamp())
        log.info("certificate_taken", expires_at=material.expires_at.isoformat())


def _try(material: Material) -> None:
    """Let the TLS library say whether it can serve the material, at a port that nobody is told of.

    Raises:
        SettingsInvalid: it cannot. At a rotation it would only log that, and go on with the old one.
    """
    content = material.content
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


def _bytes(setting: str, path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(_GREATEST_BYTES + 1)
    except OSError as error:
        raise SettingsInvalid(f"{setting}: cannot be read ({type(error).__name__}); mount the file.") from error
    if len(found) > _GREATEST_BYTES:
        raise SettingsInvalid(f"{setting}: is too large to be a PEM file of certificates or a key.")
    return found


def _certificates(setting: str, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        # The cause would quote the content.
        raise SettingsInvalid(
            f"{setting}: holds no certificates in PEM that can be read; mount a whole file."
        ) from None


def _key(pem: bytes) -> Any:
    try:
        return load_pem_private_key(pem, None).public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise SettingsInvalid(f"{KEY}: holds no private key in PEM without a password; mount a whole file.") from None


def _valid(setting: str, certificates: list[x509.Certificate], now: datetime) -> None:
    if not any(one.not_valid_before_utc <= now <= one.not_valid_after_utc for one in certificates):
        latest = max(one.not_valid_after_utc for one in certificates)
        raise SettingsInvalid(
            f"{setting}: is not valid now (its end is {latest:%Y-%m-%dT%H:%M:%SZ}); renew it, or correct the clock."
        )
