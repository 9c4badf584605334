"""Options of an import and of the external triggers that replace KEDA's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ruamel.yaml.comments import CommentedMap

DEFAULT_SUSTAIN_SECONDS: Final = 120
DEFAULT_STUCK_AFTER_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class TriggerOptions:
    """How KEDA reaches Lagscale.

    Attributes:
        address: of the scaler, as in host:port.
        push: `external-push` instead of `external`.
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
    """Options of one import.

    Attributes:
        tenant: of all monitors; None for one tenant per namespace, with its name.
        namespace: of objects without one.
        instance: the KEDA instance of the bindings.
        sustain_seconds, stuck_after_seconds: keys of the monitors' policies.
        batch_size: ScaledObjects per batch.
        with_tenants: declare the tenants too.
    """

    trigger_options: TriggerOptions
    tenant: str | None = None
    namespace: str = "default"
    instance: str = "default"
    sustain_seconds: int = DEFAULT_SUSTAIN_SECONDS
    stuck_after_seconds: int = DEFAULT_STUCK_AFTER_SECONDS
    batch_size: int = 50
    with_tenants: bool = False


def build_external_trigger(monitor: str, options: TriggerOptions) -> CommentedMap:
    """A trigger that asks Lagscale for a monitor."""
    trigger = CommentedMap(type=options.type, metricType="AverageValue")
    trigger["metadata"] = build_trigger_metadata(monitor, options)
    if options.mtls is not None:
        trigger["authenticationRef"] = build_authentication_ref(*options.mtls)
    return trigger


def build_trigger_metadata(monitor: str, options: TriggerOptions) -> CommentedMap:
    """The metadata of such a trigger."""
    return CommentedMap(scalerAddress=options.address, serviceType=monitor)


def build_authentication_ref(kind: str, name: str) -> CommentedMap:
    """A reference to a TriggerAuthentication; KEDA's default kind is left out."""
    reference = CommentedMap(name=name)
    if kind != "TriggerAuthentication":
        reference["kind"] = kind
    return reference
