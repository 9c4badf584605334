"""The ScaledObject or ScaledJob that replaces one: its kafka triggers ask Lagscale, everything else stays.

Comments stay too; those beside keys that go stand above the new ones. What only a server writes goes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from services.cli.importing.comments import (
    as_comment_lines,
    collect_comments,
    insert_before,
    insert_below,
    read_key_comments,
    read_value_comments,
    strip_markers,
)
from services.cli.importing.documents import dump_node
from services.cli.importing.findings import ConversionLog, KeyOutcome
from services.cli.importing.manifests import KAFKA_TYPES, get_map
from services.cli.importing.options import TriggerOptions
from services.cli.importing.sources import SECRETS

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
