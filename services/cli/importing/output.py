"""Output of an import: registrations, batches with their rollback, the report as JSON and Markdown, and the steps.

A value that the manifests do not contain becomes a reference to a variable of the command's environment: until it is
set, `lagscale apply` rejects the file with an error for the field. No secret is ever written.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.scalarstring import LiteralScalarString

from lagscale.domain.policy.keda_keys import KEDA_KEYS
from lagscale.domain.wording.numbers import format_count
from lagscale.errors import FieldError, InvalidInput
from services.cli.importing.conversion import Conversion, ConvertedObject
from services.cli.importing.manifest_index import get_map
from services.cli.importing.options import ImportOptions
from services.cli.importing.rewriting import read_max_replicas, read_min_replicas
from services.cli.importing.triggers import SourcedValue
from services.cli.objects.manifests import API_VERSION
from services.cli.output import dump_yaml

ReportData = dict[str, Any]

_SECRET = re.compile(r"Secret (?P<namespace>\S+)/(?P<name>\S+), key (?P<key>\S+)")
_STEPS = """# Steps

1. **Read `report.md`.** An import changes nothing; missing values and errors are listed first.
2. **Register.** Lagscale polls while KEDA continues to scale:

   ```sh
   lagscale apply -f {out}/register
   ```
{variables}
3. **Compare** after some hours: the replicas by KEDA's trigger and by Lagscale, from the same samples.

   ```sh
   lagscale compare --imported {out} --hours 6
   ```

4. **Switch** batch by batch. `new` replaces objects of the same names; `rollback` contains the originals.

   ```sh
   kubectl apply -f {out}/batch-001/new          # switch
   kubectl get scaledobject -A                   # READY must be True
   kubectl apply -f {out}/batch-001/rollback     # rollback
   ```

   Continue with the next batch after a load peak. The monitors can stay after a rollback.
"""
_VARIABLES = "\n   Set the variables that the report lists first; `apply` reports each one that is missing.\n"
_MISSING_VALUES = (
    "The manifests do not contain these values, or they are secrets, which an import never copies. Set the variables "
    "in the environment of `lagscale apply`; it rejects a file with an unset variable, with an error for the field."
)


def build_files(conversion: Conversion, options: ImportOptions, out: str) -> tuple[dict[str, str], ReportData]:
    """Relative path -> text, and the report. `out` is the directory, as in the commands of the steps."""
    missing_values: list[ReportData] = []
    texts = dict(_build_registrations(conversion, options, missing_values))
    converted_objects, size = conversion.converted_objects, options.batch_size
    batches = {id(one): f"batch-{number // size + 1:03}" for number, one in enumerate(converted_objects)}
    for one in converted_objects:
        name = _build_file_name(one)
        texts[f"{batches[id(one)]}/new/{name}"] = one.new or ""
        texts[f"{batches[id(one)]}/rollback/{name}"] = one.old or ""
    data = _build_report(conversion, missing_values, batches)
    texts["README.md"] = _STEPS.format(out=out, variables=_VARIABLES if missing_values else "")
    texts["report.md"] = _render_markdown(data)
    texts["report.json"] = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return texts, data


def check_directory(out: Path) -> None:
    """Check that the output directory is new or empty.

    Raises:
        InvalidInput: it is not empty, or a file.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInput([FieldError("--out", f"{out} already exists; use a new or empty directory")])


def write_files(texts: dict[str, str], out: Path) -> None:
    """Write the files.

    Raises:
        InvalidInput: the directory is not writable.
    """
    try:
        for name, text in texts.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput([FieldError("--out", f"{out} cannot be written: {error.strerror}")]) from error


def _build_file_name(one: ConvertedObject) -> str:
    """A unique file name per object, which never leaves the directory."""
    resource = one.resource
    parts = (
        re.sub(r"[^A-Za-z0-9-]+", ".", part).strip(".") for part in (resource.namespace, resource.kind, resource.name)
    )
    return "_".join(parts).lower() + ".yaml"


def _build_registrations(
    conversion: Conversion, options: ImportOptions, missing_values: list[ReportData]
) -> Iterator[tuple[str, str]]:
    """Path and text of the objects to register, in files that are applied in the order of their names."""
    bindings = conversion.bindings
    tenants = sorted({tenant for tenant, _ in bindings}) if options.with_tenants else []
    files = {
        "00-tenants": [_build_object("Tenant", tenant, None, CommentedMap()) for tenant in tenants],
        "10-clusters": _build_clusters(conversion, missing_values),
        "20-monitors": _build_monitors(conversion, missing_values),
        "30-bindings": [
            _build_object("Binding", None, tenant, CommentedMap(instance=options.instance, namespace=namespace))
            for tenant, namespace in bindings
        ],
    }
    for name, documents in files.items():
        text = dump_yaml(documents)
        if text:
            yield f"register/{name}.yaml", text


def _build_clusters(conversion: Conversion, missing_values: list[ReportData]) -> Iterator[CommentedMap]:
    for cluster, name in conversion.clusters.items():
        writer = _ValueWriter("cluster", cluster.tenant, name, missing_values)
        spec = CommentedMap()
        writer.set_list(spec, "bootstrapServers", cluster.servers)
        for part, given in (("security", cluster.security), ("secrets", cluster.secrets)):
            values = CommentedMap()
            for key, value in given:
                writer.set_value(values, key, value, f"{part}.")
            if part == "security" and cluster.pod_role:
                values["awsPodRole"] = True
            if values:
                spec[part] = values
        yield _build_object("Cluster", name, cluster.tenant, spec)


def _build_monitors(conversion: Conversion, missing_values: list[ReportData]) -> Iterator[CommentedMap]:
    rows = [
        (one.tenant, one.names[trigger_index], monitor, one, trigger_index)
        for one in conversion.converted_objects
        for trigger_index, monitor in one.monitors.items()
    ]
    for tenant, name, monitor, one, trigger_index in sorted(rows, key=lambda row: row[:2]):
        writer = _ValueWriter("monitor", tenant, name, missing_values)
        spec = CommentedMap(cluster=conversion.clusters[one.clusters[trigger_index]])
        writer.set_value(spec, "consumerGroup", monitor.group)
        if monitor.topics is not None:
            writer.set_list(spec, "topics", monitor.topics)
        spec["policy"] = CommentedMap(monitor.policy)
        monitor_object = _build_object("Monitor", name, tenant, spec)
        origin = f"From {one.resource.title}, trigger {trigger_index} ({one.resource.document.location})."
        monitor_object.yaml_set_start_comment(origin)
        yield monitor_object


@dataclass(frozen=True, slots=True)
class _ValueWriter:
    """Writes values of one object, and adds those that the manifests do not contain to `missing_values`."""

    kind: str
    tenant: str
    name: str
    missing_values: list[ReportData]

    def set_list(self, node: CommentedMap, key: str, given: Sequence[SourcedValue]) -> None:
        if given[0].text is None:
            self.set_value(node, key, given[0])
        else:
            node[key] = [one.text for one in given]

    def set_value(self, node: CommentedMap, key: str, given: SourcedValue, part: str = "") -> None:
        if given.text is not None:
            text = given.text.strip()
            node[key] = LiteralScalarString(f"{text}\n") if "\n" in text else text
            return
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)
        variable = re.sub(r"[^A-Z0-9]+", "_", f"KAFKA-{self.tenant}-{self.name}-{words}".upper())
        owner = f"{self.kind} {self.tenant}/{self.name}, {part}{key}"
        command = _build_command(variable, given.source)
        self.missing_values.append({"variable": variable, "owner": owner, "source": given.source, "command": command})
        node[key] = CommentedMap(valueFrom=CommentedMap(env=variable))
        for level in (node[key], node[key]["valueFrom"]):
            level.fa.set_flow_style()
        node.yaml_add_eol_comment(" ".join(given.source.split()), key)


def _build_command(variable: str, source: str) -> str | None:
    """Command that sets the variable from a Kubernetes Secret; None for other sources."""
    match = _SECRET.fullmatch(source)
    if match is None:
        return None
    key = match["key"].replace(".", r"\.")
    get = ["kubectl", "get", "secret", "-n", match["namespace"], match["name"], "-o", f"jsonpath={{.data.{key}}}"]
    return f'export {variable}="$({shlex.join(get)} | base64 -d)"'


def _build_object(kind: str, name: str | None, tenant: str | None, spec: Mapping[str, object]) -> CommentedMap:
    metadata = CommentedMap({key: text for key, text in (("name", name), ("tenant", tenant)) if text is not None})
    return CommentedMap(apiVersion=API_VERSION, kind=kind, metadata=metadata, spec=spec)


def _build_report(conversion: Conversion, missing_values: list[ReportData], batches: Mapping[int, str]) -> ReportData:
    """The report: the content of report.json, and the source of report.md.

    Args:
        conversion: of all manifests.
        missing_values: of the registrations.
        batches: id of an object -> the name of its batch.
    """
    converted_objects = conversion.converted_objects
    return {
        "summary": {
            "converted": len(converted_objects),
            "notConverted": len(conversion.objects) - len(converted_objects),
            "withoutKafkaTrigger": len(conversion.without_kafka),
            "unreadable": len(conversion.unreadable),
            "clusters": len(conversion.clusters),
            "monitors": sum(len(one.names) for one in converted_objects),
            "batches": len(set(batches.values())),
        },
        "objects": [_describe_object(one, batches.get(id(one)), conversion) for one in conversion.objects],
        "clusters": [
            {"tenant": cluster.tenant, "name": name, "bootstrapServers": [server.text for server in cluster.servers]}
            for cluster, name in conversion.clusters.items()
        ],
        "bindings": [{"tenant": tenant, "namespace": namespace} for tenant, namespace in conversion.bindings],
        "missingValues": missing_values,
        "withoutKafkaTrigger": conversion.without_kafka,
        "unreadable": [{"location": location, "reason": reason} for location, reason in conversion.unreadable],
        "notes": conversion.notes,
        "kedaKeys": _count_keys(conversion),
    }


def _describe_object(one: ConvertedObject, batch: str | None, conversion: Conversion) -> ReportData:
    resource, log = one.resource, one.log
    return {
        "kind": resource.kind,
        "namespace": resource.namespace,
        "name": resource.name,
        "location": resource.document.location,
        "tenant": one.tenant,
        "converted": one.new is not None,
        "batch": batch,
        "monitors": [
            {
                "name": name,
                "trigger": trigger_index,
                "cluster": conversion.clusters[one.clusters[trigger_index]],
                "minReplicas": read_min_replicas(resource),
                "maxReplicas": read_max_replicas(resource),
                "keda": dict(one.monitors[trigger_index].keda),
            }
            for trigger_index, name in sorted(one.names.items())
        ],
        "errors": log.field_errors,
        "tasks": log.tasks,
        "warnings": log.warnings,
        "keys": [asdict(entry) for entry in sorted(log.entries, key=lambda entry: entry.key)],
    }


def _count_keys(conversion: Conversion) -> list[ReportData]:
    counts = Counter(name for one in conversion.objects for name in _list_trigger_keys(one))
    return [
        {
            "key": key.name,
            "default": key.default or None,
            "target": key.target.value,
            "note": key.note,
            "occurrences": counts[key.name],
        }
        for key in KEDA_KEYS.values()
    ]


def _list_trigger_keys(one: ConvertedObject) -> Iterator[str]:
    """The keys of each kafka trigger and of its authentication, each once for a trigger."""
    for index in one.resource.list_kafka_triggers():
        prefix = f"triggers[{index}].authenticationRef."
        metadata = {name.removesuffix("FromEnv") for name in get_map(one.resource.triggers[index], "metadata")}
        yield from metadata | {
            entry.key.removeprefix(prefix) for entry in one.log.entries if entry.key.startswith(prefix)
        }


def _render_markdown(data: ReportData) -> str:
    """The report as Markdown."""
    summary, missing_values = data["summary"], data["missingValues"]
    commands = [one["command"] for one in missing_values if one["command"]]
    rows = [(f"`{one['variable']}`", one["owner"], one["source"]) for one in missing_values]
    table = [_MISSING_VALUES, "", *_render_table(("variable", "field", "source"), rows)] if rows else []
    lines = [
        "# Import of KEDA's kafka triggers",
        "",
        f"{format_count(summary['converted'], 'object')} converted, {summary['notConverted']} not converted, "
        f"{summary['withoutKafkaTrigger']} without a kafka trigger, {format_count(summary['unreadable'], 'unreadable document')}. "
        f"{format_count(summary['monitors'], 'monitor')} on {format_count(summary['clusters'], 'cluster')} to register.",
        "",
        *_render_section(
            "Values required before apply", [*table, *(["", "```sh", *commands, "```"] if commands else [])]
        ),
        *_render_section("Not converted", [line for one in data["objects"] for line in _render_errors(one)]),
        *_render_section(
            "Unreadable", [f"- `{one['location']}` {_escape_cell(one['reason'])}" for one in data["unreadable"]]
        ),
        *_render_section("Notes on several objects", _render_list(data["notes"])),
        *_render_section("Without a kafka trigger, unchanged", _render_list(data["withoutKafkaTrigger"])),
        *(line for one in data["objects"] for line in _render_object(one)),
        "## All keys of KEDA's kafka trigger",
        "",
        *_render_table(
            ("key", "KEDA's default", "target", "note", "occurrences"),
            [
                (f"`{key['key']}`", key["default"] or "", key["target"], key["note"], str(key["occurrences"]))
                for key in data["kedaKeys"]
            ],
        ),
    ]
    return "\n".join(lines) + "\n"


def _render_section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _render_list(texts: Iterable[str], prefix: str = "- ") -> list[str]:
    return [prefix + _escape_cell(text) for text in texts]


def _render_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [" | ".join(map(_escape_cell, row)) for row in rows]
    return [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns), *(f"| {row} |" for row in cells)]


def _render_errors(one: ReportData) -> list[str]:
    title = f"- **{one['kind']} {one['namespace']}/{one['name']}** (`{one['location']}`)"
    return [title, *_render_list(one["errors"], "  - ")] if one["errors"] else []


def _render_object(one: ReportData) -> list[str]:
    if one["converted"]:
        monitor_names = ", ".join(f"`{one['tenant']}/{monitor['name']}`" for monitor in one["monitors"])
        result = f"Monitors: {monitor_names}; batch: {one['batch']}."
    else:
        result = "**Not converted**, the object stays unchanged: " + "; ".join(map(_escape_cell, one["errors"]))
    notes = [*_render_list(one["tasks"], "- To do: "), *_render_list(one["warnings"])]
    return [
        f"## {one['kind']} {one['namespace']}/{one['name']}",
        "",
        f"From `{one['location']}`. {result}",
        "",
        *([*notes, ""] if notes else []),
        *_render_table(
            ("key", "outcome", "reason"), [(f"`{key['key']}`", key["outcome"], key["reason"]) for key in one["keys"]]
        ),
        "",
    ]


def _escape_cell(text: str) -> str:
    """A text as one cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")
