"""Where a value comes from: variables of the workload, and the parameters of a TriggerAuthentication.

Nothing secret is ever a `text` here: of a Secret only words of a fixed list are read, everything else is a reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.cli.importing.manifests import SCALED_JOB, Manifests, Node, Scaled, inner, rows

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
class Given:
    """A value, or where it is.

    Attributes:
        text: None where it cannot be known from the manifests, or must not be written.
        told: where it comes from, in words; the same words mean the same value.
    """

    text: str | None
    told: str


@dataclass(frozen=True, slots=True)
class Authentication:
    """The parameters of a trigger's authentication.

    Attributes:
        told: as the report calls it; empty without one.
        missing: it is named, and not among the manifests.
        identity: provider of its pod identity; empty without one.
        role: the role that this identity takes on, as AWS names it; empty without one.
        unknown: parts of it that are not understood.
    """

    told: str = ""
    parameters: Mapping[str, Given] | None = None
    missing: bool = False
    identity: str = ""
    role: str = ""
    unknown: tuple[str, ...] = ()


def variable(manifests: Manifests, scaled: Scaled, name: str, container: str = "") -> Given:
    """A variable of the workload that is scaled, as KEDA resolves it."""
    workload, told = _workload(manifests, scaled)
    asked = f"variable {name} of {told}"
    if workload is None:
        return Given(None, f"{asked}, which is not among the manifests")
    pod = inner(workload, "spec", "template", "spec")
    wanted = container or str(inner(scaled.spec, "scaleTargetRef").get("envSourceContainerName") or "")
    containers = [*rows(pod, "containers"), *rows(pod, "initContainers")]
    chosen = next((one for one in containers if not wanted or one.get("name") == wanted), None)
    if chosen is None:
        return Given(None, f"{asked}, which has no container {wanted or 'at all'}")
    for one in reversed(rows(chosen, "env")):
        if one.get("name") == name:
            return _variable(manifests, scaled.namespace, one, asked)
    for source in reversed(rows(chosen, "envFrom")):
        stem = str(source.get("prefix") or "")
        if not name.startswith(stem):
            continue
        config = str(inner(source, "configMapRef").get("name") or "")
        text = manifests.config_value(scaled.namespace, config, name.removeprefix(stem)) if config else None
        if text is not None:
            return Given(text, f"{asked} (ConfigMap {config})")
    if rows(chosen, "envFrom"):
        return Given(None, f"{asked}, which takes variables from objects that are not among the manifests")
    return Given(None, f"{asked}, which does not have it")


def _variable(manifests: Manifests, namespace: str, one: Node, asked: str) -> Given:
    if one.get("value") is not None:
        text = str(one["value"])
        if "$(" in text:
            return Given(None, f"{asked}, which is made of other variables")
        return Given(text, asked)
    config = inner(one, "valueFrom", "configMapKeyRef")
    if config:
        told = f"{asked} (ConfigMap {namespace}/{config.get('name')}, key {config.get('key')})"
        return Given(manifests.config_value(namespace, str(config.get("name")), str(config.get("key"))), told)
    secret = inner(one, "valueFrom", "secretKeyRef")
    if secret:
        return Given(None, f"Secret {namespace}/{secret.get('name')}, key {secret.get('key')}")
    return Given(None, f"{asked}, which is set when the pod starts")


def _workload(manifests: Manifests, scaled: Scaled) -> tuple[Node | None, str]:
    if scaled.kind == SCALED_JOB:
        return {"spec": inner(scaled.spec, "jobTargetRef")}, "the job's template"
    target = inner(scaled.spec, "scaleTargetRef")
    kind, name = str(target.get("kind") or "Deployment"), str(target.get("name") or "")
    return manifests.get(kind, scaled.namespace, name), f"{kind} {scaled.namespace}/{name}"


def authentication(manifests: Manifests, scaled: Scaled, trigger: Node) -> Authentication:
    """The authentication that a trigger names."""
    ref = inner(trigger, "authenticationRef")
    name = str(ref.get("name") or "")
    if not name:
        return Authentication(parameters={})
    kind = str(ref.get("kind") or "TriggerAuthentication")
    namespace = "" if kind == "ClusterTriggerAuthentication" else scaled.namespace
    told = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    found = manifests.get(kind, namespace, name)
    if found is None:
        return Authentication(told, {}, missing=True)
    # Secrets of a ClusterTriggerAuthentication lie in the namespace of KEDA's operator.
    space = namespace or "keda"
    parameters: dict[str, Given] = {}
    unknown: list[str] = []
    spec = inner(found, "spec")
    for part, value in spec.items():
        if part == "podIdentity":
            continue
        entries = _entries(value)
        if not entries:
            unknown.append(part)
        for entry in entries:
            name_of = str(entry.get("parameter"))
            parameters[name_of] = _parameter(manifests, scaled, part, entry, space)
    pod = inner(spec, "podIdentity")
    identity = str(pod.get("provider") or "none")
    return Authentication(
        told,
        parameters,
        identity="" if identity == "none" else identity,
        role=str(pod.get("roleArn") or ""),
        unknown=tuple(unknown),
    )


def _entries(value: Any) -> list[Node]:
    """The maps with a `parameter` of one part of an authentication: a list, or the list inside a vault's map."""
    if isinstance(value, Mapping):
        return [entry for one in value.values() for entry in _entries(one) if isinstance(one, list)]
    found: Sequence[Any] = value if isinstance(value, list) else []
    return [one for one in found if isinstance(one, Mapping) and one.get("parameter")]


def _parameter(manifests: Manifests, scaled: Scaled, part: str, entry: Node, space: str) -> Given:
    parameter = str(entry.get("parameter"))
    name, key = str(entry.get("name") or ""), str(entry.get("key") or "")
    if part == "env":
        given = variable(manifests, scaled, name, str(entry.get("containerName") or ""))
        return Given(None, given.told) if parameter in SECRETS else given
    if part == "configMapTargetRef":
        text = None if parameter in SECRETS else manifests.config_value(space, name, key)
        return Given(text, f"ConfigMap {space}/{name}, key {key}")
    if part == "secretTargetRef":
        text = (manifests.secret_value(space, name, key) or "").strip()
        return Given(text if text in _WORDS.get(parameter, ()) else None, f"Secret {space}/{name}, key {key}")
    where = str(entry.get("path") or name or entry.get("id") or inner(entry, "secretKeyRef").get("name") or "")
    return Given(None, f"{part} {where}" + (f", key {key}" if key else ""))
