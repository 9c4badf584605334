"""All manifests -> clusters, monitors, bindings, and what replaces each object. Pure; a broken object stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from lagscale.domain.tenancy import is_name
from services.cli.importing.clusters import Cluster, cluster_of
from services.cli.importing.documents import Read
from services.cli.importing.findings import Findings
from services.cli.importing.manifests import Manifests, Scaled
from services.cli.importing.monitors import Monitor, monitor_of
from services.cli.importing.naming import named
from services.cli.importing.options import Options
from services.cli.importing.rewriting import original, replaced
from services.cli.importing.surroundings import tell
from services.cli.importing.trigger import read_trigger


@dataclass(slots=True)
class Converted:
    """One object with what becomes of it.

    Attributes:
        tenant: of its namespace.
        monitors: place of a trigger -> its monitor; empty where nothing is converted.
        names: place -> the monitor's name.
        clusters: place -> the cluster.
        new, old: texts of what replaces it and of the way back; None where nothing is converted.
    """

    scaled: Scaled
    tenant: str
    findings: Findings = field(default_factory=Findings)
    monitors: dict[int, Monitor] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    clusters: dict[int, Cluster] = field(default_factory=dict)
    new: str | None = None
    old: str | None = None


@dataclass(frozen=True, slots=True)
class Conversion:
    """The whole.

    Attributes:
        objects: all that KEDA scales by Kafka, in order of kind, namespace and name.
        untouched: titles of those without a kafka trigger.
        clusters: cluster -> its name.
        bindings: (tenant, namespace).
        unreadable: (where, why).
        notes: about several objects.
    """

    objects: list[Converted]
    untouched: list[str]
    clusters: dict[Cluster, str]
    bindings: list[tuple[str, str]]
    unreadable: list[tuple[str, str]]
    notes: list[str]

    @property
    def done(self) -> list[Converted]:
        """What was converted."""
        return [one for one in self.objects if one.new is not None]


def converted(found: Sequence[Read], options: Options) -> Conversion:
    """Convert everything that was read."""
    manifests = Manifests(found, options.namespace)
    every = manifests.scaled()
    objects = [_read(manifests, scaled, options) for scaled in every if scaled.kafka()]
    fine = [one for one in objects if not one.findings.faults]
    clusters = _clusters(fine)
    _name(fine)
    for one in fine:
        one.new = replaced(one.scaled.document.node, one.names, options.asking, one.findings)
        one.old = original(one.scaled.document.node, one.scaled.document.text)
    return Conversion(
        objects=objects,
        untouched=[scaled.title for scaled in every if not scaled.kafka()],
        clusters=clusters,
        bindings=sorted({(one.tenant, one.scaled.namespace) for one in fine}),
        unreadable=[(one.where, one.why) for one in manifests.unreadable],
        notes=[*manifests.twice, *_shared(fine), *_alike(clusters)],
    )


def _read(manifests: Manifests, scaled: Scaled, options: Options) -> Converted:
    one = Converted(scaled, options.tenant or scaled.namespace)
    version = str(scaled.node.get("apiVersion") or "")
    if not version.startswith("keda.sh/"):
        text = f"apiVersion: {version or 'is missing'}; only keda.sh/v1alpha1 is read, bring it to KEDA 2 first"
        one.findings.faults.append(text)
        return one
    if not is_name(one.tenant):
        text = f"metadata.namespace: {one.tenant} cannot be a tenant's name; give --tenant, or render the manifest"
        one.findings.faults.append(text)
    tell(scaled, one.findings)
    for place in scaled.kafka():
        trigger = read_trigger(manifests, scaled, place, one.findings)
        one.clusters[place] = cluster_of(trigger, one.tenant, one.findings)
        one.monitors[place] = monitor_of(trigger, scaled, one.tenant, options, one.findings)
    return one


def _clusters(fine: Sequence[Converted]) -> dict[Cluster, str]:
    every = {cluster for one in fine for cluster in one.clusters.values()}
    things = {}
    for cluster in every:
        security = dict(cluster.security)
        kind = security["sasl"].text if "sasl" in security else "tls" if "tls" in security else "plain"
        things[cluster] = (cluster.tenant, (cluster.stem, f"{cluster.stem}-{kind or 'sasl'}", repr(cluster)))
    names = named(
        {thing: (tenant, (*stems[:2], f"{stems[0]}-{thing.digest}")) for thing, (tenant, stems) in things.items()}
    )
    return dict(sorted(names.items(), key=lambda one: (one[0].tenant, one[1])))


def _name(fine: Sequence[Converted]) -> None:
    things = {
        (number, place): (monitor.tenant, monitor.stems)
        for number, one in enumerate(fine)
        for place, monitor in one.monitors.items()
    }
    for (number, place), name in named(things).items():
        fine[number].names[place] = name


def _shared(fine: Sequence[Converted]) -> list[str]:
    """Monitors of one group and topic: measured once, judged apart."""
    same: dict[object, list[str]] = {}
    for one in fine:
        for place, monitor in one.monitors.items():
            key = (one.clusters[place], monitor.group, monitor.topics)
            same.setdefault(key, []).append(f"{one.tenant}/{one.names[place]}")
    return [
        f"{', '.join(names)} read the same group and topic: Kafka is asked once for all of them, and each is judged by its own policy"
        for names in same.values()
        if len(names) > 1
    ]


def _alike(clusters: dict[Cluster, str]) -> list[str]:
    same: dict[object, list[str]] = {}
    for cluster, name in clusters.items():
        same.setdefault((cluster.tenant, cluster.servers), []).append(name)
    return [
        f"clusters {', '.join(names)} of tenant {key[0]} have the same addresses and differ in security or in where "
        "their secrets stand; if they are one, keep one of them in register/ and name it in the monitors"
        for key, names in same.items()
        if len(names) > 1 and isinstance(key, tuple)
    ]
