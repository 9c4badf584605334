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

from services.cli.importing.conversion import Conversion, ConvertedObject
from services.cli.importing.monitors import ImportedMonitor
from services.cli.importing.options import ImportOptions
from services.cli.importing.triggers import SourcedValue

_VERSION = "lagscale/v1"
_SECRET = re.compile(r"Secret (?P<namespace>\S+)/(?P<name>\S+), key (?P<key>\S+)")


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A value that apply needs and the manifests do not hold.

    Attributes:
        variable: of the environment, that it must be put into.
        owner: whose it is, as in `cluster shop/main, secrets.password`.
        source: where it stands now.
    """

    variable: str
    owner: str
    source: str

    @property
    def command(self) -> str:
        """What sets the variable from a Secret of Kubernetes; empty where the value stands elsewhere."""
        match = _SECRET.fullmatch(self.source)
        if match is None:
            return ""
        key = match["key"].replace(".", r"\.")
        get = ["kubectl", "get", "secret", "-n", match["namespace"], match["name"], "-o", f"jsonpath={{.data.{key}}}"]
        return f'export {self.variable}="$({shlex.join(get)} | base64 -d)"'


@dataclass(slots=True)
class RegistrationFiles:
    """Texts by file name, and what is wanted for them."""

    files: dict[str, str] = field(default_factory=dict)
    missing_values: list[MissingValue] = field(default_factory=list)


def build_registrations(conversion: Conversion, options: ImportOptions) -> RegistrationFiles:
    """What is to be registered, in files that are applied in the order of their names."""
    files_made = RegistrationFiles()
    tenants = sorted({tenant for tenant, _ in conversion.bindings})
    if options.tenants:
        files_made.files["00-tenants.yaml"] = _dump_objects(
            [_build_object("Tenant", tenant, None, CommentedMap()) for tenant in tenants]
        )
    files_made.files["10-clusters.yaml"] = _dump_objects(_build_clusters(conversion, files_made))
    files_made.files["20-monitors.yaml"] = _dump_objects(_build_monitors(conversion, files_made))
    files_made.files["30-bindings.yaml"] = _dump_objects(
        [
            _build_object("Binding", None, tenant, CommentedMap(instance=options.instance, namespace=namespace))
            for tenant, namespace in conversion.bindings
        ]
    )
    return files_made


def _build_clusters(conversion: Conversion, files_made: RegistrationFiles) -> Iterable[CommentedMap]:
    for cluster, name in conversion.clusters.items():
        variable_prefix = f"{cluster.tenant}-{name}"
        owner = f"cluster {cluster.tenant}/{name}"
        spec = CommentedMap()
        if cluster.servers[0].text is None:
            _set_value(
                spec,
                "bootstrapServers",
                cluster.servers[0],
                _require_value(files_made, variable_prefix, owner, "bootstrapServers", cluster.servers[0]),
            )
        else:
            spec["bootstrapServers"] = [server.text for server in cluster.servers]
        for part, given in (("security", cluster.security), ("secrets", cluster.secrets)):
            values = CommentedMap()
            for key, value in given:
                _set_value(
                    values, key, value, _require_value(files_made, variable_prefix, owner, f"{part}.{key}", value)
                )
            if part == "security" and cluster.pod_role:
                values["awsPodRole"] = True
            if values:
                spec[part] = values
        yield _build_object("Cluster", name, cluster.tenant, spec)


def _build_monitors(conversion: Conversion, files_made: RegistrationFiles) -> Iterable[CommentedMap]:
    rows = [
        (one.tenant, one.names[trigger_index], monitor, one, trigger_index)
        for one in conversion.converted_objects
        for trigger_index, monitor in one.monitors.items()
    ]
    for tenant, name, monitor, one, trigger_index in sorted(rows, key=lambda row: row[:2]):
        spec = _build_monitor_spec(tenant, name, monitor, conversion.clusters[one.clusters[trigger_index]], files_made)
        whole = _build_object("Monitor", name, tenant, spec)
        whole.yaml_set_start_comment(_describe_origin(one, trigger_index))
        yield whole


def _describe_origin(one: ConvertedObject, trigger_index: int) -> str:
    return f"From {one.resource.title}, trigger {trigger_index} ({one.resource.document.where})."


def _build_monitor_spec(
    tenant: str, name: str, monitor: ImportedMonitor, cluster: str, files_made: RegistrationFiles
) -> CommentedMap:
    owner, variable_prefix = f"monitor {tenant}/{name}", f"{tenant}-{name}"
    spec = CommentedMap(cluster=cluster)
    _set_value(
        spec,
        "consumerGroup",
        monitor.group,
        _require_value(files_made, variable_prefix, owner, "consumerGroup", monitor.group),
    )
    topics = monitor.topics
    if topics is not None and topics[0].text is None:
        _set_value(spec, "topics", topics[0], _require_value(files_made, variable_prefix, owner, "topics", topics[0]))
    elif topics is not None:
        spec["topics"] = [topic.text for topic in topics]
    spec["policy"] = CommentedMap(monitor.policy)
    return spec


def _require_value(
    files_made: RegistrationFiles, variable_prefix: str, owner: str, field_name: str, given: SourcedValue
) -> str:
    """The variable that a value is read from; empty where the value is known."""
    if given.text is not None:
        return ""
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", field_name.rpartition(".")[2])
    variable = re.sub(r"[^A-Z0-9]+", "_", f"KAFKA-{variable_prefix}-{key}".upper())
    files_made.missing_values.append(MissingValue(variable, f"{owner}, {field_name}", given.source))
    return variable


def _set_value(node: CommentedMap, key: str, given: SourcedValue, variable: str) -> None:
    if given.text is not None:
        text = given.text.strip()
        node[key] = LiteralScalarString(f"{text}\n") if "\n" in text else text
        return
    reference = CommentedMap(valueFrom=CommentedMap(env=variable))
    reference.fa.set_flow_style()
    reference["valueFrom"].fa.set_flow_style()
    node[key] = reference
    node.yaml_add_eol_comment(_one_line(given.source), key)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _build_object(kind: str, name: str | None, tenant: str | None, spec: Mapping[str, object]) -> CommentedMap:
    metadata = CommentedMap()
    if name is not None:
        metadata["name"] = name
    if tenant is not None:
        metadata["tenant"] = tenant
    return CommentedMap(apiVersion=_VERSION, kind=kind, metadata=metadata, spec=spec)


def _dump_objects(objects: Iterable[CommentedMap]) -> str:
    yaml = YAML(typ="rt")
    yaml.width = 4096
    yaml.indent(mapping=2, sequence=4, offset=2)
    parts = []
    for node in objects:
        out = StringIO()
        yaml.dump(node, out)
        parts.append(out.getvalue())
    return "---\n".join(parts)
