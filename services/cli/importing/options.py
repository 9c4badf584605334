"""What the caller of an import decides: for which tenant, how the triggers ask, and the numbers that KEDA has not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TriggerOptions:
    """How a trigger asks Lagscale.

    Attributes:
        address: of the scaler, as in host:port.
        push: `external-push` in place of `external`.
        mtls: kind and name of the TriggerAuthentication with KEDA's client certificate.
    """

    address: str = "lagscale-scaler.lagscale.svc:50051"
    push: bool = False
    mtls: tuple[str, str] | None = None

    @property
    def type(self) -> str:
        """The trigger's type."""
        return "external-push" if self.push else "external"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """Of one import.

    Attributes:
        tenant: None means a tenant for each namespace, of its name.
        namespace: of objects that name none.
        instance: the KEDA instance of the bindings.
        sustain_seconds, stuck_after_seconds: of the monitors.
        batch: ScaledObjects in one batch.
        tenants: write the tenants, too.
    """

    trigger_options: TriggerOptions
    tenant: str | None = None
    namespace: str = "default"
    instance: str = "default"
    sustain_seconds: int = 120
    stuck_after_seconds: int = 300
    batch: int = 50
    tenants: bool = False
