"""The monitor of a trigger: group, topics, and a policy that evaluates like KEDA except for `sustainSeconds`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lagscale.domain.policy.keda_keys import FLAGS, KEDA_KEYS, WRITTEN_OUT
from lagscale.domain.policy.keys import TRUE_TEXTS
from lagscale.domain.topics import DEFAULT_MAX_TOPICS, MAX_TOPICS_SETTING
from services.cli.importing.manifest_index import SCALED_JOB, get_map
from services.cli.importing.options import ImportOptions
from services.cli.importing.triggers import KedaTrigger, SourcedValue

PolicyValue = str | int | bool
#: None for all topics of the group.
Topics = tuple[SourcedValue, ...] | None
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_PARTITIONS = re.compile(r"\s*\d+(\s*-\s*\d+)?(\s*,\s*\d+(\s*-\s*\d+)?)*\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class ImportedMonitor:
    """A monitor to register.

    Attributes:
        policy: keys of the API.
        name_candidates: names, the shortest first; not yet unique.
        keda: the keys of KEDA's trigger with their defaults, for the comparison.
    """

    tenant: str
    group: SourcedValue
    topics: Topics
    policy: Mapping[str, PolicyValue]
    name_candidates: tuple[str, ...]
    keda: Mapping[str, PolicyValue]


def build_monitor(trigger: KedaTrigger, tenant: str, options: ImportOptions) -> ImportedMonitor:
    """The monitor of a trigger; logs every key that belongs to it."""
    topics = _read_topics(trigger)
    policy = _build_policy(trigger, topics, options)
    _add_active_value(trigger, policy)
    _add_hold_seconds(trigger, policy)
    _check_conflicts(trigger, topics, policy)
    trigger.log.change(trigger.key("bootstrapServers"), _describe_source(trigger, "bootstrapServers"))
    trigger.log.keep(trigger.key("consumerGroup"), _describe_source(trigger, "consumerGroup"))
    return ImportedMonitor(
        tenant=tenant,
        group=trigger.values.get("consumerGroup", SourcedValue(None, "nowhere")),
        topics=topics,
        policy=policy,
        name_candidates=_build_name_candidates(trigger, topics),
        keda={name: _parse_value(name, trigger.text(name)) for name in (*WRITTEN_OUT, "excludePersistentLag")},
    )


def _describe_source(trigger: KedaTrigger, name: str) -> str:
    given, note = trigger.values.get(name), "unchanged" if name == "topic" else KEDA_KEYS[name].note
    if given is None or given.source == "the trigger":
        return note
    return f"{note}; {'read from' if given.text is not None else 'unknown value, from'} {given.source}"


def _read_topics(trigger: KedaTrigger) -> Topics:
    given, path = trigger.values.get("topic"), trigger.key("topic")
    if given is None or (given.text is not None and not given.text.strip()):
        text = "not set: the monitor measures all topics with commits of the group; without commits, KEDA counts every topic of the cluster, and Lagscale reports nothing to measure"
        trigger.log.change(path, text)
        trigger.log.add_warning(
            f"{trigger.path} has no topic: a monitor measures at most {DEFAULT_MAX_TOPICS} topics of its group "
            f"({MAX_TOPICS_SETTING} of the scraper, {DEFAULT_MAX_TOPICS} by default). Beyond that, topics are not measured and the "
            "verdict is never calm: raise the setting, set excludeTopics, or create several monitors."
        )
        return None
    trigger.log.keep(path, _describe_source(trigger, "topic"))
    if given.text is None:
        return (given,)
    # Only the `apache-kafka` trigger accepts several.
    names = given.text.split(",") if trigger.kind == "apache-kafka" else [given.text]
    topics = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not all(_TOPIC.fullmatch(name) for name in topics):
        several = "; the kafka trigger accepts no comma-separated list" if "," in given.text else ""
        trigger.log.reject(path, "must be the name of a topic", several)
    return tuple(SourcedValue(name, given.source) for name in topics)


def _build_policy(trigger: KedaTrigger, topics: Topics, options: ImportOptions) -> dict[str, PolicyValue]:
    log, path, sustain = trigger.log, f"{trigger.path}.metadata", options.sustain_seconds
    policy: dict[str, PolicyValue] = {}
    for key, value, reason in (
        ("persistenceScope", "total", "KEDA compares the total, not each partition"),
        ("sustainSeconds", sustain, "how long lag must last before scaling; new in Lagscale, 0 behaves like KEDA"),
        ("activationSustainSeconds", 0, "KEDA activates at once"),
    ):
        policy[key] = value
        log.add(f"{trigger.path}.policy.{key}", f"{value}: {reason}")
    for name in WRITTEN_OUT:
        given = trigger.values.get(name)
        policy[name] = _parse_value(name, trigger.text(name))
        if given is None or not (given.text or "").strip():
            log.add(f"{path}.{name}", f"{trigger.text(name)}: KEDA's default, made explicit")
        elif name == "scaleToZeroOnInvalidOffset" and trigger.flag(name):
            log.change(f"{path}.{name}", KEDA_KEYS[name].note)
        else:
            log.keep(f"{path}.{name}", KEDA_KEYS[name].note)
    _add_partitions(trigger, topics, policy)
    if trigger.flag("excludePersistentLag"):
        seconds = options.stuck_after_seconds
        policy["stuckAfterSeconds"] = seconds
        reason = f"{KEDA_KEYS['excludePersistentLag'].note}; {seconds} s set by the import"
        log.change(f"{path}.excludePersistentLag", reason)
    elif "excludePersistentLag" in trigger.values:
        log.drop(f"{path}.excludePersistentLag", "false is the default: no stuckAfterSeconds")
    return policy


def _add_partitions(trigger: KedaTrigger, topics: Topics, policy: dict[str, PolicyValue]) -> None:
    text, log = trigger.text("partitionLimitation"), trigger.log
    path = f"{trigger.path}.metadata.partitionLimitation"
    if not text:
        return
    if topics is None:
        log.drop(path, "KEDA ignores it without a topic")
    elif len(topics) > 1:
        log.field_errors.append(f"{path}: requires exactly one topic in Lagscale; use one trigger per topic")
    elif _PARTITIONS.fullmatch(text) is None:
        log.reject(path, "expected a list such as 1,3,5-8")
    else:
        policy["partitionLimitation"] = re.sub(r"\s", "", text)
        log.keep(path, KEDA_KEYS["partitionLimitation"].note)


def _add_active_value(trigger: KedaTrigger, policy: dict[str, PolicyValue]) -> None:
    if get_map(trigger.resource.spec, "advanced", "scalingModifiers"):
        policy["activeValue"] = 1
        reason = "a formula never sees whether a group is active; 1 keeps a working group from being taken for idle"
        trigger.log.add(f"{trigger.path}.policy.activeValue", f"1: {reason}")


def _add_hold_seconds(trigger: KedaTrigger, policy: dict[str, PolicyValue]) -> None:
    if trigger.resource.kind == SCALED_JOB:
        reason = "on an error KEDA starts no job, but would with the last-known answer"
    elif get_map(trigger.resource.spec, "fallback"):
        reason = "KEDA's fallback counts errors, which last-known answers would replace"
    else:
        return
    policy["holdSeconds"] = 0
    trigger.log.add(f"{trigger.path}.policy.holdSeconds", f"0: {reason}")


def _check_conflicts(trigger: KedaTrigger, topics: Topics, policy: dict[str, PolicyValue]) -> None:
    """Combinations of keys that KEDA rejects, and the one that only Lagscale rejects."""
    log, path = trigger.log, f"{trigger.path}.metadata"
    limit, even, idle = "limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions", "allowIdleConsumers"
    for other in (idle, even):
        if trigger.flag(limit) and trigger.flag(other):
            log.reject(f"{path}.{limit}", f"cannot be combined with {other}", "; remove one")
    for name in (limit, even):
        if trigger.flag(name) and topics is None:
            log.reject(f"{path}.{name}", "requires a topic")
    if trigger.flag(even) and trigger.flag(idle):
        policy[idle] = False
        log.entries = [one for one in log.entries if one.key != f"{path}.{idle}"]
        log.change(f"{path}.{idle}", f"true has no effect in KEDA with {even}, and Lagscale rejects it")


def _parse_value(name: str, text: str) -> PolicyValue:
    """A value for the API; an invalid one stays a string and is in the log."""
    if name in FLAGS:
        return text in TRUE_TEXTS
    return int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else text


def _build_name_candidates(trigger: KedaTrigger, topics: Topics) -> tuple[str, ...]:
    """The object's name, with that of the trigger or topic if it has several triggers; then with index and namespace."""
    resource = trigger.resource
    name_candidate, suffix = resource.name, "-job" if resource.kind == SCALED_JOB else ""
    if len(resource.list_kafka_triggers()) > 1:
        first = topics[0].text if topics else None
        name_candidate = f"{name_candidate}-{trigger.name or first or f'trigger-{trigger.trigger_index}'}"
        suffix = f"{suffix}-{trigger.trigger_index}"
    longest = f"{resource.namespace}-{name_candidate}-{resource.kind}-{trigger.trigger_index}"
    return name_candidate, f"{name_candidate}{suffix}", f"{resource.namespace}-{name_candidate}{suffix}", longest
