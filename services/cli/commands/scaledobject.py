"""`lagscale scaledobject`: a ScaledObject for a registered monitor, ready for `kubectl apply`."""

from __future__ import annotations

import math
import re
from io import StringIO
from typing import Annotated, Any

import typer
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from lagscale.errors import FieldError, InvalidInput
from lagscale.settings import load
from services.cli.client import ApiClient
from services.cli.commands.trigger_options import (
    DEFAULT_ADDRESS,
    Address,
    Mtls,
    Push,
    parse_monitor_argument,
    parse_trigger_options,
)
from services.cli.importing.options import TriggerOptions
from services.cli.settings import CliSettings

_KUBERNETES_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
#: As `--target` names them -> apiVersion and kind; KEDA takes a Deployment where nothing is said.
_TARGETS = {
    "deployment": None,
    "statefulset": ("apps/v1", "StatefulSet"),
    "rollout": ("argoproj.io/v1alpha1", "Rollout"),
}


def scaledobject(
    monitor: Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="Which monitor it asks for.")],
    *,
    name: Annotated[str | None, typer.Option(help="Its name; the monitor's, if left out.")] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Its namespace; the only one that is bound to the tenant, if left out.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="[KIND/]NAME",
            help="What is scaled: deployment/x (or x), statefulset/x, rollout/x. A deployment of its own name, if left out.",
        ),
    ] = None,
    least: Annotated[int, typer.Option("--min", help="minReplicaCount.", min=0)] = 1,
    most: Annotated[
        int | None, typer.Option("--max", help="maxReplicaCount; as many as partitions can feed, if left out.", min=1)
    ] = None,
    scaler_address: Address = DEFAULT_ADDRESS,
    push: Push = False,
    mtls_auth: Mtls = None,
) -> None:
    """Print a ScaledObject for a monitor, ready to apply."""
    tenant, monitor_name = parse_monitor_argument(monitor)
    trigger_options = parse_trigger_options(scaler_address, push, mtls_auth)
    with ApiClient(load(CliSettings)) as client:
        verdict = client.get(f"/v1/tenants/{tenant}/monitors/{monitor_name}/verdict")
        namespace = namespace or _find_namespace(client, tenant)
    most = most or _compute_max_replicas(verdict)
    if least > most:
        raise InvalidInput([FieldError("--min", f"must not be above --max, which is {most}")])
    typer.echo(
        _render_yaml(
            _build_scaled_object(
                name or monitor_name,
                namespace,
                _build_target(target or monitor_name),
                (least, most),
                _build_trigger(monitor_name, trigger_options),
            ),
            verdict,
            least,
        ),
        nl=False,
    )


def _find_namespace(client: ApiClient, tenant: str) -> str:
    """The namespace that is bound to the tenant, where there is one and no other."""
    namespaces = {str(one["namespace"]) for one in client.get(f"/v1/tenants/{tenant}/bindings")["items"]}
    if len(namespaces) == 1 and namespaces != {"*"}:
        return namespaces.pop()
    available = (
        f"bound to the tenant are {', '.join(sorted(namespaces))}" if namespaces else "none is bound to the tenant yet"
    )
    raise InvalidInput([FieldError("--namespace", f"must be given: {available}")])


def _compute_max_replicas(verdict: dict[str, Any]) -> int:
    partitions = int(verdict["partitions"] or 0)
    if not partitions:
        raise InvalidInput([FieldError("--max", "must be given: the number of partitions is not known yet")])
    return max(1, math.ceil(partitions / int(verdict["policy"]["consumersPerReplica"])))


def _build_target(text: str) -> CommentedMap:
    kind, _, name = text.rpartition("/")
    if kind.lower() not in {*_TARGETS, ""} or _KUBERNETES_NAME.fullmatch(name) is None:
        raise InvalidInput([FieldError("--target", f"must be a name, or {', '.join(_TARGETS)} and a name by a slash")])
    target_kind = _TARGETS[kind.lower() or "deployment"]
    reference = CommentedMap()
    if target_kind is not None:
        reference["apiVersion"], reference["kind"] = target_kind
    reference["name"] = name
    return reference


def _build_trigger(monitor: str, trigger_options: TriggerOptions) -> CommentedMap:
    trigger = CommentedMap(type=trigger_options.type, metricType="AverageValue")
    trigger["metadata"] = CommentedMap(scalerAddress=trigger_options.address, serviceType=monitor)
    if trigger_options.mtls is not None:
        kind, name = trigger_options.mtls
        trigger["authenticationRef"] = CommentedMap(name=name)
        if kind != "TriggerAuthentication":
            trigger["authenticationRef"]["kind"] = kind
    return trigger


def _build_scaled_object(
    name: str, namespace: str, target: CommentedMap, replicas: tuple[int, int], trigger: CommentedMap
) -> CommentedMap:
    field_errors = [
        FieldError(field, "must be 1 to 253 of a-z, 0-9, - and ., as Kubernetes names things")
        for field, text in (("--name", name), ("--namespace", namespace))
        if _KUBERNETES_NAME.fullmatch(text) is None
    ]
    if field_errors:
        raise InvalidInput(field_errors)
    spec = CommentedMap(scaleTargetRef=target, minReplicaCount=replicas[0], maxReplicaCount=replicas[1])
    spec["triggers"] = [trigger]
    return CommentedMap(
        apiVersion="keda.sh/v1alpha1",
        kind="ScaledObject",
        metadata=CommentedMap(name=name, namespace=namespace),
        spec=spec,
    )


def _render_yaml(document: CommentedMap, verdict: dict[str, Any], least: int) -> str:
    if least == 0 and not float(verdict["policy"]["holdSeconds"]):
        document["spec"].yaml_set_comment_before_after_key(
            "minReplicaCount",
            before="The monitor holds no answer (holdSeconds 0), and an error at 0 can end a working group: see docs/keda.md.",
            indent=2,
        )
    yaml = YAML(typ="rt")
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    yaml.dump(document, out)
    return out.getvalue()
