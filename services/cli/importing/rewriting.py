"""The new ScaledObject or ScaledJob: its kafka triggers are replaced, all other keys stay and are logged.

Comments stay too; those of removed keys are moved above the new ones. Fields that only a server writes are removed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from lagscale.domain.policy.keda_keys import SECRETS
from services.cli.importing.conversion_log import ConversionLog
from services.cli.importing.manifest_index import KAFKA_TYPES, SCALED_JOB, Node, ScaledResource, get_map
from services.cli.importing.options import TriggerOptions, build_authentication_ref, build_trigger_metadata
from services.cli.importing.yaml_text import (
    as_comment_lines,
    collect_comments,
    dump_node,
    insert_before,
    insert_below,
    read_key_comments,
    read_value_comments,
    strip_markers,
)

#: Fields that the API server writes: applied again, they would be rejected or overwritten.
_SERVER_FIELDS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STEP = 2


def build_replacement(
    node: CommentedMap, monitors: Mapping[int, str], options: TriggerOptions, log: ConversionLog
) -> str:
    """The text of the new object.

    Args:
        node: the original with comments; it is not changed.
        monitors: index of a trigger -> the monitor's name.
        options: of the new triggers.
        log: receives the outcome of the trigger's own keys.
    """
    new = copy.deepcopy(node)
    _drop_server_fields(new, log)
    triggers = new["spec"]["triggers"]
    for trigger_index, monitor in monitors.items():
        path = f"triggers[{trigger_index}]"
        triggers[trigger_index] = _rewrite_trigger(triggers[trigger_index], path, monitor, options, log)
    return dump_node(new)


def build_rollback(node: CommentedMap, text: str | None) -> str:
    """The text of the original object for the rollback: exactly as written, except for an item of a list.

    A secret in the metadata of a kafka trigger is removed: KEDA does not read it there.
    """
    old = copy.deepcopy(node)
    secret = [
        (trigger["metadata"], name)
        for trigger in old["spec"]["triggers"]
        if isinstance(trigger, CommentedMap) and trigger.get("type") in KAFKA_TYPES
        for name in get_map(trigger, "metadata")
        if name in SECRETS
    ]
    if text is not None and not secret:
        return text
    for metadata, name in secret:
        metadata.pop(name, None)
    _drop_server_fields(old, ConversionLog())
    return dump_node(old)


def _drop_server_fields(node: CommentedMap, log: ConversionLog) -> None:
    metadata = node.get("metadata")
    if "status" in node:
        _remove_key(node, "status")
        log.drop("status", "written by the server")
    if not isinstance(metadata, CommentedMap):
        return
    for name in _SERVER_FIELDS:
        if name in metadata:
            _remove_key(metadata, name)
            log.drop(f"metadata.{name}", "written by the server")
    annotations = metadata.get("annotations")
    if isinstance(annotations, CommentedMap) and _LAST_APPLIED in annotations:
        log.drop(f"metadata.annotations[{_LAST_APPLIED}]", "written by kubectl")
        if len(annotations) > 1:
            _remove_key(annotations, _LAST_APPLIED)
        else:
            _remove_key(metadata, "annotations")


def _remove_key(node: CommentedMap, key: str) -> None:
    """Remove a key; its comments move to the previous key, if there is one."""
    keys = list(node.keys())
    trigger_index = keys.index(key)
    inline, following = read_value_comments(node, key)
    inside, after = collect_comments(node[key])
    own_comments = [*read_key_comments(node, key), *([f"{key}: {inline}"] if inline else []), *inside]
    del node[key]
    node.ca.items.pop(key, None)
    if trigger_index:
        _append_below_last(
            node, keys[trigger_index - 1], [*as_comment_lines(own_comments, _column(node, key)), *following, *after]
        )
    elif node:
        insert_before(node, keys[1], [*own_comments, *strip_markers([*following, *after])], _column(node, keys[1]))


def _append_below_last(node: CommentedMap, key: Any, lines: list[str]) -> None:
    """Append lines below the value of a key."""
    if not lines:
        return
    child: Any = node
    last = key
    while isinstance(child[last], CommentedMap | CommentedSeq) and child[last]:
        child = child[last]
        last = list(child.keys())[-1] if isinstance(child, CommentedMap) else len(child) - 1
    inline, following = read_value_comments(child, last)
    insert_below(child, last, inline, [*following, *lines])


def _column(node: CommentedMap, key: str) -> int:
    try:
        return int(node.lc.key(key)[1])
    except (KeyError, TypeError, AttributeError):
        return 0


def _rewrite_trigger(
    old: CommentedMap, path: str, monitor: str, options: TriggerOptions, log: ConversionLog
) -> CommentedMap:
    column = old.lc.col if isinstance(old.lc.col, int) else 0
    metadata = build_trigger_metadata(monitor, options)
    inside, after = collect_comments(old.get("metadata"))
    new = CommentedMap()
    if old.ca.comment:
        new.ca.comment = copy.copy(old.ca.comment)
    for key, value in old.items():
        if key == "type":
            new["type"] = options.type
            log.change(f"{path}.type", f"{value} becomes {options.type}")
        elif key == "metadata":
            new["metadata"] = metadata
        elif key == "authenticationRef":
            more, following = collect_comments(value, key)
            inline, own_comments = read_value_comments(old, key)
            inside += [*([f"{key}: {inline}"] if inline else []), *more]
            after = [*after, *own_comments, *following]
            _rewrite_authentication(new, value, path, options, log)
            continue
        elif key == "metricType" and str(value) == "Utilization":
            reason = "Utilization is for cpu and memory only (KEDA rejects it too); AverageValue is the default"
            log.drop(f"{path}.metricType", reason)
            continue
        else:
            new[key] = value
            log.keep(f"{path}.{key}", _explain_unchanged_key(_TRIGGER_REASONS, str(key), value))
        slots = old.ca.items.get(key)
        if slots and key != "metadata":
            new.ca.items[key] = copy.deepcopy(slots)
        elif slots:
            inline, following = read_value_comments(old, key)
            inside = [*([inline] if inline else []), *strip_markers(following), *inside]
    if options.mtls is not None and "authenticationRef" not in new:
        _rewrite_authentication(new, None, path, options, log)
    insert_before(metadata, "scalerAddress", [line for line in inside if line], column + _STEP)
    # The comments that followed removed keys.
    _append_below_last(new, list(new.keys())[-1], after)
    return new


def _rewrite_authentication(
    new: CommentedMap, old: Any, path: str, options: TriggerOptions, log: ConversionLog
) -> None:
    if options.mtls is None:
        reason = "the cluster has the credentials; KEDA does not send them to an external scaler"
        log.drop(f"{path}.authenticationRef", reason)
        return
    kind, name = options.mtls
    new["authenticationRef"] = build_authentication_ref(kind, name)
    log_key = log.add if old is None else log.change
    log_key(f"{path}.authenticationRef", f"{kind} {name}: KEDA's client certificate for Lagscale")


#: Key of a trigger, or key and value -> its reason after "unchanged".
_TRIGGER_REASONS = {
    "name": ", so formulas stay valid",
    "metricType=Value": ": the HPA compares the whole value, not the value per replica, with the target",
    "useCachedMetrics": "; the HPA gets the value of KEDA's last poll, up to pollingInterval old",
}
#: Key of the spec -> its reason after "unchanged".
_SPEC_REASONS = {
    "cooldownPeriod": "; counts from the last active answer, and a group in progress is active",
    "idleReplicaCount": ": KEDA scales to {value} while inactive; a group in progress is active (workSeconds)",
    "fallback": "; the monitor has holdSeconds 0, because KEDA's fallback counts errors",
    "scalingStrategy": "; it uses the value of Lagscale, which is 0 until lag is sustained",
}
_POLLING = "; needs no tuning: answers change only with a new sample, and the HPA polls every 15 s itself"
_PAUSED = ("autoscaling.keda.sh/paused-replicas", "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-scale-in", "autoscaling.keda.sh/paused-scale-out")  # fmt: skip
_RACE = (
    "At {zero} an error does not keep the replicas: KEDA up to 2.20.2 can treat an error of an HPA request "
    "as inactive, and scale a working group {down} after the cooldown. "
)
_LAST_KNOWN_ANSWER = (
    "Lagscale therefore returns the last-known answer while lag is unknown (holdSeconds, by default an hour)."
)
_NO_LAST_KNOWN_ANSWER = (
    "With a fallback the monitor has holdSeconds 0, so KEDA gets errors; the fallback does not prevent this; {remedy}."
)
_FALLBACK_ZERO = (
    "fallback.replicas is 0 at minReplicaCount 0: KEDA scales to zero on an error at once. Set replicas, or remove the "
    "fallback, so that Lagscale returns the last-known answer."
)
_FORMULA = (
    "At {zero} the formula alone activates the workload: KEDA ignores the activity of every trigger, and compares the "
    "formula's value with activationTarget ({activation_target}). The value of Lagscale is 0 until the total lag stays above "
    "lagThreshold for sustainSeconds, so a smaller backlog never activates, and a group that keeps up is scaled {down} "
    "after the cooldown. To prevent it, {remedy}, or remove the formula."
)


def log_unchanged_keys(resource: ScaledResource, log: ConversionLog) -> None:
    """Log every key of an object outside its triggers."""
    _log_metadata(resource, log)
    reasons = _SPEC_REASONS | ({} if resource.kind == SCALED_JOB else {"pollingInterval": _POLLING})
    for name, value in resource.spec.items():
        if name == "triggers":
            for trigger_index, trigger in enumerate(resource.triggers):
                if trigger_index not in resource.list_kafka_triggers():
                    kind = trigger.get("type") if isinstance(trigger, Mapping) else trigger
                    log.keep(f"triggers[{trigger_index}]", f"a trigger of type {kind}, unchanged")
        elif name == "advanced":
            _log_advanced(resource, get_map(resource.spec, "advanced"), log)
        else:
            log.keep(name, _explain_unchanged_key(reasons, name, value))
    if resource.kind != SCALED_JOB:
        _check_replica_counts(resource, log)
        _warn_about_zero(resource, log)


def read_min_replicas(resource: ScaledResource) -> int:
    """minReplicaCount, 0 if it is not set."""
    return _parse_number(resource.spec.get("minReplicaCount"), 0)


def read_max_replicas(resource: ScaledResource) -> int:
    """maxReplicaCount, KEDA's default of 100 if it is not set."""
    return _parse_number(resource.spec.get("maxReplicaCount"), 100)


def _parse_number(value: Any, default: int) -> int:
    try:
        return default if value is None else int(value)
    except (TypeError, ValueError):
        return default


def _log_metadata(resource: ScaledResource, log: ConversionLog) -> None:
    metadata = get_map(resource.node, "metadata")
    if not metadata.get("namespace"):
        log.add_warning(f"No namespace; {resource.namespace} is assumed (--namespace), also for the binding.")
    for name in metadata:
        if name in {"name", "namespace", "labels", "finalizers", "ownerReferences"}:
            log.keep(f"metadata.{name}", "unchanged")
    owner = str(get_map(metadata, "labels").get("app.kubernetes.io/managed-by") or "")
    for name, value in resource.annotations.items():
        if name.startswith("kubectl.kubernetes.io/"):
            continue
        log.keep(f"metadata.annotations[{name}]", "unchanged")
        if name in _PAUSED and str(value).lower() != "false":
            log.add_warning(f"Paused ({name}: {value}), and stays paused; the monitor is polled meanwhile.")
        if name.startswith(("meta.helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/")):
            owner = owner or name.partition("/")[0]
    if owner:
        log.add_warning(f"Managed by {owner}; make the change there, or it will be reverted.")


def _explain_unchanged_key(reasons: Mapping[str, str], name: str, value: Any) -> str:
    reason = reasons.get(f"{name}={value}") or reasons.get(name)
    return "unchanged" if reason is None else "unchanged" + reason.format(value=value)


def _log_advanced(resource: ScaledResource, advanced: Node, log: ConversionLog) -> None:
    for name, value in advanced.items():
        path = f"advanced.{name}"
        if name == "scalingModifiers":
            _log_modifiers(resource, get_map(advanced, name), log)
        elif name == "horizontalPodAutoscalerConfig" and isinstance(value, Mapping):
            for part in value:
                reason = "unchanged"
                if part == "behavior":
                    reason += "; its windows apply to the answers of Lagscale, so scaleUpStabilization and scaleDownStabilization stay 0"
                log.keep(f"{path}.{part}", reason)
        else:
            log.keep(path, "unchanged")


def _log_modifiers(resource: ScaledResource, modifiers: Node, log: ConversionLog) -> None:
    formula = str(modifiers.get("formula") or "")
    for name in modifiers:
        log.keep(f"advanced.scalingModifiers.{name}", "unchanged")
    trigger_names = [
        str(resource.triggers[trigger_index].get("name"))
        for trigger_index in resource.list_kafka_triggers()
        if resource.triggers[trigger_index].get("name") and str(resource.triggers[trigger_index]["name"]) in formula
    ]
    if trigger_names:
        log.add_warning(
            f"The formula uses {', '.join(trigger_names)}: it stays valid, and gets the value of Lagscale, which is 0 until lag "
            "is sustained above lagThreshold; check a formula that divides by it or compares it."
        )


def _check_replica_counts(resource: ScaledResource, log: ConversionLog) -> None:
    """Reject the bounds that KEDA rejects (`CheckReplicaCountBoundsAreValid`)."""
    spec, maximum = resource.spec, read_max_replicas(resource)
    # KEDA compares with the minimum of the HPA, which is 1 for an explicit 0, and with 0 if none is set.
    minimum = max(read_min_replicas(resource), 1) if spec.get("minReplicaCount") is not None else 0
    if minimum > maximum:
        log.reject("minReplicaCount", f"{minimum} is above maxReplicaCount {maximum}", "; lower it")
    idle = spec.get("idleReplicaCount")
    if idle is None:
        return
    if _parse_number(idle, 0) >= minimum:
        text = f"{idle} must be below minReplicaCount {minimum}"
        log.reject("idleReplicaCount", text, "; remove it, or raise minReplicaCount")
    elif read_min_replicas(resource) == 0:
        log.add_warning(f"idleReplicaCount {idle} has no effect beside minReplicaCount 0; remove it.")


def _warn_about_zero(resource: ScaledResource, log: ConversionLog) -> None:
    """Warn of KEDA's race: while inactive, it asks for idleReplicaCount first, whatever the minimum."""
    idle = resource.spec.get("idleReplicaCount")
    if idle is not None:
        zero, down, remedy = f"idleReplicaCount {idle}", f"to {idle}", "remove idleReplicaCount"
    elif read_min_replicas(resource) == 0:
        zero, down, remedy = "minReplicaCount 0", "to zero", "set minReplicaCount to 1"
    else:
        return
    fallback, modifiers = get_map(resource.spec, "fallback"), get_map(resource.spec, "advanced", "scalingModifiers")
    last_known = _NO_LAST_KNOWN_ANSWER.format(remedy=remedy) if fallback else _LAST_KNOWN_ANSWER
    log.add_warning(_RACE.format(zero=zero, down=down) + last_known)
    if fallback and read_min_replicas(resource) == 0 and _parse_number(fallback.get("replicas"), 0) == 0:
        log.add_warning(_FALLBACK_ZERO)
    if modifiers:
        activation_target = modifiers.get("activationTarget") or 0
        log.add_task(_FORMULA.format(zero=zero, down=down, remedy=remedy, activation_target=activation_target))
