"""`lagscale scaledobject`: print a ScaledObject for a registered monitor, ready for `kubectl apply`."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

import typer
from ruamel.yaml.comments import CommentedMap

from lagscale.errors import FieldError, InvalidInput
from services.cli.client import ApiClient, open_api
from services.cli.importing.options import (
    DEFAULT_ADDRESS,
    Address,
    Mtls,
    Push,
    build_external_trigger,
    parse_trigger_options,
)
from services.cli.output import MonitorArgument, dump_yaml, parse_monitor_argument

_KUBERNETES_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
#: Kind as in `--target` -> apiVersion and kind; a Deployment is KEDA's default.
_TARGETS = {
    "deployment": None,
    "statefulset": ("apps/v1", "StatefulSet"),
    "rollout": ("argoproj.io/v1alpha1", "Rollout"),
}


def print_scaled_object(
    monitor: MonitorArgument,
    *,
    name: Annotated[str | None, typer.Option(help="Name of the ScaledObject; default: the monitor's name.")] = None,
    namespace: Annotated[
        str | None, typer.Option(help="Namespace; default: the tenant's only bound namespace.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="[KIND/]NAME",
            help="Scale target: deployment/x (or x), statefulset/x, rollout/x. Default: a deployment with the monitor's name.",
        ),
    ] = None,
    min_replicas: Annotated[int, typer.Option("--min", help="minReplicaCount.", min=0)] = 1,
    max_replicas: Annotated[
        int | None, typer.Option("--max", help="maxReplicaCount; default: as many as the partitions allow.", min=1)
    ] = None,
    scaler_address: Address = DEFAULT_ADDRESS,
    push: Push = False,
    mtls_auth: Mtls = None,
) -> None:
    """Print a ScaledObject for a monitor, ready to apply."""
    tenant, monitor_name = parse_monitor_argument(monitor)
    trigger_options = parse_trigger_options(scaler_address, push, mtls_auth)
    with open_api() as client:
        verdict = client.get(f"/v1/tenants/{tenant}/monitors/{monitor_name}/verdict")
        namespace = namespace or _find_namespace(client, tenant)
    max_replicas = max_replicas or _compute_max_replicas(verdict)
    if min_replicas > max_replicas:
        raise InvalidInput.of("--min", f"must not exceed --max ({max_replicas})")
    typer.echo(
        _render_yaml(
            _build_scaled_object(
                name or monitor_name,
                namespace,
                _build_target(target or monitor_name),
                (min_replicas, max_replicas),
                build_external_trigger(monitor_name, trigger_options),
            ),
            verdict,
            min_replicas,
        ),
        nl=False,
    )


def _find_namespace(client: ApiClient, tenant: str) -> str:
    """The only namespace that is bound to the tenant."""
    namespaces = {str(one["namespace"]) for one in client.get(f"/v1/tenants/{tenant}/bindings")["items"]}
    if len(namespaces) == 1 and namespaces != {"*"}:
        return namespaces.pop()
    available = f"bound to the tenant: {', '.join(sorted(namespaces))}" if namespaces else "none is bound to the tenant"
    raise InvalidInput.of("--namespace", f"required; {available}")


def _compute_max_replicas(verdict: dict[str, Any]) -> int:
    partitions = int(verdict["partitions"] or 0)
    if not partitions:
        raise InvalidInput.of("--max", "required: the number of partitions is unknown")
    return max(1, math.ceil(partitions / int(verdict["policy"]["consumersPerReplica"])))


def _build_target(text: str) -> CommentedMap:
    kind, _, name = text.rpartition("/")
    if kind.lower() not in {*_TARGETS, ""} or _KUBERNETES_NAME.fullmatch(name) is None:
        raise InvalidInput.of("--target", f"expected NAME or KIND/NAME, with the kinds {', '.join(_TARGETS)}")
    target_kind = _TARGETS[kind.lower() or "deployment"]
    reference = CommentedMap()
    if target_kind is not None:
        reference["apiVersion"], reference["kind"] = target_kind
    reference["name"] = name
    return reference


def _build_scaled_object(
    name: str, namespace: str, target: CommentedMap, replicas: tuple[int, int], trigger: CommentedMap
) -> CommentedMap:
    field_errors = [
        FieldError(field, "must be 1 to 253 characters of a-z, 0-9, - and ., as Kubernetes names are")
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


def _render_yaml(document: CommentedMap, verdict: dict[str, Any], min_replicas: int) -> str:
    if min_replicas == 0 and not float(verdict["policy"]["holdSeconds"]):
        document["spec"].yaml_set_comment_before_after_key(
            "minReplicaCount",
            before="holdSeconds is 0: without a last-known answer, an error at 0 replicas can stop a working group; see docs/keda.md.",
            indent=2,
        )
    return dump_yaml([document])
