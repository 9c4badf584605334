"""Where a value comes from: variables of the workload, and the parameters of a TriggerAuthentication.

Nothing secret is ever a `text` here: of a Secret only words of a fixed list are read, everything else is a reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.cli.importing.manifests import SCALED_JOB, ManifestIndex, Node, ScaledResource, get_map, list_maps

#: Parameters whose values are no secrets, and the words that they can be. Only these are read out of a Secret.
_WORDS: Mapping[str, frozenset[str]] = {
    "sasl": frozenset({"none", "plaintext", "scram_sha256", "scram_sha512", "oauthbearer", "gssapi", "aws_msk_iam"}),
    "tls": frozenset({"enable", "disable"}),
    "saslTokenProvider": frozenset({"bearer", "aws_msk_iam"}),
}
#: Parameters that are secrets: not even a text that stands open in a manifest is taken over.
SECRETS = frozenset(
    {"password", "key", "keyPassword", "keytab", "awsAccessKeyID", "awsSecretAccessKey", "awsSessionToken"}
)


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value, or where it is.

    Attributes:
        text: None where it cannot be known from the manifests, or must not be written.
        source: where it comes from, in words; the same words mean the same value.
    """

    text: str | None
    source: str


@dataclass(frozen=True, slots=True)
class TriggerCredentials:
    """The parameters of a trigger's authentication.

    Attributes:
        source: as the report calls it; empty without one.
        missing: it is named, and not among the manifests.
        identity: provider of its pod identity; empty without one.
        role: the role that this identity takes on, as AWS names it; empty without one.
        unknown: parts of it that are not understood.
    """

    source: str = ""
    parameters: Mapping[str, SourcedValue] | None = None
    missing: bool = False
    identity: str = ""
    role: str = ""
    unknown: tuple[str, ...] = ()


def resolve_variable(
    manifests: ManifestIndex, resource: ScaledResource, name: str, container: str = ""
) -> SourcedValue:
    """A variable of the workload that is scaled, as KEDA resolves it."""
    workload, source = _find_workload(manifests, resource)
    label = f"variable {name} of {source}"
    if workload is None:
        return SourcedValue(None, f"{label}, which is not among the manifests")
    pod = get_map(workload, "spec", "template", "spec")
    container_name = container or str(get_map(resource.spec, "scaleTargetRef").get("envSourceContainerName") or "")
    containers = [*list_maps(pod, "containers"), *list_maps(pod, "initContainers")]
    chosen = next((one for one in containers if not container_name or one.get("name") == container_name), None)
    if chosen is None:
        return SourcedValue(None, f"{label}, which has no container {container_name or 'at all'}")
    for one in reversed(list_maps(chosen, "env")):
        if one.get("name") == name:
            return _resolve_variable(manifests, resource.namespace, one, label)
    for env_source in reversed(list_maps(chosen, "envFrom")):
        prefix = str(env_source.get("prefix") or "")
        if not name.startswith(prefix):
            continue
        config = str(get_map(env_source, "configMapRef").get("name") or "")
        text = manifests.config_value(resource.namespace, config, name.removeprefix(prefix)) if config else None
        if text is not None:
            return SourcedValue(text, f"{label} (ConfigMap {config})")
    if list_maps(chosen, "envFrom"):
        return SourcedValue(None, f"{label}, which takes variables from objects that are not among the manifests")
    return SourcedValue(None, f"{label}, which does not have it")


def _resolve_variable(manifests: ManifestIndex, namespace: str, one: Node, label: str) -> SourcedValue:
    if one.get("value") is not None:
        text = str(one["value"])
        if "$(" in text:
            return SourcedValue(None, f"{label}, which is made of other variables")
        return SourcedValue(text, label)
    config = get_map(one, "valueFrom", "configMapKeyRef")
    if config:
        source = f"{label} (ConfigMap {namespace}/{config.get('name')}, key {config.get('key')})"
        return SourcedValue(manifests.config_value(namespace, str(config.get("name")), str(config.get("key"))), source)
    secret = get_map(one, "valueFrom", "secretKeyRef")
    if secret:
        return SourcedValue(None, f"Secret {namespace}/{secret.get('name')}, key {secret.get('key')}")
    return SourcedValue(None, f"{label}, which is set when the pod starts")


def _find_workload(manifests: ManifestIndex, resource: ScaledResource) -> tuple[Node | None, str]:
    if resource.kind == SCALED_JOB:
        return {"spec": get_map(resource.spec, "jobTargetRef")}, "the job's template"
    target = get_map(resource.spec, "scaleTargetRef")
    kind, name = str(target.get("kind") or "Deployment"), str(target.get("name") or "")
    return manifests.get(kind, resource.namespace, name), f"{kind} {resource.namespace}/{name}"


def read_credentials(manifests: ManifestIndex, resource: ScaledResource, trigger: Node) -> TriggerCredentials:
    """The authentication that a trigger names."""
    ref = get_map(trigger, "authenticationRef")
    name = str(ref.get("name") or "")
    if not name:
        return TriggerCredentials(parameters={})
    kind = str(ref.get("kind") or "TriggerAuthentication")
    namespace = "" if kind == "ClusterTriggerAuthentication" else resource.namespace
    source = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    node = manifests.get(kind, namespace, name)
    if node is None:
        return TriggerCredentials(source, {}, missing=True)
    # Secrets of a ClusterTriggerAuthentication lie in the namespace of KEDA's operator.
    secret_namespace = namespace or "keda"
    parameters: dict[str, SourcedValue] = {}
    unknown: list[str] = []
    spec = get_map(node, "spec")
    for part, value in spec.items():
        if part == "podIdentity":
            continue
        entries = _list_entries(value)
        if not entries:
            unknown.append(part)
        for entry in entries:
            name_of = str(entry.get("parameter"))
            parameters[name_of] = _resolve_parameter(manifests, resource, part, entry, secret_namespace)
    pod = get_map(spec, "podIdentity")
    identity = str(pod.get("provider") or "none")
    return TriggerCredentials(
        source,
        parameters,
        identity="" if identity == "none" else identity,
        role=str(pod.get("roleArn") or ""),
        unknown=tuple(unknown),
    )


def _list_entries(value: Any) -> list[Node]:
    """The maps with a `parameter` of one part of an authentication: a list, or the list inside a vault's map."""
    if isinstance(value, Mapping):
        return [entry for one in value.values() for entry in _list_entries(one) if isinstance(one, list)]
    items: Sequence[Any] = value if isinstance(value, list) else []
    return [one for one in items if isinstance(one, Mapping) and one.get("parameter")]


def _resolve_parameter(
    manifests: ManifestIndex, resource: ScaledResource, part: str, entry: Node, secret_namespace: str
) -> SourcedValue:
    parameter = str(entry.get("parameter"))
    name, key = str(entry.get("name") or ""), str(entry.get("key") or "")
    if part == "env":
        given = resolve_variable(manifests, resource, name, str(entry.get("containerName") or ""))
        return SourcedValue(None, given.source) if parameter in SECRETS else given
    if part == "configMapTargetRef":
        text = None if parameter in SECRETS else manifests.config_value(secret_namespace, name, key)
        return SourcedValue(text, f"ConfigMap {secret_namespace}/{name}, key {key}")
    if part == "secretTargetRef":
        text = (manifests.secret_value(secret_namespace, name, key) or "").strip()
        return SourcedValue(
            text if text in _WORDS.get(parameter, ()) else None, f"Secret {secret_namespace}/{name}, key {key}"
        )
    where = str(entry.get("path") or name or entry.get("id") or get_map(entry, "secretKeyRef").get("name") or "")
    return SourcedValue(None, f"{part} {where}" + (f", key {key}" if key else ""))
