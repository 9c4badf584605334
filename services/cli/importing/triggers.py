"""One `kafka` trigger as KEDA reads it: the value and source of each key, and the errors that KEDA would report.

A value comes from the trigger, from variables of the workload, or from a TriggerAuthentication. No `text` is ever
secret: of a Secret only words of a fixed list are read, everything else is a reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lagscale.domain.policy.keda_keys import AUTHENTICATION_ONLY, FROM_ENV, KEDA_KEYS, SECRETS, KeyTarget
from lagscale.domain.policy.keys import FALSE_TEXTS, TRUE_TEXTS
from lagscale.domain.tenancy import find_group_error
from services.cli.importing.conversion_log import ConversionLog
from services.cli.importing.manifest_index import SCALED_JOB, ManifestIndex, Node, ScaledResource, get_map, list_maps
from services.cli.importing.options import DEFAULT_KEDA_NAMESPACE

#: Parameters that are not secret, and their possible values. Only these are read from a Secret.
_WORDS: Mapping[str, frozenset[str]] = {
    "sasl": frozenset({"none", "plaintext", "scram_sha256", "scram_sha512", "oauthbearer", "gssapi", "aws_msk_iam"}),
    "tls": frozenset({"enable", "disable"}),
    "saslTokenProvider": frozenset({"bearer", "aws_msk_iam"}),
}


@dataclass(frozen=True, slots=True)
class SourcedValue:
    """A value, or its source.

    Attributes:
        text: None if the manifests do not contain it, or if it is secret.
        source: in words; equal words mean the same value. Digests of clusters depend on these words.
    """

    text: str | None
    source: str


@dataclass(frozen=True, slots=True)
class TriggerCredentials:
    """The parameters of a trigger's authentication.

    Attributes:
        source: its name in the report; empty without one.
        missing: referenced, but not among the manifests.
        identity: provider of its pod identity; empty without one.
        role: ARN of the role that this identity assumes; empty without one.
        unknown: parts that are not supported.
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
    """A variable of the scaled workload, as KEDA resolves it."""
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


def read_credentials(
    manifests: ManifestIndex, resource: ScaledResource, trigger: Node, keda_namespace: str | None
) -> TriggerCredentials:
    """The authentication that a trigger refers to; `keda_namespace` is as in `ImportOptions`."""
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
            # Secrets of a ClusterTriggerAuthentication are in the namespace of KEDA's operator.
            secret_namespace = namespace or keda_namespace or _guess_keda_namespace(manifests, part, entry)
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


def _guess_keda_namespace(manifests: ManifestIndex, part: str, entry: Node) -> str:
    """The only namespace that has the Secret or ConfigMap of an entry, or KEDA's usual one."""
    kind = "ConfigMap" if part == "configMapTargetRef" else "Secret"
    namespaces = manifests.list_namespaces(kind, str(entry.get("name") or ""))
    return namespaces[0] if len(namespaces) == 1 else DEFAULT_KEDA_NAMESPACE


def _list_entries(value: Any) -> list[Node]:
    """The mappings with a `parameter` in one part of an authentication: a list, or the list inside a vault's map."""
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


_UNRENDERED = re.compile(r"\{\{.*?\}\}|\$\{[^}]*\}|\$\([^)]*\)")
_UNKNOWN_KEY = "not a key of KEDA's kafka trigger"


@dataclass(slots=True)
class KedaTrigger:
    """A trigger to convert.

    Attributes:
        resource: its object.
        trigger_index: in the list of the object.
        credentials: of its authentication.
        log: of the object.
        values: of every key that is set, from any source.
        origin: key -> its path in the report.
    """

    resource: ScaledResource
    trigger_index: int
    credentials: TriggerCredentials
    log: ConversionLog
    values: dict[str, SourcedValue] = field(default_factory=dict)
    origin: dict[str, str] = field(default_factory=dict)

    @property
    def node(self) -> Node:
        """The trigger, without comments."""
        node: Node = self.resource.triggers[self.trigger_index]
        return node

    @property
    def kind(self) -> str:
        """`kafka` or `apache-kafka`."""
        return str(self.node["type"])

    @property
    def path(self) -> str:
        """Its path in the report."""
        return f"triggers[{self.trigger_index}]"

    @property
    def name(self) -> str:
        """Its name, as formulas use it; empty without one."""
        return str(self.node.get("name") or "")

    def key(self, name: str) -> str:
        """The path of a key in the report."""
        return self.origin.get(name, f"{self.path}.metadata.{name}")

    def has(self, key: str) -> bool:
        """Whether the key is set, though its value may be unknown; blank is not set."""
        given = self.values.get(key)
        return given is not None and (given.text is None or given.text.strip() != "")

    def text(self, key: str) -> str:
        """The value without surrounding whitespace; KEDA's default if it is not set or unknown."""
        given = self.values.get(key)
        return ((given and given.text) or "").strip() or KEDA_KEYS[key].default

    def flag(self, key: str) -> bool:
        """The value of a boolean key."""
        return self.text(key) in TRUE_TEXTS


def read_trigger(
    manifests: ManifestIndex,
    resource: ScaledResource,
    index: int,
    log: ConversionLog,
    keda_namespace: str | None = None,
) -> KedaTrigger:
    """Read a trigger of an object; log the keys that KEDA does not know, and the values that it rejects."""
    credentials = read_credentials(manifests, resource, resource.triggers[index], keda_namespace)
    trigger = KedaTrigger(resource, index, credentials, log)
    for name, value in get_map(trigger.node, "metadata").items():
        _read_key(trigger, manifests, name, value)
    for name, given in (credentials.parameters or {}).items():
        _read_parameter(trigger, name, given)
    for part in credentials.unknown:
        log.add_warning(f"{trigger.path}: `{part}` of {credentials.source} is not supported; configure it by hand.")
    for name in ("bootstrapServers", "consumerGroup"):
        if not trigger.has(name):
            log.reject(f"{trigger.path}.metadata.{name}", "is required")
    group = trigger.text("consumerGroup")
    if group and (group_error := find_group_error(group)) is not None:
        log.field_errors.append(f"{trigger.key('consumerGroup')}: {group_error}")
    for name, given in trigger.values.items():
        error = _find_error(name, (given.text or "").strip())
        if error:
            log.reject(f"{trigger.path}.metadata.{name}", error)
    return trigger


def _read_key(trigger: KedaTrigger, manifests: ManifestIndex, name: str, value: Any) -> None:
    """Read one key of the trigger's metadata."""
    log, path, text = trigger.log, f"{trigger.path}.metadata.{name}", _to_text(value)
    base_name = name.removesuffix("FromEnv")
    plain_text = _to_text(get_map(trigger.node, "metadata").get(base_name)).strip()
    if _UNRENDERED.search(text):
        advice = "render it, or use the output of `kubectl get -o yaml`"
        log.field_errors.append(f"{path}: template not rendered; {advice}")
        # A placeholder, so that the key is not reported as missing too.
        trigger.values[base_name] = SourcedValue(None, "a template")
    elif name != base_name and base_name in FROM_ENV and plain_text:
        log.drop(path, f"{base_name} takes precedence; KEDA before 2.20 took {name}")
        log.add_warning(f"{path}: {base_name} is set too and takes precedence; KEDA before 2.20 took {name}.")
    elif name != base_name and base_name in FROM_ENV:
        trigger.values[base_name] = resolve_variable(manifests, trigger.resource, text.strip())
        trigger.origin[base_name] = path
    elif name not in KEDA_KEYS:
        log.drop(path, _UNKNOWN_KEY)
    elif name in AUTHENTICATION_ONLY:
        _drop_unread_key(trigger, name, path, text)
    elif name in SECRETS:
        log.drop(path, "here it is in plain text; the cluster needs it from a Secret")
        log.add_warning(f"{path} contains a secret in plain text; remove it, and change that secret.")
    elif name in FROM_ENV and not plain_text and f"{name}FromEnv" in get_map(trigger.node, "metadata"):
        log.drop(path, f"empty, so {name}FromEnv counts")
    else:
        if not isinstance(value, str):
            log.add_warning(f"{path} is not a string, which Kubernetes rejects; quote it.")
        trigger.values[name], trigger.origin[name] = SourcedValue(text, "the trigger"), path


def _drop_unread_key(trigger: KedaTrigger, name: str, path: str, text: str) -> None:
    """Log a key that KEDA reads from a TriggerAuthentication only."""
    log = trigger.log
    log.drop(path, "KEDA reads it from a TriggerAuthentication only; here it has no effect")
    if name in SECRETS:
        log.add_warning(f"{path} contains a secret in plain text; remove it, and change that secret.")
    target = KEDA_KEYS[name].target
    if target is not KeyTarget.NONE and text.strip() and name not in (trigger.credentials.parameters or {}):
        part = "secrets" if target is KeyTarget.SECRET else "security"
        log.add_task(
            f"{path}: KEDA does not read {name} here, so the cluster is registered without it. If its brokers require it, set "
            f"{part}.{name} of the cluster in register/10-clusters.yaml."
        )


def _read_parameter(trigger: KedaTrigger, name: str, given: SourcedValue) -> None:
    """Read one parameter of the trigger's authentication."""
    path = f"{trigger.path}.authenticationRef.{name}"
    if name not in KEDA_KEYS:
        trigger.log.drop(path, _UNKNOWN_KEY)
    elif KEDA_KEYS[name].target in {KeyTarget.MONITOR, KeyTarget.POLICY, KeyTarget.CLUSTER}:
        trigger.log.drop(path, "KEDA reads it from the trigger only")
    elif trigger.has(name):
        older = "; KEDA before 2.20 rejects both at once" if name in {"sasl", "tls"} else ""
        trigger.log.drop(path, f"the value in the trigger takes precedence{older}")
    else:
        trigger.values[name], trigger.origin[name] = given, path


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _find_error(name: str, text: str) -> str:
    """Why KEDA rejects the value of a policy key; empty if it does not."""
    if not text or KEDA_KEYS[name].target is not KeyTarget.POLICY or name == "partitionLimitation":
        return ""
    if name in {"lagThreshold", "activationLagThreshold"}:
        minimum = 1 if name == "lagThreshold" else 0
        valid = re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII) is not None and int(text) >= minimum
        return "" if valid else f"must be an integer of at least {minimum}"
    if name == "offsetResetPolicy":
        return "" if text in {"latest", "earliest"} else "must be latest or earliest"
    return "" if text in TRUE_TEXTS | FALSE_TEXTS else "must be true or false"
