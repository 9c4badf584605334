"""The scaler's settings; `__main__.py` alone reads them."""

from __future__ import annotations

from pydantic import Field

from lagscale.settings import Address, ServiceSettings


class ScalerSettings(ServiceSettings):
    """What a scaler replica needs beside the settings that all services share."""

    scaler_grpc_listen: Address = Field(
        default="0.0.0.0:50051", description="Where KEDA's calls are served. `GRPC_PORT` changes the port alone."
    )
    scaler_http_listen: Address = Field(
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
