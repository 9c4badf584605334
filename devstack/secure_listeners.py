"""Additional listeners of a broker: TLS without a client certificate, every SASL mechanism with and without TLS."""

from __future__ import annotations

from dataclasses import dataclass, field

from devstack.certificates import Certificates
from devstack.issuer import Issuer
from devstack.server import free_port

_PACKAGE = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class SecureListeners:
    """The listeners and their authentication.

    Attributes:
        user, password: of PLAIN; SCRAM's are those of the broker.
        issuer: issuer of the tokens for OAUTHBEARER; without one, OAUTHBEARER is disabled.
        reauthenticate_ms: maximum time until a connection must re-authenticate.
    """

    user: str
    password: str
    issuer: Issuer | None = None
    reauthenticate_ms: int = 3_600_000
    _ports: dict[str, int] = field(
        default_factory=lambda: {name: free_port() for name in ("SSL", "SASL_SSL", "SASL_PLAINTEXT")}
    )

    @property
    def listeners(self) -> list[tuple[str, str, int]]:
        """(name, protocol, port) of each."""
        return [(f"SECURED{n}", protocol, port) for n, (protocol, port) in enumerate(self._ports.items())]

    @property
    def java_options(self) -> list[str]:
        """Java options of the broker, in addition to its properties."""
        if self.issuer is None:
            return []
        # Kafka fetches keys only from URLs that are listed here.
        return [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.issuer.keys_url}"]

    def address(self, protocol: str) -> str:
        """`host:port` of the listener of this protocol."""
        return f"127.0.0.1:{self._ports[protocol]}"

    def properties(self, certificates: Certificates) -> dict[str, str]:
        """The broker's properties."""
        settings: dict[str, str] = {}
        for name, protocol, _ in self.listeners:
            prefix = f"listener.name.{name.lower()}"
            if protocol.endswith("SSL"):
                settings |= certificates.server_properties(prefix) | {f"{prefix}.ssl.client.auth": "none"}
            if protocol.startswith("SASL"):
                settings |= self._sasl(prefix)
        return settings

    def _sasl(self, prefix: str) -> dict[str, str]:
        jaas = f'username="{self.user}" password="{self.password}" user_{self.user}="{self.password}"'
        scram = f"{_PACKAGE}.scram.ScramLoginModule required;"
        mechanisms = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
        settings = {
            f"{prefix}.plain.sasl.jaas.config": f"{_PACKAGE}.plain.PlainLoginModule required {jaas};",
            f"{prefix}.scram-sha-256.sasl.jaas.config": scram,
            f"{prefix}.scram-sha-512.sasl.jaas.config": scram,
            f"{prefix}.connections.max.reauth.ms": str(self.reauthenticate_ms),
        }
        if self.issuer is not None:
            mechanisms.append("OAUTHBEARER")
            bearer = f"{prefix}.oauthbearer.sasl"
            settings |= {
                f"{bearer}.jaas.config": f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule required;",
                f"{bearer}.server.callback.handler.class": f"{_PACKAGE}.oauthbearer.OAuthBearerValidatorCallbackHandler",
                # Explicit, because the default of Kafka 4.1 ignores the listener's keys and accepts any token.
                f"{prefix}.sasl.oauthbearer.jwt.validator.class": f"{_PACKAGE}.oauthbearer.BrokerJwtValidator",
                f"{prefix}.sasl.oauthbearer.jwks.endpoint.url": self.issuer.keys_url,
                f"{prefix}.sasl.oauthbearer.expected.issuer": self.issuer.url,
                f"{prefix}.sasl.oauthbearer.expected.audience": self.issuer.audience,
            }
        return settings | {f"{prefix}.sasl.enabled.mechanisms": ",".join(mechanisms)}
