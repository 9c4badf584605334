"""The ScaledObject or ScaledJob that replaces one: its kafka triggers ask Lagscale, everything else stays.

Comments stay too; those beside keys that go stand above the new ones. What only a server writes goes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from services.cli.importing.conversion_log import ConversionLog, KeyOutcome
from services.cli.importing.manifest_index import KAFKA_TYPES, SCALED_JOB, Node, ScaledResource, get_map
from services.cli.importing.options import TriggerOptions
from services.cli.importing.triggers import SECRETS
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

#: What the API server writes: applied again, it would be refused or overwritten.
_SERVER_FIELDS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STEP = 2


def build_replacement(
    node: CommentedMap, monitors: Mapping[int, str], trigger_options: TriggerOptions, log: ConversionLog
) -> str:
    """The text of what replaces an object.

    Args:
        node: with comments; it is not changed.
        monitors: place of a trigger -> the monitor that it asks for.
        asking: how.
        log: takes what became of the trigger's own keys.
    """
    new = copy.deepcopy(node)
    _drop_server_fields(new, log)
    triggers = new["spec"]["triggers"]
    for trigger_index, monitor in monitors.items():
        triggers[trigger_index] = _rewrite_trigger(
            triggers[trigger_index], f"triggers[{trigger_index}]", monitor, (trigger_options, log)
        )
    return dump_node(new)


def build_rollback(node: CommentedMap, text: str | None) -> str:
    """The text for the way back: exactly as written; of a list's item as it can be applied again.

    A secret in a kafka trigger's metadata is left out: KEDA does not read it there.
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
        log.add_key("status", KeyOutcome.DROPPED, "the server writes it")
    if not isinstance(metadata, CommentedMap):
        return
    for name in _SERVER_FIELDS:
        if name in metadata:
            _remove_key(metadata, name)
            log.add_key(f"metadata.{name}", KeyOutcome.DROPPED, "the server writes it")
    annotations = metadata.get("annotations")
    if isinstance(annotations, CommentedMap) and _LAST_APPLIED in annotations:
        log.add_key(f"metadata.annotations[{_LAST_APPLIED}]", KeyOutcome.DROPPED, "kubectl writes it")
        if len(annotations) > 1:
            _remove_key(annotations, _LAST_APPLIED)
        else:
            _remove_key(metadata, "annotations")


def _remove_key(node: CommentedMap, key: str) -> None:
    """Take a key out; its comments move to the key before it, if there is one."""
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
    """Put lines below everything that belongs to a key."""
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
    old: CommentedMap, path: str, monitor: str, context: tuple[TriggerOptions, ConversionLog]
) -> CommentedMap:
    trigger_options, log = context
    column = old.lc.col if isinstance(old.lc.col, int) else 0
    metadata = CommentedMap()
    metadata["scalerAddress"] = trigger_options.address
    metadata["serviceType"] = monitor
    inside, after = collect_comments(old.get("metadata"))
    new = CommentedMap()
    if old.ca.comment:
        new.ca.comment = copy.copy(old.ca.comment)
    order = list(old.items())
    for key, value in order:
        if key == "type":
            new["type"] = trigger_options.type
            log.add_key(
                f"{path}.type", KeyOutcome.CHANGED, f"{value} becomes {trigger_options.type}: KEDA asks Lagscale"
            )
        elif key == "metadata":
            new["metadata"] = metadata
        elif key == "authenticationRef":
            more, following = collect_comments(value, key)
            inline, own_comments = read_value_comments(old, key)
            inside += [*([f"{key}: {inline}"] if inline else []), *more]
            after = [*after, *own_comments, *following]
            _rewrite_authentication(new, value, path, context)
            continue
        elif key == "metricType" and str(value) == "Utilization":
            why = "Utilization is for cpu and memory only, and KEDA refuses it here; AverageValue is the default"
            log.add_key(f"{path}.metricType", KeyOutcome.DROPPED, why)
            continue
        else:
            new[key] = value
            log.add_key(f"{path}.{key}", KeyOutcome.TAKEN, _explain_kept_key(str(key), value))
        slots = old.ca.items.get(key)
        if slots and key != "metadata":
            new.ca.items[key] = copy.deepcopy(slots)
        elif slots:
            inline, following = read_value_comments(old, key)
            inside = [*([inline] if inline else []), *strip_markers(following), *inside]
    if trigger_options.mtls is not None and "authenticationRef" not in new:
        _rewrite_authentication(new, None, path, context)
    insert_before(metadata, "scalerAddress", [line for line in inside if line], column + _STEP)
    _append_comments(new, after)
    return new


def _append_comments(new: CommentedMap, lines: list[str]) -> None:
    """What followed the keys that went follows the trigger's last line."""
    if lines:
        _append_below_last(new, list(new.keys())[-1], lines)


def _rewrite_authentication(
    new: CommentedMap, old: Any, path: str, context: tuple[TriggerOptions, ConversionLog]
) -> None:
    trigger_options, log = context
    if trigger_options.mtls is None:
        why = "Lagscale asks Kafka, by the cluster's registration; KEDA sends nothing of it to an external scaler"
        log.add_key(f"{path}.authenticationRef", KeyOutcome.DROPPED, why)
        return
    kind, name = trigger_options.mtls
    ref = CommentedMap()
    ref["name"] = name
    if kind != "TriggerAuthentication":
        ref["kind"] = kind
    new["authenticationRef"] = ref
    outcome = KeyOutcome.ADDED if old is None else KeyOutcome.CHANGED
    log.add_key(f"{path}.authenticationRef", outcome, f"{kind} {name}: KEDA's client certificate for Lagscale")


def _explain_kept_key(key: str, value: Any) -> str:
    if key == "name":
        return "the same, so formulas go on naming it"
    if key == "metricType" and str(value) == "Value":
        return "the same: the HPA then compares the whole value, and not the value per replica, with the target"
    if key == "metricType":
        return "the same"
    if key == "useCachedMetrics":
        return "the same; the HPA then sees the value of KEDA's last poll, up to pollingInterval old"
    return "the same"


_PAUSED = ("autoscaling.keda.sh/paused-replicas", "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-scale-in", "autoscaling.keda.sh/paused-scale-out")  # fmt: skip
RACE = (
    "At minReplicaCount 0 an error is no safe hold: KEDA up to 2.20.2 can take an error of the HPA's path for "
    '"inactive" and send a working group to zero once the cooldown is over. '
)
_LAST_KNOWN_ANSWER = (
    "Lagscale therefore answers with the last known value while lag is unknown (holdSeconds, by default an hour)."
)
_NO_LAST_KNOWN_ANSWER = "With a fallback the monitor has holdSeconds 0, so errors reach KEDA, and the fallback does not protect from this; minReplicaCount 1 does."
FALLBACK_ZERO = (
    "fallback.replicas is 0 at minReplicaCount 0: KEDA then goes to zero on an error at once. Give it replicas, or take "
    "the fallback out and let Lagscale hold the last answer."
)


def log_unchanged_keys(resource: ScaledResource, log: ConversionLog) -> None:
    """Tell of every key of an object that is none of its triggers'."""
    _log_metadata(resource, log)
    for name, value in resource.spec.items():
        if name == "triggers":
            for trigger_index, trigger in enumerate(resource.triggers):
                if trigger_index not in resource.list_kafka_triggers():
                    kind = trigger.get("type") if isinstance(trigger, Mapping) else trigger
                    log.add_key(f"triggers[{trigger_index}]", KeyOutcome.TAKEN, f"a trigger of type {kind}, untouched")
        elif name == "advanced":
            _log_advanced(resource, get_map(resource.spec, "advanced"), log)
        else:
            log.add_key(name, KeyOutcome.TAKEN, _describe_key(resource, name, value))
    if resource.kind != SCALED_JOB:
        _warn_about_zero(resource, log)


def read_min_replicas(resource: ScaledResource) -> int:
    """minReplicaCount, 0 where it is not set."""
    return _parse_number(resource.spec.get("minReplicaCount"), 0)


def read_max_replicas(resource: ScaledResource) -> int:
    """maxReplicaCount, KEDA's default of 100 where it is not set."""
    return _parse_number(resource.spec.get("maxReplicaCount"), 100)


def _parse_number(value: Any, default: int) -> int:
    try:
        return default if value is None else int(value)
    except (TypeError, ValueError):
        return default


def _log_metadata(resource: ScaledResource, log: ConversionLog) -> None:
    metadata = get_map(resource.node, "metadata")
    if not metadata.get("namespace"):
        log.add_warning(
            f"It names no namespace; {resource.namespace} was taken (--namespace), and the binding is for that."
        )
    for name in metadata:
        if name in {"name", "namespace", "labels", "finalizers", "ownerReferences"}:
            log.add_key(f"metadata.{name}", KeyOutcome.TAKEN, "the same")
    owner = str(get_map(metadata, "labels").get("app.kubernetes.io/managed-by") or "")
    for name, value in resource.annotations.items():
        if name.startswith("kubectl.kubernetes.io/"):
            continue
        log.add_key(f"metadata.annotations[{name}]", KeyOutcome.TAKEN, "the same")
        if name in _PAUSED and str(value).lower() != "false":
            log.add_warning(f"It is paused ({name}: {value}) and stays paused; the monitor measures meanwhile.")
        if name.startswith(("meta.helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/")):
            owner = owner or name.partition("/")[0]
    if owner:
        log.add_warning(f"It is managed from elsewhere ({owner}); make the change there, or it will be undone.")


def _describe_key(resource: ScaledResource, name: str, value: Any) -> str:
    if name == "pollingInterval" and resource.kind != SCALED_JOB:
        return (
            "the same; it needs no tuning: an answer changes only with a new sample, and the HPA asks every 15 s itself"
        )
    if name == "cooldownPeriod":
        return "the same; it counts from the last active answer, and a group at work is active"
    if name == "idleReplicaCount":
        return f"the same: KEDA goes to {value} while the answer is inactive; a group at work is active (workSeconds)"
    if name == "fallback":
        return "the same; the monitor has holdSeconds 0, because KEDA's fallback counts errors"
    if name == "scalingStrategy":
        return "the same; it reckons with our value, which is 0 until lag has lasted"
    return "the same"


def _log_advanced(resource: ScaledResource, advanced: Node, log: ConversionLog) -> None:
    for name, value in advanced.items():
        path = f"advanced.{name}"
        if name == "scalingModifiers":
            _log_modifiers(resource, get_map(advanced, name), log)
        elif name == "horizontalPodAutoscalerConfig" and isinstance(value, Mapping):
            for part in value:
                why = "the same"
                if part == "behavior":
                    why += (
                        "; its windows work on our answers, so scaleUpStabilization and scaleDownStabilization stay 0"
                    )
                log.add_key(f"{path}.{part}", KeyOutcome.TAKEN, why)
        else:
            log.add_key(path, KeyOutcome.TAKEN, "the same")


def _log_modifiers(resource: ScaledResource, modifiers: Node, log: ConversionLog) -> None:
    formula = str(modifiers.get("formula") or "")
    for name in modifiers:
        log.add_key(f"advanced.scalingModifiers.{name}", KeyOutcome.TAKEN, "the same")
    trigger_names = [
        str(resource.triggers[trigger_index].get("name"))
        for trigger_index in resource.list_kafka_triggers()
        if resource.triggers[trigger_index].get("name") and str(resource.triggers[trigger_index]["name"]) in formula
    ]
    if trigger_names:
        log.add_warning(
            f"The formula names {', '.join(trigger_names)}: it stays true, and gets our value, which is 0 until lag has lasted "
            "above lagThreshold; a formula that divides by it or compares it needs a look."
        )


def _warn_about_zero(resource: ScaledResource, log: ConversionLog) -> None:
    if read_min_replicas(resource) > 0:
        return
    fallback = get_map(resource.spec, "fallback")
    log.add_warning(RACE + (_NO_LAST_KNOWN_ANSWER if fallback else _LAST_KNOWN_ANSWER))
    if fallback and _parse_number(fallback.get("replicas"), 0) == 0:
        log.add_warning(FALLBACK_ZERO)
