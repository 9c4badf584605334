"""Clusters, monitors and bindings as files for `lagscale apply`; what the manifests do not hold is a reference there.

A reference names a variable of the command's environment: as long as it is not set, `lagscale apply` refuses the file
and names the field. No secret is ever written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from io import StringIO

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import LiteralScalarString

from services.cli.importing.conversion import Conversion, Converted
from services.cli.importing.monitors import Monitor
from services.cli.importing.options import Options
from services.cli.importing.sources import Given

_VERSION = "lagscale/v1"
_SECRET = re.compile(r"Secret (?P<namespace>\S+)/(?P<name>\S+), key (?P<key>\S+)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value that apply needs and the manifests do not hold.

    Attributes:
        variable: of the environment, that it must be put into.
        of: whose it is, as in `cluster shop/main, secrets.password`.
        told: where it stands now.
    """

    variable: str
    of: str
    told: str

    @property
    def command(self) -> str:
        """What sets the variable from a Secret of Kubernetes; empty where the value stands elsewhere."""
        found = _SECRET.fullmatch(self.told)
        if found is None:
            return ""
        key = found["key"].replace(".", r"\.")
        get = ["kubectl", "get", "secret", "-n", found["namespace"], found["name"], "-o", f"jsonpath={{.data.{key}}}"]
        return f'export {self.variable}="$({shlex.join(get)} | base64 -d)"'


@dataclass(slots=True)
class Registrations:
    """Texts by file name, and what is wanted for them."""

    files: dict[str, str] = field(default_factory=dict)
    wanted: list[Wanted] = field(default_factory=list)


def registrations(conversion: Conversion, options: Options) -> Registrations:
    """What is to be registered, in files that are applied in the order of their names."""
    made = Registrations()
    tenants = sorted({tenant for tenant, _ in conversion.bindings})
    if options.tenants:
        made.files["00-tenants.yaml"] = _text([_object("Tenant", tenant, None, CommentedMap()) for tenant in tenants])
    made.files["10-clusters.yaml"] = _text(_clusters(conversion, made))
    made.files["20-monitors.yaml"] = _text(_monitors(conversion, made))
    made.files["30-bindings.yaml"] = _text(
        [
            _object("Binding", None, tenant, CommentedMap(instance=options.instance, namespace=namespace))
            for tenant, namespace in conversion.bindings
        ]
    )
    return made


def _clusters(conversion: Conversion, made: Registrations) -> Iterable[CommentedMap]:
    for cluster, name in conversion.clusters.items():
        stem = f"{cluster.tenant}-{name}"
        of = f"cluster {cluster.tenant}/{name}"
        spec = CommentedMap()
        if cluster.servers[0].text is None:
            _put(
                spec,
                "bootstrapServers",
                cluster.servers[0],
                _want(made, stem, of, "bootstrapServers", cluster.servers[0]),
            )
        else:
            spec["bootstrapServers"] = [server.text for server in cluster.servers]
        for part, given in (("security", cluster.security), ("secrets", cluster.secrets)):
            values = CommentedMap()
            for key, value in given:
                _put(values, key, value, _want(made, stem, of, f"{part}.{key}", value))
            if part == "security" and cluster.pod_role:
                values["awsPodRole"] = True
            if values:
                spec[part] = values
        yield _object("Cluster", name, cluster.tenant, spec)


def _monitors(conversion: Conversion, made: Registrations) -> Iterable[CommentedMap]:
    found = [
        (one.tenant, one.names[place], monitor, one, place)
        for one in conversion.done
        for place, monitor in one.monitors.items()
    ]
    for tenant, name, monitor, one, place in sorted(found, key=lambda row: row[:2]):
        spec = _monitor(tenant, name, monitor, conversion.clusters[one.clusters[place]], made)
        whole = _object("Monitor", name, tenant, spec)
        whole.yaml_set_start_comment(_origin(one, place))
        yield whole


def _origin(one: Converted, place: int) -> str:
    return f"From {one.scaled.title}, trigger {place} ({one.scaled.document.where})."


def _monitor(tenant: str, name: str, monitor: Monitor, cluster: str, made: Registrations) -> CommentedMap:
    of, stem = f"monitor {tenant}/{name}", f"{tenant}-{name}"
    spec = CommentedMap(cluster=cluster)
    _put(spec, "consumerGroup", monitor.group, _want(made, stem, of, "consumerGroup", monitor.group))
    topics = monitor.topics
    if topics is not None and topics[0].text is None:
        _put(spec, "topics", topics[0], _want(made, stem, of, "topics", topics[0]))
    elif topics is not None:
        spec["topics"] = [topic.text for topic in topics]
    spec["policy"] = CommentedMap(monitor.policy)
    return spec


def _want(made: Registrations, stem: str, of: str, field_of: str, given: Given) -> str:
    """The variable that a value is read from; empty where the value is known."""
    if given.text is not None:
        return ""
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", field_of.rpartition(".")[2])
    variable = re.sub(r"[^A-Z0-9]+", "_", f"KAFKA-{stem}-{key}".upper())
    made.wanted.append(Wanted(variable, f"{of}, {field_of}", given.told))
    return variable


def _put(node: CommentedMap, key: str, given: Given, variable: str) -> None:
    if given.text is not None:
        text = given.text.strip()
        node[key] = LiteralScalarString(f"{text}\n") if "\n" in text else text
        return
    reference = CommentedMap(valueFrom=CommentedMap(env=variable))
    reference.fa.set_flow_style()
    reference["valueFrom"].fa.set_flow_style()
    node[key] = reference
    node.yaml_add_eol_comment(_one_line(given.told), key)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _object(kind: str, name: str | None, tenant: str | None, spec: Mapping[str, object]) -> CommentedMap:
    metadata = CommentedMap()
    if name is not None:
        metadata["name"] = name
    if tenant is not None:
        metadata["tenant"] = tenant
    return CommentedMap(apiVersion=_VERSION, kind=kind, metadata=metadata, spec=spec)


def _text(objects: Iterable[CommentedMap]) -> str:
    yaml = YAML(typ="rt")
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    parts = []
    for node in objects:
        out = StringIO()
        yaml.dump(node, out)
        parts.append(out.getvalue())
    return "---\n".join(parts)
