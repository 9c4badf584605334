"""Options that the commands share which print or write triggers: how KEDA finds Lagscale."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from lagscale.domain.tenancy import is_name
from lagscale.errors import FieldError, InvalidInput
from services.cli.importing.options import TriggerOptions

_KINDS = {
    "triggerauthentication": "TriggerAuthentication",
    "clustertriggerauthentication": "ClusterTriggerAuthentication",
}
_ADDRESS = re.compile(r"[^\s:/]+:\d{1,5}")

Address = Annotated[str, typer.Option("--scaler-address", metavar="HOST:PORT", help="Where KEDA finds the scaler.")]
Push = Annotated[bool, typer.Option("--push", help="Triggers of type external-push, which wake without a poll.")]
Mtls = Annotated[
    str | None,
    typer.Option(
        "--mtls-auth",
        metavar="[KIND/]NAME",
        help="The TriggerAuthentication (or ClusterTriggerAuthentication/NAME) with KEDA's client certificate.",
    ),
]
DEFAULT_ADDRESS = TriggerOptions().address


def parse_trigger_options(address: str, push: bool, mtls: str | None) -> TriggerOptions:
    """How a trigger asks.

    Raises:
        InvalidInput: an option has a fault.
    """
    field_errors = []
    if _ADDRESS.fullmatch(address) is None:
        field_errors.append(FieldError("--scaler-address", f"must read like {DEFAULT_ADDRESS}"))
    reference = None
    if mtls is not None:
        kind, _, name = mtls.rpartition("/")
        kind_name = _KINDS.get(kind.lower() or "triggerauthentication")
        if kind_name is None or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name):
            field_errors.append(
                FieldError("--mtls-auth", f"must be a name, or {' or '.join(_KINDS.values())} and a name by a slash")
            )
        else:
            reference = (kind_name, name)
    if field_errors:
        raise InvalidInput(field_errors)
    return TriggerOptions(address, push, reference)


def parse_monitor_argument(text: str) -> tuple[str, str]:
    """The two names of TENANT/MONITOR.

    Raises:
        InvalidInput: it reads otherwise.
    """
    tenant, _, monitor = text.partition("/")
    if not is_name(tenant) or not is_name(monitor):
        raise InvalidInput([FieldError("TENANT/MONITOR", "must read like shop/ingest-logs")])
    return tenant, monitor
