"""The scaler's settings; `__main__.py` alone reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from lagscale.settings import ListenAddress, ServiceSettings


class ScalerSettings(ServiceSettings):
    """What a scaler replica needs beside the settings that all services share."""

    scaler_grpc_listen: ListenAddress = Field(
        default="0.0.0.0:50051", description="Where KEDA's calls are served. `GRPC_PORT` changes the port alone."
    )
    scaler_grpc_security: Literal["plain", "tls", "mtls"] = Field(
        default="plain",
        description="What that address speaks: plain text, TLS, or TLS with client certificates required.",
    )
    scaler_mtls_listen: ListenAddress | None = Field(
        default=None,
        description="A second address that requires client certificates, where the first one does not.",
    )
    scaler_tls_certificate_file: Path | None = Field(
        default=None, description="PEM file of the server's certificate and its chain; read again when it changes."
    )
    scaler_tls_key_file: Path | None = Field(
        default=None, description="PEM file of that certificate's private key, without a password."
    )
    scaler_tls_client_ca_file: Path | None = Field(
        default=None, description="PEM file of the authorities whose client certificates are taken."
    )
    scaler_http_listen: ListenAddress = Field(
        default="0.0.0.0:8080", description="Where /healthz, /readyz, /livez and /metrics are served."
    )
    call_seconds: float = Field(
        default=0.8, gt=0, le=30, description="Every call ends within this, with an answer or an error; seconds."
    )
    scaler_pool_size: int = Field(
        default=4,
        ge=1,
        le=64,
        description="Queries of one replica at a time: two to four for each core of the database's share.",
    )
    memo_seconds: float = Field(
        default=1.0, ge=0.05, le=10, description="How long one reading of a monitor serves its calls; seconds."
    )
    connection_age_seconds: float = Field(
        default=300.0,
        ge=10,
        description="The greatest age of a connection, so that KEDA finds new replicas; seconds.",
    )
    connection_grace_seconds: float = Field(
        default=60.0, ge=2, description="How long calls and streams may outlast their connection's age; seconds."
    )
    drain_seconds: float = Field(
        default=3.0,
        ge=0,
        le=300,
        description="How long a stopping replica goes on serving while it is not ready any more; seconds.",
    )
    reuse_address: bool = Field(
        default=False, description="Share the gRPC address among several processes of one pod (SO_REUSEPORT)."
    )

    @property
    def requires_client_certificates(self) -> bool:
        """Whether any address asks its clients for a certificate."""
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
        needless = [name for name, path in given.items() if path is not None and name not in needed]
        if missing:
            raise ValueError(f"TLS needs {' and '.join(missing)}; set what is missing")
        if needless:
            # A file that nobody uses is a listener that somebody believes to be safe.
            raise ValueError(
                f"{' and '.join(needless)} would not be used; set LAGSCALE_SCALER_GRPC_SECURITY to tls or mtls, or "
                "LAGSCALE_SCALER_MTLS_LISTEN"
            )
        if self.scaler_grpc_security == "mtls" and self.scaler_mtls_listen is not None:
            raise ValueError("LAGSCALE_SCALER_MTLS_LISTEN is for a first address without client certificates; unset it")
        return self
