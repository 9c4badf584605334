"""The monitor of a trigger: group, topics, and a policy that evaluates like KEDA except for `sustainSeconds`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lagscale.domain.policy.keda_keys import FLAGS, KEDA_KEYS, WRITTEN_OUT
from services.cli.importing.conversion_log import ALSO_IN_KEDA, ConversionLog, KeyOutcome
from services.cli.importing.manifest_index import SCALED_JOB, ScaledResource, get_map
from services.cli.importing.options import ImportOptions
from services.cli.importing.triggers import TRUE, KedaTrigger, SourcedValue

PolicyValue = str | int | bool
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_PARTITIONS = re.compile(r"\s*\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ImportedMonitor:
    """A monitor to register.

    Attributes:
        topics: None for all topics of the group.
        policy: keys of the API.
        name_candidates: names, the shortest first; not yet unique.
        keda: the keys of KEDA's trigger with their defaults, for the comparison.
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
    """The monitor of a trigger; logs every key that belongs to it."""
    topics = _read_topics(trigger, log)
    policy = _build_policy(trigger, topics, options, log)
    _add_hold_seconds(resource, trigger.path, policy, log)
    _check_conflicts(trigger, topics, policy, log)
    log.add_key(trigger.key("bootstrapServers"), KeyOutcome.CHANGED, _describe_source(trigger, "bootstrapServers"))
    log.add_key(trigger.key("consumerGroup"), KeyOutcome.KEPT, _describe_source(trigger, "consumerGroup"))
    return ImportedMonitor(
        tenant=tenant,
        group=trigger.values.get("consumerGroup", SourcedValue(None, "nowhere")),
        topics=topics,
        policy=policy,
        name_candidates=_build_name_candidates(trigger, resource, topics),
        keda={name: _parse_value(name, trigger.text(name)) for name in (*WRITTEN_OUT, "excludePersistentLag")},
    )


def _describe_source(trigger: KedaTrigger, name: str) -> str:
    given, note = trigger.values.get(name), "unchanged" if name == "topic" else KEDA_KEYS[name].note
    if given is None or given.source == "the trigger":
        return note
    return f"{note}; {'read from' if given.text is not None else 'unknown value, from'} {given.source}"


def _read_topics(trigger: KedaTrigger, log: ConversionLog) -> tuple[SourcedValue, ...] | None:
    given = trigger.values.get("topic")
    path = trigger.key("topic")
    if given is None or (given.text is not None and not given.text.strip()):
        text = "not set: the monitor measures all topics with commits of the group; without commits, KEDA counts every topic of the cluster, and Lagscale reports nothing to measure"
        log.add_key(path, KeyOutcome.CHANGED, text)
        return None
    log.add_key(path, KeyOutcome.KEPT, _describe_source(trigger, "topic"))
    if given.text is None:
        return (given,)
    # Only the `apache-kafka` trigger accepts several.
    names = given.text.split(",") if trigger.kind == "apache-kafka" else [given.text]
    topics = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not all(_TOPIC.fullmatch(name) for name in topics):
        several = "; the kafka trigger accepts no comma-separated list" if "," in given.text else ""
        log.field_errors.append(f"{path}: must be the name of a topic{ALSO_IN_KEDA}{several}")
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
    log.add_key(f"{trigger.path}.policy.activationSustainSeconds", KeyOutcome.ADDED, "0: KEDA activates at once")
    log.add_key(
        f"{trigger.path}.policy.sustainSeconds",
        KeyOutcome.ADDED,
        f"{options.sustain_seconds}: how long lag must last before scaling; new in Lagscale, 0 behaves like KEDA",
    )
    for name in WRITTEN_OUT:
        given = trigger.values.get(name)
        policy[name] = _parse_value(name, trigger.text(name))
        if given is None or not (given.text or "").strip():
            log.add_key(f"{path}.{name}", KeyOutcome.ADDED, f"{trigger.text(name)}: KEDA's default, made explicit")
        elif name == "scaleToZeroOnInvalidOffset" and trigger.flag(name):
            log.add_key(f"{path}.{name}", KeyOutcome.CHANGED, KEDA_KEYS[name].note)
        else:
            log.add_key(f"{path}.{name}", KeyOutcome.KEPT, KEDA_KEYS[name].note)
    _add_partitions(trigger, topics, policy, log)
    if trigger.flag("excludePersistentLag"):
        seconds = options.stuck_after_seconds
        policy["stuckAfterSeconds"] = seconds
        reason = f"{KEDA_KEYS['excludePersistentLag'].note}; {seconds} s set by the import"
        log.add_key(f"{path}.excludePersistentLag", KeyOutcome.CHANGED, reason)
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
        log.add_key(path, KeyOutcome.DROPPED, "KEDA ignores it without a topic")
    elif len(topics) > 1:
        log.field_errors.append(f"{path}: requires exactly one topic in Lagscale; use one trigger per topic")
    elif _PARTITIONS.fullmatch(text) is None:
        log.field_errors.append(f"{path}: expected a list such as 1,3,5-8{ALSO_IN_KEDA}")
    else:
        policy["partitionLimitation"] = re.sub(r"\s", "", text)
        log.add_key(path, KeyOutcome.KEPT, KEDA_KEYS["partitionLimitation"].note)


def _add_hold_seconds(resource: ScaledResource, path: str, policy: dict[str, PolicyValue], log: ConversionLog) -> None:
    key = f"{path}.policy.holdSeconds"
    if resource.kind == SCALED_JOB:
        policy["holdSeconds"] = 0
        reason = "0: on an error KEDA starts no job, but would with the last-known answer"
        log.add_key(key, KeyOutcome.ADDED, reason)
    elif get_map(resource.spec, "fallback"):
        policy["holdSeconds"] = 0
        log.add_key(key, KeyOutcome.ADDED, "0: KEDA's fallback counts errors, which last-known answers would replace")


def _check_conflicts(
    trigger: KedaTrigger, topics: tuple[SourcedValue, ...] | None, policy: dict[str, PolicyValue], log: ConversionLog
) -> None:
    """Combinations of keys that KEDA rejects, and the one that only Lagscale rejects."""
    limit, even_distribution, idle = (
        trigger.flag(name)
        for name in ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions", "allowIdleConsumers")
    )
    path = f"{trigger.path}.metadata"
    if limit and idle:
        log.field_errors.append(
            f"{path}.limitToPartitionsWithLag: cannot be combined with allowIdleConsumers{ALSO_IN_KEDA}; remove one"
        )
    if limit and even_distribution:
        text = f"cannot be combined with ensureEvenDistributionOfPartitions{ALSO_IN_KEDA}; remove one"
        log.field_errors.append(f"{path}.limitToPartitionsWithLag: {text}")
    for name, given in (("limitToPartitionsWithLag", limit), ("ensureEvenDistributionOfPartitions", even_distribution)):
        if given and topics is None:
            log.field_errors.append(f"{path}.{name}: requires a topic{ALSO_IN_KEDA}")
    if even_distribution and idle:
        policy["allowIdleConsumers"] = False
        reason = "true has no effect in KEDA with ensureEvenDistributionOfPartitions, and Lagscale rejects it"
        log.entries = [one for one in log.entries if one.key != f"{path}.allowIdleConsumers"]
        log.add_key(f"{path}.allowIdleConsumers", KeyOutcome.CHANGED, reason)


def _parse_value(name: str, text: str) -> PolicyValue:
    """A value for the API; an invalid one stays a string and is in the log."""
    if name in FLAGS:
        return text in TRUE
    return int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else text


def _build_name_candidates(
    trigger: KedaTrigger, resource: ScaledResource, topics: tuple[SourcedValue, ...] | None
) -> tuple[str, ...]:
    """The object's name, with that of the trigger or topic if it has several triggers; then with index and namespace."""
    name_candidate, suffix = resource.name, "-job" if resource.kind == SCALED_JOB else ""
    if len(resource.list_kafka_triggers()) > 1:
        first = topics[0].text if topics else None
        name_candidate = f"{name_candidate}-{trigger.name or first or f'trigger-{trigger.trigger_index}'}"
        suffix = f"{suffix}-{trigger.trigger_index}"
    longest = f"{resource.namespace}-{name_candidate}-{resource.kind}-{trigger.trigger_index}"
    return name_candidate, f"{name_candidate}{suffix}", f"{resource.namespace}-{name_candidate}{suffix}", longest
