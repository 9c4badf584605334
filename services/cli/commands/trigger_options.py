"""Options that the commands share which print or write triggers: how KEDA finds Lagscale."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from lagscale.domain.tenancy import is_name
from lagscale.errors import Fault, InvalidInput
from services.cli.importing.options import Asking

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
DEFAULT_ADDRESS = Asking().address


def asking(address: str, push: bool, mtls: str | None) -> Asking:
    """How a trigger asks.

    Raises:
        InvalidInput: an option has a fault.
    """
    faults = []
    if _ADDRESS.fullmatch(address) is None:
        faults.append(Fault("--scaler-address", f"must read like {DEFAULT_ADDRESS}"))
    reference = None
    if mtls is not None:
        kind, _, name = mtls.rpartition("/")
        known = _KINDS.get(kind.lower() or "triggerauthentication")
        if known is None or not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", name):
            faults.append(
                Fault("--mtls-auth", f"must be a name, or {' or '.join(_KINDS.values())} and a name by a slash")
            )
        else:
            reference = (known, name)
    if faults:
        raise InvalidInput(faults)
    return Asking(address, push, reference)


def tenant_and_monitor(text: str) -> tuple[str, str]:
    """The two names of TENANT/MONITOR.

    Raises:
        InvalidInput: it reads otherwise.
    """
    tenant, _, monitor = text.partition("/")
    if not is_name(tenant) or not is_name(monitor):
        raise InvalidInput([Fault("TENANT/MONITOR", "must read like shop/ingest-logs")])
    return tenant, monitor
