"""The monitor of a trigger: group, topics, and a policy that judges as KEDA does until its owner wants more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.cli.importing.findings import Findings, Outcome
from services.cli.importing.kafka_keys import FLAGS, KEDA_KEYS, WRITTEN_OUT
from services.cli.importing.manifests import SCALED_JOB, Scaled, inner
from services.cli.importing.options import Options
from services.cli.importing.sources import Given
from services.cli.importing.trigger import TRUE, Trigger

PolicyValue = str | int | bool
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_PARTITIONS = re.compile(r"\s*\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Monitor:
    """A monitor to be registered.

    Attributes:
        topics: None for all topics of the group.
        policy: keys as the API takes them.
        stems: names for it, the shortest first; not yet unique.
        keda: what KEDA's trigger was given, resolved, for the comparison with it.
    """

    tenant: str
    group: Given
    topics: tuple[Given, ...] | None
    policy: Mapping[str, PolicyValue]
    stems: tuple[str, ...]
    keda: Mapping[str, PolicyValue]


def monitor_of(trigger: Trigger, scaled: Scaled, tenant: str, options: Options, findings: Findings) -> Monitor:
    """The monitor of a trigger; tells of every key that belongs to it."""
    topics = _topics(trigger, findings)
    policy = _policy(trigger, topics, options, findings)
    _hold(scaled, trigger.path, policy, findings)
    _conflicts(trigger, topics, policy, findings)
    findings.say(trigger.key("bootstrapServers"), Outcome.CHANGED, _source(trigger, "bootstrapServers"))
    findings.say(trigger.key("consumerGroup"), Outcome.TAKEN, _source(trigger, "consumerGroup"))
    return Monitor(
        tenant=tenant,
        group=trigger.values.get("consumerGroup", Given(None, "nowhere")),
        topics=topics,
        policy=policy,
        stems=_stems(trigger, scaled, topics),
        keda={name: _typed(name, trigger.text(name)) for name in (*WRITTEN_OUT, "excludePersistentLag")},
    )


def _source(trigger: Trigger, name: str) -> str:
    given, why = trigger.values.get(name), "the same" if name == "topic" else KEDA_KEYS[name].why
    if given is None or given.told == "the trigger":
        return why
    return f"{why}; {'read from' if given.text is not None else 'its value is not known here, it is'} {given.told}"


def _topics(trigger: Trigger, findings: Findings) -> tuple[Given, ...] | None:
    given = trigger.values.get("topic")
    path = trigger.key("topic")
    if given is None or (given.text is not None and not given.text.strip()):
        text = "is not set: the monitor measures all topics on which the group has commits; where it has none, KEDA counts every topic of the cluster and Lagscale says that there is nothing to measure"
        findings.say(path, Outcome.CHANGED, text)
        return None
    findings.say(path, Outcome.TAKEN, _source(trigger, "topic"))
    if given.text is None:
        return (given,)
    # Only the `apache-kafka` trigger takes several.
    names = given.text.split(",") if trigger.kind == "apache-kafka" else [given.text]
    topics = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not all(_TOPIC.fullmatch(name) for name in topics):
        several = "; several by commas are no topic for the kafka trigger" if "," in given.text else ""
        findings.faults.append(f"{path}: must be a topic's name, for KEDA too{several}")
    return tuple(Given(name, given.told) for name in topics)


def _policy(
    trigger: Trigger, topics: tuple[Given, ...] | None, options: Options, findings: Findings
) -> dict[str, PolicyValue]:
    policy: dict[str, PolicyValue] = {
        "persistenceScope": "total",
        "sustainSeconds": options.sustain_seconds,
        "activationSustainSeconds": 0,
    }
    path = f"{trigger.path}.metadata"
    findings.say(
        f"{trigger.path}.policy.persistenceScope", Outcome.ADDED, "total: KEDA compares the total, not each partition"
    )
    findings.say(f"{trigger.path}.policy.activationSustainSeconds", Outcome.ADDED, "0: KEDA wakes at once")
    findings.say(
        f"{trigger.path}.policy.sustainSeconds",
        Outcome.ADDED,
        f"{options.sustain_seconds}: for how long lag must last before it scales; this is what is new, 0 answers as KEDA does",
    )
    for name in WRITTEN_OUT:
        given = trigger.values.get(name)
        policy[name] = _typed(name, trigger.text(name))
        if given is None or not (given.text or "").strip():
            findings.say(f"{path}.{name}", Outcome.ADDED, f"{trigger.text(name)}: KEDA's default, written out")
        elif name == "scaleToZeroOnInvalidOffset" and trigger.flag(name):
            findings.say(f"{path}.{name}", Outcome.CHANGED, KEDA_KEYS[name].why)
        else:
            findings.say(f"{path}.{name}", Outcome.TAKEN, KEDA_KEYS[name].why)
    _partitions(trigger, topics, policy, findings)
    if trigger.flag("excludePersistentLag"):
        seconds = options.stuck_after_seconds
        policy["stuckAfterSeconds"] = seconds
        why = f"{KEDA_KEYS['excludePersistentLag'].why}; {seconds} s were chosen by the import"
        findings.say(f"{path}.excludePersistentLag", Outcome.CHANGED, why)
    elif "excludePersistentLag" in trigger.values:
        findings.say(f"{path}.excludePersistentLag", Outcome.DROPPED, "false is the default: no stuckAfterSeconds")
    return policy


def _partitions(
    trigger: Trigger, topics: tuple[Given, ...] | None, policy: dict[str, PolicyValue], findings: Findings
) -> None:
    text = trigger.text("partitionLimitation")
    if not text:
        return
    path = f"{trigger.path}.metadata.partitionLimitation"
    if topics is None:
        findings.say(path, Outcome.DROPPED, "without a topic KEDA ignores it")
    elif len(topics) > 1:
        findings.faults.append(f"{path}: needs exactly one topic here; make a trigger for each topic")
    elif _PARTITIONS.fullmatch(text) is None:
        findings.faults.append(f"{path}: must read like 1,3,5-8, for KEDA too")
    else:
        policy["partitionLimitation"] = re.sub(r"\s", "", text)
        findings.say(path, Outcome.TAKEN, KEDA_KEYS["partitionLimitation"].why)


def _hold(scaled: Scaled, path: str, policy: dict[str, PolicyValue], findings: Findings) -> None:
    key = f"{path}.policy.holdSeconds"
    if scaled.kind == SCALED_JOB:
        policy["holdSeconds"] = 0
        why = "0: on an error KEDA starts no job, and a held answer would go on starting them"
        findings.say(key, Outcome.ADDED, why)
    elif inner(scaled.spec, "fallback"):
        policy["holdSeconds"] = 0
        findings.say(
            key, Outcome.ADDED, "0: KEDA's fallback counts errors, so it needs errors in place of held answers"
        )


def _conflicts(
    trigger: Trigger, topics: tuple[Given, ...] | None, policy: dict[str, PolicyValue], findings: Findings
) -> None:
    """Keys that KEDA refuses together, and the one pair that it does not and we do."""
    limit, even, idle = (
        trigger.flag(name)
        for name in ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions", "allowIdleConsumers")
    )
    path = f"{trigger.path}.metadata"
    if limit and idle:
        findings.faults.append(
            f"{path}.limitToPartitionsWithLag: excludes allowIdleConsumers, for KEDA too; remove one"
        )
    if limit and even:
        text = "excludes ensureEvenDistributionOfPartitions, for KEDA too; remove one"
        findings.faults.append(f"{path}.limitToPartitionsWithLag: {text}")
    for name, given in (("limitToPartitionsWithLag", limit), ("ensureEvenDistributionOfPartitions", even)):
        if given and topics is None:
            findings.faults.append(f"{path}.{name}: needs a topic, for KEDA too")
    if even and idle:
        policy["allowIdleConsumers"] = False
        why = "true has no effect in KEDA beside ensureEvenDistributionOfPartitions, and is refused here"
        findings.entries = [one for one in findings.entries if one.key != f"{path}.allowIdleConsumers"]
        findings.say(f"{path}.allowIdleConsumers", Outcome.CHANGED, why)


def _typed(name: str, text: str) -> PolicyValue:
    """A value as the API takes it; what is none stays a text, and was told as a fault."""
    if name in FLAGS:
        return text in TRUE
    return int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else text


def _stems(trigger: Trigger, scaled: Scaled, topics: tuple[Given, ...] | None) -> tuple[str, ...]:
    """The object's name, with the trigger's or its topic's where it has several; then apart by place, and namespace."""
    stem, apart = scaled.name, "-job" if scaled.kind == SCALED_JOB else ""
    if len(scaled.kafka()) > 1:
        first = topics[0].text if topics else None
        stem = f"{stem}-{trigger.name or first or f'trigger-{trigger.place}'}"
        apart = f"{apart}-{trigger.place}"
    longest = f"{scaled.namespace}-{stem}-{scaled.kind}-{trigger.place}"
    return stem, f"{stem}{apart}", f"{scaled.namespace}-{stem}{apart}", longest
