"""What stays around the triggers of an object, key by key, and what its owner should know about it beside Lagscale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.cli.importing.findings import ConversionLog, KeyOutcome
from services.cli.importing.manifests import SCALED_JOB, Node, ScaledResource, get_map

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
