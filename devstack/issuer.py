"""A token issuer on loopback: discovery, keys that rotate, client credentials, and tokens with any claims.

For tests of token verification: bearer tokens of the API, and brokers with OAUTHBEARER.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
import ssl
import threading
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from devstack.server import free_port

_POLL_SECONDS = 0.05
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key with its name and algorithm (`RS256` or `ES256`)."""

    kid: str
    algorithm: str
    private: PrivateKey

    @classmethod
    def make(cls, algorithm: str = "RS256") -> SigningKey:
        """Create a new key."""
        private: PrivateKey = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else rsa.generate_private_key(public_exponent=65537, key_size=2048)
        )
        return cls(secrets.token_hex(8), algorithm, private)

    @property
    def public(self) -> dict[str, Any]:
        """The public key as a JSON Web Key."""
        key: dict[str, Any]
        if isinstance(self.private, rsa.RSAPrivateKey):
            key = RSAAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        else:
            key = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**key, "kid": self.kid, "alg": self.algorithm, "use": "sig"}


@dataclass(slots=True)
class Client:
    """A client of the token endpoint: its secret, and the claims of its tokens."""

    secret: str
    claims: Mapping[str, Any] = field(default_factory=dict)


class Issuer:
    """An issuer; its address stays the same after `stop` and `start`.

    Args:
        audience: `aud` of its tokens.
        lifetime_seconds: of its tokens.
        tls: serve https with this context.
        name: host name in its address, as in the certificate.

    Attributes:
        clients: name -> secret and claims, for the token endpoint; may be changed at any time.
        request_counts: path -> number of requests.
        silent: while True, requests are accepted and get no response.
        broken: while True, every response is 500.
    """

    def __init__(
        self,
        audience: str = "lagscale",
        *,
        lifetime_seconds: int = 300,
        tls: ssl.SSLContext | None = None,
        name: str = "127.0.0.1",
    ) -> None:
        self._port = free_port()
        self._tls = tls
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._answers = threading.Event()
        self._answers.set()
        self._counting = threading.Lock()
        self.url = f"{'https' if tls else 'http'}://{name}:{self._port}"
        self.audience = audience
        self.lifetime_seconds = lifetime_seconds
        self.clients: dict[str, Client] = {}
        self.keys: list[SigningKey] = [SigningKey.make()]
        self.request_counts: dict[str, int] = {}
        self.broken = False

    @property
    def token_url(self) -> str:
        """URL of the token endpoint."""
        return f"{self.url}/token"

    @property
    def keys_url(self) -> str:
        """URL of the public keys."""
        return f"{self.url}/keys"

    @property
    def silent(self) -> bool:
        """Whether requests are accepted without a response."""
        return not self._answers.is_set()

    @silent.setter
    def silent(self, value: bool) -> None:
        if value:
            self._answers.clear()
        else:
            self._answers.set()

    def __enter__(self) -> Issuer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server."""
        server = _Server(("127.0.0.1", self._port), _handler(self))
        if self._tls is not None:
            # The handshake is done in the connection's own thread, so that one client cannot block the others.
            server.socket = self._tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(_POLL_SECONDS,), name="issuer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the server; connections are refused."""
        self.silent = False
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    def rotate(self, algorithm: str = "RS256", *, forget: bool = False) -> SigningKey:
        """Sign with a new key; the previous keys stay published unless `forget` is set."""
        key = SigningKey.make(algorithm)
        self.keys = [key] if forget else [key, *self.keys]
        return key

    def token(
        self,
        claims: Mapping[str, Any] | None = None,
        *,
        key: SigningKey | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str:
        """A signed token.

        Args:
            claims: override the defaults; a claim with the value None is omitted.
            key: signing key; default: the newest one.
            headers: override the defaults.
        """
        signer = key or self.keys[0]
        now = int(time.time())
        defaults = {
            "iss": self.url,
            "aud": self.audience,
            "sub": "somebody",
            "iat": now,
            "exp": now + self.lifetime_seconds,
            "jti": secrets.token_hex(8),
        }
        content = {name: value for name, value in {**defaults, **(claims or {})}.items() if value is not None}
        return jwt.encode(content, signer.private, signer.algorithm, {"kid": signer.kid, **(headers or {})})

    def answer(self, method: str, path: str, authorization: str, body: str) -> tuple[int, dict[str, Any]]:
        """Status and body of the response to a request."""
        with self._counting:
            self.request_counts[path] = self.request_counts.get(path, 0) + 1
        self._answers.wait()
        if self.broken:
            return 500, {"error": "server_error"}
        if (method, path) == ("GET", "/.well-known/openid-configuration"):
            return 200, self._discovery()
        if (method, path) == ("GET", "/keys"):
            return 200, {"keys": [key.public for key in self.keys]}
        if (method, path) == ("POST", "/token"):
            return self._grant(authorization, dict(urllib.parse.parse_qsl(body)))
        return 404, {"error": "not_found"}

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": self.keys_url,
            "token_endpoint": self.token_url,
            "grant_types_supported": ["client_credentials"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in self.keys}),
        }

    def _grant(self, authorization: str, form: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        if form.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        name, secret = _credentials(authorization, form)
        client = self.clients.get(name)
        if client is None or not hmac.compare_digest(client.secret.encode(), secret.encode()):
            return 401, {"error": "invalid_client"}
        identity_claims = {"sub": name, "client_id": name, "scope": form.get("scope")}
        return 200, {
            "access_token": self.token({**identity_claims, **client.claims}),
            "token_type": "Bearer",
            "expires_in": self.lifetime_seconds,
        }


def _credentials(authorization: str, form: Mapping[str, str]) -> tuple[str, str]:
    kind, _, text = authorization.partition(" ")
    if kind.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        name, _, secret = base64.b64decode(text, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    # RFC 6749, section 2.3.1: both are form-encoded before concatenation.
    return urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(secret)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore disconnected clients."""


def _handler(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 30

        def do_GET(self) -> None:  # The name is defined by the library.
            self._serve("GET")

        def do_POST(self) -> None:  # The name is defined by the library.
            self._serve("POST")

        def _serve(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            path = self.path.partition("?")[0]
            status, content = issuer.answer(method, path, self.headers.get("Authorization", ""), body)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    return Handler
