"""Access tokens by OAuth 2.0 client credentials (RFC 6749, section 4.4), with checked addresses and responses.

Redirects are not followed and proxies of the environment are not used: the request goes to the checked addresses.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote_plus, urlencode

import httpcore

from lagscale.errors import TokenUnavailable
from lagscale.kafka.tokens import Token

#: Host and port -> allowed addresses. Raises TokenUnavailable if one is not allowed.
Resolve = Callable[[str, int], Sequence[str]]
_TIMEOUT_SECONDS = 5.0
_MAX_RESPONSE_BYTES = 262_144
#: Lifetime if the response has none; seconds.
_DEFAULT_LIFETIME_SECONDS = 300.0
#: Error codes of RFC 6749, section 5.2; anything else from an endpoint is not passed on.
_RFC_ERRORS = frozenset(
    {"invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
     "invalid_scope"}
)  # fmt: skip
#: Syntax of a bearer token (RFC 6750, section 2.1).
_TOKEN = re.compile(r"[A-Za-z0-9\-._~+/]+=*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ClientCredentials:
    """Client credentials of one cluster for the token endpoint `url`.

    `ca`: PEM of the CA of its certificate, or None for the CAs of the system. `extensions`: of SASL, sent to the broker
    with the token.
    """

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    extensions: Mapping[str, str] = field(default_factory=dict)
    ca: str | None = field(default=None, repr=False)

    def fetch(self, resolve: Resolve) -> Token:
        """Request one token.

        Raises:
            TokenUnavailable: without one; the text holds neither an address nor a secret.
        """
        form = {"grant_type": "client_credentials"}
        if self.scopes:
            form["scope"] = " ".join(self.scopes)
        # Client id and secret by Basic, which every server must support (section 2.3.1).
        pair = f"{quote_plus(self.client_id)}:{quote_plus(self.client_secret)}"
        headers = {
            "Authorization": "Basic " + base64.b64encode(pair.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": "lagscale",
        }
        began = time.time()
        status, body = self._post(headers, urlencode(form).encode(), resolve)
        return self._parse_token(status, body, began)

    def _post(self, headers: Mapping[str, str], form: bytes, resolve: Resolve) -> tuple[int, bytes]:
        until = time.monotonic() + _TIMEOUT_SECONDS
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), _TIMEOUT_SECONDS)
        try:
            context = ssl.create_default_context(cadata=self.ca)
            backend, sent = _CheckedBackend(resolve), list(headers.items())
            with (
                httpcore.ConnectionPool(ssl_context=context, max_connections=1, network_backend=backend) as pool,
                pool.stream("POST", self.url, headers=sent, content=form, extensions={"timeout": timeout}) as answer,
            ):
                return answer.status, _read_body(answer.iter_stream(), until)
        except ssl.SSLError:
            raise TokenUnavailable("the CA for the token endpoint cannot be read; check tokenCa") from None
        except httpcore.TimeoutException:
            raise TokenUnavailable("the token endpoint timed out") from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol, OSError) as failed:
            if "CERTIFICATE_VERIFY_FAILED" in str(failed):
                raise TokenUnavailable("the token endpoint's certificate cannot be verified; check tokenCa") from None
            raise TokenUnavailable("the token endpoint is unreachable; check the URL and the network") from None

    def _parse_token(self, status: int, body: bytes, began: float) -> Token:
        document: Any = None
        with contextlib.suppress(ValueError):
            document = json.loads(body)
        if not isinstance(document, dict):
            document = {}
        if status != 200:
            error = document.get("error")
            named = f": {error}" if isinstance(error, str) and error in _RFC_ERRORS else ""
            raise TokenUnavailable(f"the token endpoint returned HTTP {status}{named}")
        value = document.get("access_token")
        if not isinstance(value, str) or _TOKEN.fullmatch(value) is None:
            raise TokenUnavailable("the response of the token endpoint has no access token")
        if str(document.get("token_type", "bearer")).lower() != "bearer":
            raise TokenUnavailable("the token endpoint issues tokens of another type than Bearer")
        # Counted from before the request, so that it never outlives the lifetime at the issuer.
        return Token(value, began + _read_lifetime(document.get("expires_in")), self.client_id, self.extensions)


def _read_lifetime(document: object) -> float:
    seconds = _DEFAULT_LIFETIME_SECONDS
    if isinstance(document, int | float | str) and not isinstance(document, bool):
        with contextlib.suppress(ValueError):
            seconds = float(document)
    if not 0 < seconds < 1e9:
        raise TokenUnavailable("the token endpoint issues expired tokens")
    return seconds


def _read_body(parts: Iterable[bytes], until: float) -> bytes:
    found = b""
    for part in parts:
        found += part
        # The read timeout alone would allow a response that never ends, byte by byte.
        if len(found) > _MAX_RESPONSE_BYTES or time.monotonic() > until:
            raise TokenUnavailable("the response of the token endpoint is too large or too slow")
    return found


class _CheckedBackend(httpcore.NetworkBackend):
    """Connects to the checked addresses, so that no second lookup can lead elsewhere."""

    def __init__(self, resolve: Resolve) -> None:
        self._resolve = resolve
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that accepts; TLS still verifies the host name."""
        failed: Exception | None = None
        for address in dict.fromkeys(self._resolve(host, port)):
            try:
                return self._plain.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as refused:
                failed = refused
        raise failed or httpcore.ConnectError("no address")
