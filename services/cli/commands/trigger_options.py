"""Options of the commands that print or write triggers: how KEDA finds Lagscale."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from lagscale.errors import FieldError, InvalidInput
from services.cli.importing.options import TriggerOptions

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
DEFAULT_ADDRESS = TriggerOptions().address


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
