"""Clusters, monitors and bindings as files for `lagscale apply`, with references for missing values.

A reference is a variable of the command's environment: until it is set, `lagscale apply` rejects the file with an error
for the field. No secret is ever written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import LiteralScalarString

from services.cli.importing.conversion import Conversion, ConvertedObject
from services.cli.importing.monitors import ImportedMonitor
from services.cli.importing.options import ImportOptions
from services.cli.importing.triggers import SourcedValue
from services.cli.objects.manifests import API_VERSION
from services.cli.output import dump_yaml

_SECRET = re.compile(r"Secret (?P<namespace>\S+)/(?P<name>\S+), key (?P<key>\S+)")


@dataclass(frozen=True, slots=True)
class MissingValue:
    """A value that `apply` requires and the manifests do not contain.

    Attributes:
        variable: of the environment, for the value.
        owner: object and field, as in `cluster shop/main, secrets.password`.
        source: where the value is now.
    """

    variable: str
    owner: str
    source: str

    @property
    def command(self) -> str:
        """Command that sets the variable from a Kubernetes Secret; empty for other sources."""
        match = _SECRET.fullmatch(self.source)
        if match is None:
            return ""
        key = match["key"].replace(".", r"\.")
        get = ["kubectl", "get", "secret", "-n", match["namespace"], match["name"], "-o", f"jsonpath={{.data.{key}}}"]
        return f'export {self.variable}="$({shlex.join(get)} | base64 -d)"'


@dataclass(slots=True)
class RegistrationFiles:
    """Texts by file name, and their missing values."""

    files: dict[str, str] = field(default_factory=dict)
    missing_values: list[MissingValue] = field(default_factory=list)


def build_registrations(conversion: Conversion, options: ImportOptions) -> RegistrationFiles:
    """The objects to register, in files that are applied in the order of their names."""
    registration_files = RegistrationFiles()
    tenants = sorted({tenant for tenant, _ in conversion.bindings})
    if options.with_tenants:
        registration_files.files["00-tenants.yaml"] = dump_yaml(
            [_build_object("Tenant", tenant, None, CommentedMap()) for tenant in tenants]
        )
    registration_files.files["10-clusters.yaml"] = dump_yaml(_build_clusters(conversion, registration_files))
    registration_files.files["20-monitors.yaml"] = dump_yaml(_build_monitors(conversion, registration_files))
    registration_files.files["30-bindings.yaml"] = dump_yaml(
        [
            _build_object("Binding", None, tenant, CommentedMap(instance=options.instance, namespace=namespace))
            for tenant, namespace in conversion.bindings
        ]
    )
    return registration_files


def _build_clusters(conversion: Conversion, registration_files: RegistrationFiles) -> Iterable[CommentedMap]:
    for cluster, name in conversion.clusters.items():
        variable_prefix = f"{cluster.tenant}-{name}"
        owner = f"cluster {cluster.tenant}/{name}"
        spec = CommentedMap()
        if cluster.servers[0].text is None:
            _set_value(
                spec,
                "bootstrapServers",
                cluster.servers[0],
                _require_value(registration_files, variable_prefix, owner, "bootstrapServers", cluster.servers[0]),
            )
        else:
            spec["bootstrapServers"] = [server.text for server in cluster.servers]
        for part, given in (("security", cluster.security), ("secrets", cluster.secrets)):
            values = CommentedMap()
            for key, value in given:
                _set_value(
                    values,
                    key,
                    value,
                    _require_value(registration_files, variable_prefix, owner, f"{part}.{key}", value),
                )
            if part == "security" and cluster.pod_role:
                values["awsPodRole"] = True
            if values:
                spec[part] = values
        yield _build_object("Cluster", name, cluster.tenant, spec)


def _build_monitors(conversion: Conversion, registration_files: RegistrationFiles) -> Iterable[CommentedMap]:
    rows = [
        (one.tenant, one.names[trigger_index], monitor, one, trigger_index)
        for one in conversion.converted_objects
        for trigger_index, monitor in one.monitors.items()
    ]
    for tenant, name, monitor, one, trigger_index in sorted(rows, key=lambda row: row[:2]):
        spec = _build_monitor_spec(
            tenant, name, monitor, conversion.clusters[one.clusters[trigger_index]], registration_files
        )
        monitor_object = _build_object("Monitor", name, tenant, spec)
        monitor_object.yaml_set_start_comment(_describe_origin(one, trigger_index))
        yield monitor_object


def _describe_origin(one: ConvertedObject, trigger_index: int) -> str:
    return f"From {one.resource.title}, trigger {trigger_index} ({one.resource.document.location})."


def _build_monitor_spec(
    tenant: str, name: str, monitor: ImportedMonitor, cluster: str, registration_files: RegistrationFiles
) -> CommentedMap:
    owner, variable_prefix = f"monitor {tenant}/{name}", f"{tenant}-{name}"
    spec = CommentedMap(cluster=cluster)
    _set_value(
        spec,
        "consumerGroup",
        monitor.group,
        _require_value(registration_files, variable_prefix, owner, "consumerGroup", monitor.group),
    )
    topics = monitor.topics
    if topics is not None and topics[0].text is None:
        _set_value(
            spec, "topics", topics[0], _require_value(registration_files, variable_prefix, owner, "topics", topics[0])
        )
    elif topics is not None:
        spec["topics"] = [topic.text for topic in topics]
    spec["policy"] = CommentedMap(monitor.policy)
    return spec


def _require_value(
    registration_files: RegistrationFiles, variable_prefix: str, owner: str, field_name: str, given: SourcedValue
) -> str:
    """The variable of a missing value; empty if the value is known."""
    if given.text is not None:
        return ""
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", field_name.rpartition(".")[2])
    variable = re.sub(r"[^A-Z0-9]+", "_", f"KAFKA-{variable_prefix}-{key}".upper())
    registration_files.missing_values.append(MissingValue(variable, f"{owner}, {field_name}", given.source))
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
    return CommentedMap(apiVersion=API_VERSION, kind=kind, metadata=metadata, spec=spec)
