"""The ScaledObject or ScaledJob that replaces one: its kafka triggers ask Lagscale, everything else stays.

Comments stay too; those beside keys that go stand above the new ones. What only a server writes goes.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from services.cli.importing.comments import bare, before, below, hashed, put_before, put_below, taken
from services.cli.importing.documents import written
from services.cli.importing.findings import Findings, Outcome
from services.cli.importing.manifests import KAFKA_TYPES, inner
from services.cli.importing.options import Asking
from services.cli.importing.sources import SECRETS

#: What the API server writes: applied again, it would be refused or overwritten.
_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STEP = 2


def replaced(node: CommentedMap, monitors: Mapping[int, str], asking: Asking, findings: Findings) -> str:
    """The text of what replaces an object.

    Args:
        node: with comments; it is not changed.
        monitors: place of a trigger -> the monitor that it asks for.
        asking: how.
        findings: takes what became of the trigger's own keys.
    """
    new = copy.deepcopy(node)
    _clean(new, findings)
    triggers = new["spec"]["triggers"]
    for place, monitor in monitors.items():
        triggers[place] = _trigger(triggers[place], f"triggers[{place}]", monitor, (asking, findings))
    return written(new)


def original(node: CommentedMap, text: str | None) -> str:
    """The text for the way back: exactly as written; of a list's item as it can be applied again.

    A secret in a kafka trigger's metadata is left out: KEDA does not read it there.
    """
    old = copy.deepcopy(node)
    secret = [
        (trigger["metadata"], name)
        for trigger in old["spec"]["triggers"]
        if isinstance(trigger, CommentedMap) and trigger.get("type") in KAFKA_TYPES
        for name in inner(trigger, "metadata")
        if name in SECRETS
    ]
    if text is not None and not secret:
        return text
    for metadata, name in secret:
        metadata.pop(name, None)
    _clean(old, Findings())
    return written(old)


def _clean(node: CommentedMap, findings: Findings) -> None:
    metadata = node.get("metadata")
    if "status" in node:
        _remove(node, "status")
        findings.say("status", Outcome.DROPPED, "the server writes it")
    if not isinstance(metadata, CommentedMap):
        return
    for name in _SERVERS:
        if name in metadata:
            _remove(metadata, name)
            findings.say(f"metadata.{name}", Outcome.DROPPED, "the server writes it")
    annotations = metadata.get("annotations")
    if isinstance(annotations, CommentedMap) and _LAST_APPLIED in annotations:
        findings.say(f"metadata.annotations[{_LAST_APPLIED}]", Outcome.DROPPED, "kubectl writes it")
        if len(annotations) > 1:
            _remove(annotations, _LAST_APPLIED)
        else:
            _remove(metadata, "annotations")


def _remove(node: CommentedMap, key: str) -> None:
    """Take a key out; its comments move to the key before it, if there is one."""
    keys = list(node.keys())
    place = keys.index(key)
    beside, under = below(node, key)
    inside, after = taken(node[key])
    own = [*before(node, key), *([f"{key}: {beside}"] if beside else []), *inside]
    del node[key]
    node.ca.items.pop(key, None)
    if place:
        _below_last(node, keys[place - 1], [*hashed(own, _column(node, key)), *under, *after])
    elif node:
        put_before(node, keys[1], [*own, *bare([*under, *after])], _column(node, keys[1]))


def _below_last(node: CommentedMap, key: Any, lines: list[str]) -> None:
    """Put lines below everything that belongs to a key."""
    if not lines:
        return
    child: Any = node
    last = key
    while isinstance(child[last], CommentedMap | CommentedSeq) and child[last]:
        child = child[last]
        last = list(child.keys())[-1] if isinstance(child, CommentedMap) else len(child) - 1
    beside, under = below(child, last)
    put_below(child, last, beside, [*under, *lines])


def _column(node: CommentedMap, key: str) -> int:
    try:
        return int(node.lc.key(key)[1])
    except (KeyError, TypeError, AttributeError):
        return 0


def _trigger(old: CommentedMap, path: str, monitor: str, how: tuple[Asking, Findings]) -> CommentedMap:
    asking, findings = how
    column = old.lc.col if isinstance(old.lc.col, int) else 0
    metadata = CommentedMap()
    metadata["scalerAddress"] = asking.address
    metadata["serviceType"] = monitor
    inside, after = taken(old.get("metadata"))
    new = CommentedMap()
    if old.ca.comment:
        new.ca.comment = copy.copy(old.ca.comment)
    order = list(old.items())
    for key, value in order:
        if key == "type":
            new["type"] = asking.type
            findings.say(f"{path}.type", Outcome.CHANGED, f"{value} becomes {asking.type}: KEDA asks Lagscale")
        elif key == "metadata":
            new["metadata"] = metadata
        elif key == "authenticationRef":
            more, under = taken(value, key)
            beside, own = below(old, key)
            inside += [*([f"{key}: {beside}"] if beside else []), *more]
            after = [*after, *own, *under]
            _authentication(new, value, path, how)
            continue
        elif key == "metricType" and str(value) == "Utilization":
            why = "Utilization is for cpu and memory only, and KEDA refuses it here; AverageValue is the default"
            findings.say(f"{path}.metricType", Outcome.DROPPED, why)
            continue
        else:
            new[key] = value
            findings.say(f"{path}.{key}", Outcome.TAKEN, _why(str(key), value))
        places = old.ca.items.get(key)
        if places and key != "metadata":
            new.ca.items[key] = copy.deepcopy(places)
        elif places:
            beside, under = below(old, key)
            inside = [*([beside] if beside else []), *bare(under), *inside]
    if asking.mtls is not None and "authenticationRef" not in new:
        _authentication(new, None, path, how)
    put_before(metadata, "scalerAddress", [line for line in inside if line], column + _STEP)
    _after(new, after)
    return new


def _after(new: CommentedMap, lines: list[str]) -> None:
    """What followed the keys that went follows the trigger's last line."""
    if lines:
        _below_last(new, list(new.keys())[-1], lines)


def _authentication(new: CommentedMap, old: Any, path: str, how: tuple[Asking, Findings]) -> None:
    asking, findings = how
    if asking.mtls is None:
        why = "Lagscale asks Kafka, by the cluster's registration; KEDA sends nothing of it to an external scaler"
        findings.say(f"{path}.authenticationRef", Outcome.DROPPED, why)
        return
    kind, name = asking.mtls
    ref = CommentedMap()
    ref["name"] = name
    if kind != "TriggerAuthentication":
        ref["kind"] = kind
    new["authenticationRef"] = ref
    outcome = Outcome.ADDED if old is None else Outcome.CHANGED
    findings.say(f"{path}.authenticationRef", outcome, f"{kind} {name}: KEDA's client certificate for Lagscale")


def _why(key: str, value: Any) -> str:
    if key == "name":
        return "the same, so formulas go on naming it"
    if key == "metricType" and str(value) == "Value":
        return "the same: the HPA then compares the whole value, and not the value per replica, with the target"
    if key == "metricType":
        return "the same"
    if key == "useCachedMetrics":
        return "the same; the HPA then sees the value of KEDA's last poll, up to pollingInterval old"
    return "the same"
