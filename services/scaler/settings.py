"""The scaler's settings; `__main__.py` alone reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from lagscale.settings import ListenAddress, ServiceSettings


class ScalerSettings(ServiceSettings):
    """Settings of a scaler replica, in addition to those that all services share."""

    scaler_grpc_listen: ListenAddress = Field(
        default="0.0.0.0:50051",
        description="Listen address of the gRPC server for KEDA. `GRPC_PORT` overrides the port.",
    )
    scaler_grpc_security: Literal["plain", "tls", "mtls"] = Field(
        default="plain",
        description="Security of the gRPC listener: `plain`, `tls`, or `mtls` (client certificates required).",
    )
    scaler_mtls_listen: ListenAddress | None = Field(
        default=None,
        description="Additional listen address that requires client certificates, when the first one does not.",
    )
    scaler_tls_certificate_file: Path | None = Field(
        default=None, description="PEM file with the server certificate and its chain; reloaded when it changes."
    )
    scaler_tls_key_file: Path | None = Field(
        default=None, description="PEM file with the private key of that certificate, unencrypted."
    )
    scaler_tls_client_ca_file: Path | None = Field(
        default=None, description="PEM file with the CA certificates that client certificates are verified against."
    )
    scaler_http_listen: ListenAddress = Field(
        default="0.0.0.0:8080", description="Listen address of /healthz, /readyz, /livez and /metrics."
    )
    scaler_call_timeout_seconds: float = Field(
        default=0.8,
        gt=0,
        le=30,
        description="Timeout of a gRPC call, in seconds; every call is answered or fails within it.",
    )
    scaler_pool_size: int = Field(
        default=4,
        ge=1,
        le=64,
        description="Database connections per replica, that is concurrent queries; two to four per database core.",
    )
    scaler_snapshot_ttl_seconds: float = Field(
        default=1.0,
        ge=0.05,
        le=10,
        description="How long an evaluated snapshot of a monitor is reused for further calls, in seconds.",
    )
    scaler_max_connection_age_seconds: float = Field(
        default=300.0,
        ge=10,
        description="Maximum age of a gRPC connection, in seconds; closing old ones lets KEDA find new replicas.",
    )
    scaler_max_connection_age_grace_seconds: float = Field(
        default=60.0,
        ge=2,
        description="Grace period for calls and streams after the maximum connection age, in seconds.",
    )
    scaler_drain_seconds: float = Field(
        default=3.0,
        ge=0,
        le=300,
        description="How long a stopping replica continues to serve while it reports not ready, in seconds.",
    )
    scaler_reuse_port: bool = Field(
        default=False, description="Share the gRPC port between several processes of one pod (SO_REUSEPORT)."
    )

    @property
    def requires_client_certificates(self) -> bool:
        """Whether any listener requires client certificates."""
        return self.scaler_grpc_security == "mtls" or self.scaler_mtls_listen is not None

    @model_validator(mode="after")
    def _certificates_fit(self) -> Self:
        given = {
            "LAGSCALE_SCALER_TLS_CERTIFICATE_FILE": self.scaler_tls_certificate_file,
            "LAGSCALE_SCALER_TLS_KEY_FILE": self.scaler_tls_key_file,
            "LAGSCALE_SCALER_TLS_CLIENT_CA_FILE": self.scaler_tls_client_ca_file,
        }
        needed = list(given) if self.requires_client_certificates else list(given)[:2]
        if not self.requires_client_certificates and self.scaler_grpc_security == "plain":
            needed = []
        missing = [name for name in needed if given[name] is None]
        unused = [name for name, path in given.items() if path is not None and name not in needed]
        if missing:
            raise ValueError(f"TLS requires {' and '.join(missing)}")
        if unused:
            # An unused file suggests a listener that is secure, and is not.
            raise ValueError(
                f"{' and '.join(unused)} is unused; set LAGSCALE_SCALER_GRPC_SECURITY to tls or mtls, or "
                "LAGSCALE_SCALER_MTLS_LISTEN"
            )
        if self.scaler_grpc_security == "mtls" and self.scaler_mtls_listen is not None:
            raise ValueError(
                "LAGSCALE_SCALER_MTLS_LISTEN requires a first address without client certificates; unset it"
            )
        return self
