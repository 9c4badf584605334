"""Converts all manifests to clusters, monitors, bindings and new objects. Pure; an error in one object does not affect others.

Names of clusters and monitors are unique in a tenant, and stable for the same manifests in any order.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from lagscale.domain.tenancy import is_name
from services.cli.importing.clusters import ImportedCluster, build_cluster
from services.cli.importing.conversion_log import ConversionLog
from services.cli.importing.manifest_index import ManifestIndex, ScaledResource
from services.cli.importing.monitors import ImportedMonitor, build_monitor
from services.cli.importing.options import ImportOptions
from services.cli.importing.rewriting import build_replacement, build_rollback, log_unchanged_keys
from services.cli.importing.triggers import read_trigger
from services.cli.importing.yaml_text import ParsedDocument

_MAX_NAME_LENGTH = 63
_HASH_DIGITS = 8
Item = TypeVar("Item", bound=Hashable)


@dataclass(slots=True)
class ConvertedObject:
    """Conversion of one object.

    Attributes:
        tenant: of its namespace.
        monitors: index of a trigger -> its monitor; empty if the object is not converted.
        names: index of a trigger -> the monitor's name.
        clusters: index of a trigger -> its cluster.
        new: text of the new object; None if the object is not converted.
        old: text of the original object, for the rollback.
    """

    resource: ScaledResource
    tenant: str
    log: ConversionLog = field(default_factory=ConversionLog)
    monitors: dict[int, ImportedMonitor] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    clusters: dict[int, ImportedCluster] = field(default_factory=dict)
    new: str | None = None
    old: str | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of all manifests.

    Attributes:
        objects: with kafka triggers, by kind, namespace and name.
        without_kafka: titles of objects without a kafka trigger.
        clusters: cluster -> its name.
        bindings: (tenant, namespace).
        unreadable: (location, reason).
        notes: about several objects.
    """

    objects: list[ConvertedObject]
    without_kafka: list[str]
    clusters: dict[ImportedCluster, str]
    bindings: list[tuple[str, str]]
    unreadable: list[tuple[str, str]]
    notes: list[str]

    @property
    def converted_objects(self) -> list[ConvertedObject]:
        """The objects that are converted."""
        return [one for one in self.objects if one.new is not None]


def convert_all(parsed: Sequence[ParsedDocument], options: ImportOptions) -> Conversion:
    """Convert all documents."""
    manifests = ManifestIndex(parsed, options.namespace)
    all_resources = manifests.list_resources()
    objects = [
        _convert_object(manifests, resource, options) for resource in all_resources if resource.list_kafka_triggers()
    ]
    convertible = [one for one in objects if not one.log.field_errors]
    clusters = _name_clusters(convertible)
    _name_monitors(convertible)
    for one in convertible:
        one.new = build_replacement(one.resource.document.node, one.names, options.trigger_options, one.log)
        one.old = build_rollback(one.resource.document.node, one.resource.document.text)
    return Conversion(
        objects=objects,
        without_kafka=[resource.title for resource in all_resources if not resource.list_kafka_triggers()],
        clusters=clusters,
        bindings=sorted({(one.tenant, one.resource.namespace) for one in convertible}),
        unreadable=[(one.location, one.reason) for one in manifests.unreadable],
        notes=[*manifests.duplicates, *_note_shared_groups(convertible), *_note_similar_clusters(clusters)],
    )


def _convert_object(manifests: ManifestIndex, resource: ScaledResource, options: ImportOptions) -> ConvertedObject:
    one = ConvertedObject(resource, options.tenant or resource.namespace)
    version = str(resource.node.get("apiVersion") or "")
    if not version.startswith("keda.sh/"):
        text = f"apiVersion: {version or 'missing'}; only keda.sh/v1alpha1 is supported, migrate the object to KEDA 2 first"
        one.log.field_errors.append(text)
        return one
    if not is_name(one.tenant):
        text = f"metadata.namespace: {one.tenant} is not a valid tenant name; use --tenant, or render the manifest"
        one.log.field_errors.append(text)
    log_unchanged_keys(resource, one.log)
    for trigger_index in resource.list_kafka_triggers():
        trigger = read_trigger(manifests, resource, trigger_index, one.log, options.keda_namespace)
        one.clusters[trigger_index] = build_cluster(trigger, one.tenant)
        one.monitors[trigger_index] = build_monitor(trigger, one.tenant, options)
    return one


def _name_clusters(convertible: Sequence[ConvertedObject]) -> dict[ImportedCluster, str]:
    all_clusters = {cluster for one in convertible for cluster in one.clusters.values()}
    candidates = {}
    for cluster in all_clusters:
        security = dict(cluster.security)
        kind = security["sasl"].text if "sasl" in security else "tls" if "tls" in security else "plain"
        base = cluster.name_candidate
        candidates[cluster] = (cluster.tenant, (base, f"{base}-{kind or 'sasl'}", f"{base}-{cluster.digest}"))
    names = assign_names(candidates)
    return dict(sorted(names.items(), key=lambda one: (one[0].tenant, one[1])))


def _name_monitors(convertible: Sequence[ConvertedObject]) -> None:
    candidates = {
        (number, trigger_index): (monitor.tenant, monitor.name_candidates)
        for number, one in enumerate(convertible)
        for trigger_index, monitor in one.monitors.items()
    }
    for (number, trigger_index), name in assign_names(candidates).items():
        convertible[number].names[trigger_index] = name


def _note_shared_groups(convertible: Sequence[ConvertedObject]) -> list[str]:
    """Monitors with the same group and topics: polled once, evaluated separately."""
    names_by_key: dict[object, list[str]] = {}
    for one in convertible:
        for trigger_index, monitor in one.monitors.items():
            key = (one.clusters[trigger_index], monitor.group, monitor.topics)
            names_by_key.setdefault(key, []).append(f"{one.tenant}/{one.names[trigger_index]}")
    return [
        f"{', '.join(names)} have the same group and topics: Kafka is polled once for all of them, and each is evaluated by its own policy"
        for names in names_by_key.values()
        if len(names) > 1
    ]


def _note_similar_clusters(clusters: dict[ImportedCluster, str]) -> list[str]:
    names_by_key: dict[object, list[str]] = {}
    for cluster, name in clusters.items():
        names_by_key.setdefault((cluster.tenant, cluster.servers), []).append(name)
    return [
        f"clusters {', '.join(names)} of tenant {key[0]} have the same addresses and differ in security or in the "
        "source of their secrets; if they are the same, keep one of them in register/ and use it in the monitors"
        for key, names in names_by_key.items()
        if len(names) > 1 and isinstance(key, tuple)
    ]


def assign_names(candidates: Mapping[Item, tuple[str, Sequence[str]]]) -> dict[Item, str]:
    """Item -> its name.

    Each item takes its first candidate that no other item of its tenant has among its own; items without such a
    candidate take their last one with digits of its hash.

    Args:
        candidates: item -> tenant and candidate names, the preferred ones first.
    """
    normalized = {
        item: [(tenant, normalize_name(one)) for one in given] for item, (tenant, given) in candidates.items()
    }
    counts = Counter(name for names in normalized.values() for name in dict.fromkeys(names))
    return {
        item: next((name for tenant, name in names if name and counts[tenant, name] == 1), "")
        or _append_hash(names[-1][1], candidates[item][1][-1])
        for item, names in normalized.items()
    }


def normalize_name(text: str) -> str:
    """A text as a name: lower-case letters, digits and hyphens; a long one is truncated, with digits of its hash."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return name if len(name) <= _MAX_NAME_LENGTH else _append_hash(name, text)


def _append_hash(name: str, text: str) -> str:
    digits = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{name[: _MAX_NAME_LENGTH - _HASH_DIGITS - 1].strip('-') or 'monitor'}-{digits}"
