"""What stays around the triggers of an object, key by key, and what its owner should know about it beside Lagscale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.cli.importing.findings import Findings, Outcome
from services.cli.importing.manifests import SCALED_JOB, Node, Scaled, inner

_PAUSED = ("autoscaling.keda.sh/paused-replicas", "autoscaling.keda.sh/paused", "autoscaling.keda.sh/paused-scale-in", "autoscaling.keda.sh/paused-scale-out")  # fmt: skip
RACE = (
    "At minReplicaCount 0 an error is no safe hold: KEDA up to 2.20.2 can take an error of the HPA's path for "
    '"inactive" and send a working group to zero once the cooldown is over. '
)
_HELD = "Lagscale therefore answers with the last known value while lag is unknown (holdSeconds, by default an hour)."
_NOT_HELD = "With a fallback the monitor has holdSeconds 0, so errors reach KEDA, and the fallback does not protect from this; minReplicaCount 1 does."
FALLBACK_ZERO = (
    "fallback.replicas is 0 at minReplicaCount 0: KEDA then goes to zero on an error at once. Give it replicas, or take "
    "the fallback out and let Lagscale hold the last answer."
)


def tell(scaled: Scaled, findings: Findings) -> None:
    """Tell of every key of an object that is none of its triggers'."""
    _about_metadata(scaled, findings)
    for name, value in scaled.spec.items():
        if name == "triggers":
            for place, trigger in enumerate(scaled.triggers):
                if place not in scaled.kafka():
                    kind = trigger.get("type") if isinstance(trigger, Mapping) else trigger
                    findings.say(f"triggers[{place}]", Outcome.TAKEN, f"a trigger of type {kind}, untouched")
        elif name == "advanced":
            _about_advanced(scaled, inner(scaled.spec, "advanced"), findings)
        else:
            findings.say(name, Outcome.TAKEN, _about(scaled, name, value))
    if scaled.kind != SCALED_JOB:
        _about_zero(scaled, findings)


def minimum(scaled: Scaled) -> int:
    """minReplicaCount, 0 where it is not set."""
    return _number(scaled.spec.get("minReplicaCount"), 0)


def maximum(scaled: Scaled) -> int:
    """maxReplicaCount, KEDA's default of 100 where it is not set."""
    return _number(scaled.spec.get("maxReplicaCount"), 100)


def _number(value: Any, default: int) -> int:
    try:
        return default if value is None else int(value)
    except (TypeError, ValueError):
        return default


def _about_metadata(scaled: Scaled, findings: Findings) -> None:
    metadata = inner(scaled.node, "metadata")
    if not metadata.get("namespace"):
        findings.warn(
            f"It names no namespace; {scaled.namespace} was taken (--namespace), and the binding is for that."
        )
    for name in metadata:
        if name in {"name", "namespace", "labels", "finalizers", "ownerReferences"}:
            findings.say(f"metadata.{name}", Outcome.TAKEN, "the same")
    owner = str(inner(metadata, "labels").get("app.kubernetes.io/managed-by") or "")
    for name, value in scaled.annotations.items():
        if name.startswith("kubectl.kubernetes.io/"):
            continue
        findings.say(f"metadata.annotations[{name}]", Outcome.TAKEN, "the same")
        if name in _PAUSED and str(value).lower() != "false":
            findings.warn(f"It is paused ({name}: {value}) and stays paused; the monitor measures meanwhile.")
        if name.startswith(("meta.helm.sh/", "argocd.argoproj.io/", "kustomize.toolkit.fluxcd.io/")):
            owner = owner or name.partition("/")[0]
    if owner:
        findings.warn(f"It is managed from elsewhere ({owner}); make the change there, or it will be undone.")


def _about(scaled: Scaled, name: str, value: Any) -> str:
    if name == "pollingInterval" and scaled.kind != SCALED_JOB:
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


def _about_advanced(scaled: Scaled, advanced: Node, findings: Findings) -> None:
    for name, value in advanced.items():
        path = f"advanced.{name}"
        if name == "scalingModifiers":
            _about_modifiers(scaled, inner(advanced, name), findings)
        elif name == "horizontalPodAutoscalerConfig" and isinstance(value, Mapping):
            for part in value:
                why = "the same"
                if part == "behavior":
                    why += (
                        "; its windows work on our answers, so scaleUpStabilization and scaleDownStabilization stay 0"
                    )
                findings.say(f"{path}.{part}", Outcome.TAKEN, why)
        else:
            findings.say(path, Outcome.TAKEN, "the same")


def _about_modifiers(scaled: Scaled, modifiers: Node, findings: Findings) -> None:
    formula = str(modifiers.get("formula") or "")
    for name in modifiers:
        findings.say(f"advanced.scalingModifiers.{name}", Outcome.TAKEN, "the same")
    named = [
        str(scaled.triggers[place].get("name"))
        for place in scaled.kafka()
        if scaled.triggers[place].get("name") and str(scaled.triggers[place]["name"]) in formula
    ]
    if named:
        findings.warn(
            f"The formula names {', '.join(named)}: it stays true, and gets our value, which is 0 until lag has lasted "
            "above lagThreshold; a formula that divides by it or compares it needs a look."
        )


def _about_zero(scaled: Scaled, findings: Findings) -> None:
    if minimum(scaled) > 0:
        return
    fallback = inner(scaled.spec, "fallback")
    findings.warn(RACE + (_NOT_HELD if fallback else _HELD))
    if fallback and _number(fallback.get("replicas"), 0) == 0:
        findings.warn(FALLBACK_ZERO)
