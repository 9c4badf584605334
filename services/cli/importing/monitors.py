"""The monitor of a trigger: group, topics, and a policy that judges as KEDA does until its owner wants more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from services.cli.importing.conversion_log import ConversionLog, KeyOutcome
from services.cli.importing.keda_keys import FLAGS, KEDA_KEYS, WRITTEN_OUT
from services.cli.importing.manifest_index import SCALED_JOB, ScaledResource, get_map
from services.cli.importing.options import ImportOptions
from services.cli.importing.triggers import TRUE, KedaTrigger, SourcedValue

PolicyValue = str | int | bool
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_PARTITIONS = re.compile(r"\s*\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ImportedMonitor:
    """A monitor to be registered.

    Attributes:
        topics: None for all topics of the group.
        policy: keys as the API takes them.
        name_candidates: names for it, the shortest first; not yet unique.
        keda: what KEDA's trigger was given, resolved, for the comparison with it.
    """

    tenant: str
    group: SourcedValue
    topics: tuple[SourcedValue, ...] | None
    policy: Mapping[str, PolicyValue]
    name_candidates: tuple[str, ...]
    keda: Mapping[str, PolicyValue]


def build_monitor(
    trigger: KedaTrigger, resource: ScaledResource, tenant: str, options: ImportOptions, log: ConversionLog
) -> ImportedMonitor:
    """The monitor of a trigger; tells of every key that belongs to it."""
    topics = _read_topics(trigger, log)
    policy = _build_policy(trigger, topics, options, log)
    _add_hold(resource, trigger.path, policy, log)
    _check_conflicts(trigger, topics, policy, log)
    log.add_key(trigger.key("bootstrapServers"), KeyOutcome.CHANGED, _describe_source(trigger, "bootstrapServers"))
    log.add_key(trigger.key("consumerGroup"), KeyOutcome.TAKEN, _describe_source(trigger, "consumerGroup"))
    return ImportedMonitor(
        tenant=tenant,
        group=trigger.values.get("consumerGroup", SourcedValue(None, "nowhere")),
        topics=topics,
        policy=policy,
        name_candidates=_build_name_candidates(trigger, resource, topics),
        keda={name: _parse_value(name, trigger.text(name)) for name in (*WRITTEN_OUT, "excludePersistentLag")},
    )


def _describe_source(trigger: KedaTrigger, name: str) -> str:
    given, why = trigger.values.get(name), "the same" if name == "topic" else KEDA_KEYS[name].why
    if given is None or given.source == "the trigger":
        return why
    return f"{why}; {'read from' if given.text is not None else 'its value is not known here, it is'} {given.source}"


def _read_topics(trigger: KedaTrigger, log: ConversionLog) -> tuple[SourcedValue, ...] | None:
    given = trigger.values.get("topic")
    path = trigger.key("topic")
    if given is None or (given.text is not None and not given.text.strip()):
        text = "is not set: the monitor measures all topics on which the group has commits; where it has none, KEDA counts every topic of the cluster and Lagscale says that there is nothing to measure"
        log.add_key(path, KeyOutcome.CHANGED, text)
        return None
    log.add_key(path, KeyOutcome.TAKEN, _describe_source(trigger, "topic"))
    if given.text is None:
        return (given,)
    # Only the `apache-kafka` trigger takes several.
    names = given.text.split(",") if trigger.kind == "apache-kafka" else [given.text]
    topics = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not all(_TOPIC.fullmatch(name) for name in topics):
        several = "; several by commas are no topic for the kafka trigger" if "," in given.text else ""
        log.field_errors.append(f"{path}: must be a topic's name, for KEDA too{several}")
    return tuple(SourcedValue(name, given.source) for name in topics)


def _build_policy(
    trigger: KedaTrigger, topics: tuple[SourcedValue, ...] | None, options: ImportOptions, log: ConversionLog
) -> dict[str, PolicyValue]:
    policy: dict[str, PolicyValue] = {
        "persistenceScope": "total",
        "sustainSeconds": options.sustain_seconds,
        "activationSustainSeconds": 0,
    }
    path = f"{trigger.path}.metadata"
    log.add_key(
        f"{trigger.path}.policy.persistenceScope",
        KeyOutcome.ADDED,
        "total: KEDA compares the total, not each partition",
    )
    log.add_key(f"{trigger.path}.policy.activationSustainSeconds", KeyOutcome.ADDED, "0: KEDA wakes at once")
    log.add_key(
        f"{trigger.path}.policy.sustainSeconds",
        KeyOutcome.ADDED,
        f"{options.sustain_seconds}: for how long lag must last before it scales; this is what is new, 0 answers as KEDA does",
    )
    for name in WRITTEN_OUT:
        given = trigger.values.get(name)
        policy[name] = _parse_value(name, trigger.text(name))
        if given is None or not (given.text or "").strip():
            log.add_key(f"{path}.{name}", KeyOutcome.ADDED, f"{trigger.text(name)}: KEDA's default, written out")
        elif name == "scaleToZeroOnInvalidOffset" and trigger.flag(name):
            log.add_key(f"{path}.{name}", KeyOutcome.CHANGED, KEDA_KEYS[name].why)
        else:
            log.add_key(f"{path}.{name}", KeyOutcome.TAKEN, KEDA_KEYS[name].why)
    _add_partitions(trigger, topics, policy, log)
    if trigger.flag("excludePersistentLag"):
        seconds = options.stuck_after_seconds
        policy["stuckAfterSeconds"] = seconds
        why = f"{KEDA_KEYS['excludePersistentLag'].why}; {seconds} s were chosen by the import"
        log.add_key(f"{path}.excludePersistentLag", KeyOutcome.CHANGED, why)
    elif "excludePersistentLag" in trigger.values:
        log.add_key(f"{path}.excludePersistentLag", KeyOutcome.DROPPED, "false is the default: no stuckAfterSeconds")
    return policy


def _add_partitions(
    trigger: KedaTrigger, topics: tuple[SourcedValue, ...] | None, policy: dict[str, PolicyValue], log: ConversionLog
) -> None:
    text = trigger.text("partitionLimitation")
    if not text:
        return
    path = f"{trigger.path}.metadata.partitionLimitation"
    if topics is None:
        log.add_key(path, KeyOutcome.DROPPED, "without a topic KEDA ignores it")
    elif len(topics) > 1:
        log.field_errors.append(f"{path}: needs exactly one topic here; make a trigger for each topic")
    elif _PARTITIONS.fullmatch(text) is None:
        log.field_errors.append(f"{path}: must read like 1,3,5-8, for KEDA too")
    else:
        policy["partitionLimitation"] = re.sub(r"\s", "", text)
        log.add_key(path, KeyOutcome.TAKEN, KEDA_KEYS["partitionLimitation"].why)


def _add_hold(resource: ScaledResource, path: str, policy: dict[str, PolicyValue], log: ConversionLog) -> None:
    key = f"{path}.policy.holdSeconds"
    if resource.kind == SCALED_JOB:
        policy["holdSeconds"] = 0
        why = "0: on an error KEDA starts no job, and a held answer would go on starting them"
        log.add_key(key, KeyOutcome.ADDED, why)
    elif get_map(resource.spec, "fallback"):
        policy["holdSeconds"] = 0
        log.add_key(
            key, KeyOutcome.ADDED, "0: KEDA's fallback counts errors, so it needs errors in place of held answers"
        )


def _check_conflicts(
    trigger: KedaTrigger, topics: tuple[SourcedValue, ...] | None, policy: dict[str, PolicyValue], log: ConversionLog
) -> None:
    """Keys that KEDA refuses together, and the one pair that it does not and we do."""
    limit, even_distribution, idle = (
        trigger.flag(name)
        for name in ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions", "allowIdleConsumers")
    )
    path = f"{trigger.path}.metadata"
    if limit and idle:
        log.field_errors.append(
            f"{path}.limitToPartitionsWithLag: excludes allowIdleConsumers, for KEDA too; remove one"
        )
    if limit and even_distribution:
        text = "excludes ensureEvenDistributionOfPartitions, for KEDA too; remove one"
        log.field_errors.append(f"{path}.limitToPartitionsWithLag: {text}")
    for name, given in (("limitToPartitionsWithLag", limit), ("ensureEvenDistributionOfPartitions", even_distribution)):
        if given and topics is None:
            log.field_errors.append(f"{path}.{name}: needs a topic, for KEDA too")
    if even_distribution and idle:
        policy["allowIdleConsumers"] = False
        why = "true has no effect in KEDA beside ensureEvenDistributionOfPartitions, and is refused here"
        log.entries = [one for one in log.entries if one.key != f"{path}.allowIdleConsumers"]
        log.add_key(f"{path}.allowIdleConsumers", KeyOutcome.CHANGED, why)


def _parse_value(name: str, text: str) -> PolicyValue:
    """A value as the API takes it; what is none stays a text, and was told as a fault."""
    if name in FLAGS:
        return text in TRUE
    return int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else text


def _build_name_candidates(
    trigger: KedaTrigger, resource: ScaledResource, topics: tuple[SourcedValue, ...] | None
) -> tuple[str, ...]:
    """The object's name, with the trigger's or its topic's where it has several; then apart by place, and namespace."""
    name_candidate, suffix = resource.name, "-job" if resource.kind == SCALED_JOB else ""
    if len(resource.list_kafka_triggers()) > 1:
        first = topics[0].text if topics else None
        name_candidate = f"{name_candidate}-{trigger.name or first or f'trigger-{trigger.trigger_index}'}"
        suffix = f"{suffix}-{trigger.trigger_index}"
    longest = f"{resource.namespace}-{name_candidate}-{resource.kind}-{trigger.trigger_index}"
    return name_candidate, f"{name_candidate}{suffix}", f"{resource.namespace}-{name_candidate}{suffix}", longest
