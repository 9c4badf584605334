"""Options of an import, and of the external triggers that replace KEDA's: how KEDA finds Lagscale."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final

import typer
from ruamel.yaml.comments import CommentedMap

from lagscale.errors import FieldError, InvalidInput

DEFAULT_SUSTAIN_SECONDS: Final = 120
DEFAULT_STUCK_AFTER_SECONDS: Final = 300
#: The namespace of KEDA's operator.
DEFAULT_KEDA_NAMESPACE: Final = "keda"

DEFAULT_ADDRESS: Final = "lagscale-scaler.lagscale.svc:50051"
_KINDS = {
    "triggerauthentication": "TriggerAuthentication",
    "clustertriggerauthentication": "ClusterTriggerAuthentication",
}
_ADDRESS = re.compile(r"[^\s:/]+:\d{1,5}")

Address = Annotated[
    str, typer.Option("--scaler-address", metavar="HOST:PORT", help="Address of the scaler, as KEDA reaches it.")
]
Push = Annotated[
    bool, typer.Option("--push", help="Use triggers of type external-push, which activate without polling.")
]
Mtls = Annotated[
    str | None,
    typer.Option(
        "--mtls-auth",
        metavar="[KIND/]NAME",
        help="TriggerAuthentication (or ClusterTriggerAuthentication/NAME) with KEDA's client certificate.",
    ),
]


@dataclass(frozen=True, slots=True)
class TriggerOptions:
    """How KEDA reaches Lagscale.

    Attributes:
        address: of the scaler, as in host:port.
        push: `external-push` instead of `external`.
        mtls: kind and name of the TriggerAuthentication with KEDA's client certificate.
    """

    address: str = DEFAULT_ADDRESS
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
        keda_namespace: of the Secrets of ClusterTriggerAuthentications; None for the only one that has them, or `keda`.
        sustain_seconds, stuck_after_seconds: keys of the monitors' policies.
        batch_size: ScaledObjects per batch.
        with_tenants: declare the tenants too.
    """

    trigger_options: TriggerOptions
    tenant: str | None = None
    namespace: str = "default"
    instance: str = "default"
    keda_namespace: str | None = None
    sustain_seconds: int = DEFAULT_SUSTAIN_SECONDS
    stuck_after_seconds: int = DEFAULT_STUCK_AFTER_SECONDS
    batch_size: int = 50
    with_tenants: bool = False


def parse_trigger_options(address: str, push: bool, mtls: str | None) -> TriggerOptions:
    """The options of a trigger.

    Raises:
        InvalidInput: an option is invalid.
    """
    field_errors = []
    if _ADDRESS.fullmatch(address) is None:
        field_errors.append(FieldError("--scaler-address", f"expected HOST:PORT, for example {DEFAULT_ADDRESS}"))
    reference = None
    if mtls is not None:
        kind, _, name = mtls.rpartition("/")
        kind_name = _KINDS.get(kind.lower() or "triggerauthentication")
        if kind_name is None or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name):
            field_errors.append(FieldError("--mtls-auth", f"expected a name, or {' or '.join(_KINDS.values())}/NAME"))
        else:
            reference = (kind_name, name)
    if field_errors:
        raise InvalidInput(field_errors)
    return TriggerOptions(address, push, reference)


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
