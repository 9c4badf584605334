"""Output of an import: registrations, batches with their rollback, the report as JSON and Markdown, and the steps."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lagscale.domain.policy.keda_keys import KEDA_KEYS
from lagscale.errors import FieldError, InvalidInput
from services.cli.importing.conversion import Conversion, ConvertedObject
from services.cli.importing.conversion_log import KeyOutcome
from services.cli.importing.options import ImportOptions
from services.cli.importing.registrations import RegistrationFiles, build_registrations
from services.cli.importing.rewriting import read_max_replicas, read_min_replicas

ReportData = dict[str, Any]


def build_report(
    conversion: Conversion, registered: RegistrationFiles, batches: Mapping[str, Sequence[ConvertedObject]]
) -> ReportData:
    """The report: the content of report.json, and the source of report.md.

    Args:
        conversion: of all manifests.
        registered: the registrations.
        batches: name -> objects.
    """
    batch_of = {id(one): name for name, objects in batches.items() for one in objects}
    return {
        "summary": {
            "converted": len(conversion.converted_objects),
            "notConverted": len(conversion.objects) - len(conversion.converted_objects),
            "withoutKafkaTrigger": len(conversion.without_kafka),
            "unreadable": len(conversion.unreadable),
            "clusters": len(conversion.clusters),
            "monitors": sum(len(one.names) for one in conversion.converted_objects),
            "batches": len(batches),
        },
        "objects": [_describe_object(one, batch_of.get(id(one)), conversion) for one in conversion.objects],
        "clusters": [
            {"tenant": cluster.tenant, "name": name, "bootstrapServers": [server.text for server in cluster.servers]}
            for cluster, name in conversion.clusters.items()
        ],
        "bindings": [{"tenant": tenant, "namespace": namespace} for tenant, namespace in conversion.bindings],
        "missingValues": [
            {"variable": one.variable, "owner": one.owner, "source": one.source, "command": one.command or None}
            for one in registered.missing_values
        ],
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
        "errors": list(log.field_errors),
        "tasks": list(log.tasks),
        "warnings": list(log.warnings),
        "keys": [
            {"key": entry.key, "outcome": entry.outcome.value, "reason": entry.reason}
            for entry in sorted(log.entries, key=lambda entry: entry.key)
        ],
    }


def _count_keys(conversion: Conversion) -> list[ReportData]:
    counts = Counter(
        name
        for one in conversion.objects
        for entry in one.log.entries
        if entry.outcome is not KeyOutcome.ADDED
        for name in [entry.key.rpartition(".")[2].removesuffix("FromEnv")]
        if entry.key.startswith("triggers[")
    )
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


def render_markdown(data: ReportData) -> str:
    """The report as Markdown."""
    summary = data["summary"]
    lines = [
        "# Import of KEDA's kafka triggers",
        "",
        f"{summary['converted']} objects converted, {summary['notConverted']} not converted, "
        f"{summary['withoutKafkaTrigger']} without a kafka trigger, {summary['unreadable']} unreadable documents. "
        f"{summary['monitors']} monitors on {summary['clusters']} clusters to register.",
        "",
    ]
    lines += _render_section("Values required before apply", _render_missing_values(data["missingValues"]))
    lines += _render_section(
        "Not converted", [line for one in data["objects"] if one["errors"] for line in _render_errors(one)]
    )
    lines += _render_section(
        "Unreadable", [f"- `{one['location']}` {_escape_cell(one['reason'])}" for one in data["unreadable"]]
    )
    lines += _render_section("Notes on several objects", [f"- {_escape_cell(note)}" for note in data["notes"]])
    lines += _render_section(
        "Without a kafka trigger, unchanged", [f"- {_escape_cell(title)}" for title in data["withoutKafkaTrigger"]]
    )
    for one in data["objects"]:
        lines += _render_object(one)
    lines += [
        "## All keys of KEDA's kafka trigger",
        "",
        "| key | KEDA's default | target | note | occurrences |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{key['key']}` | {key['default'] or ''} | {key['target']} | {_escape_cell(key['note'])} | {key['occurrences']} |"
        for key in data["kedaKeys"]
    ]
    return "\n".join(lines) + "\n"


def _render_section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _render_missing_values(missing_values: Sequence[ReportData]) -> list[str]:
    if not missing_values:
        return []
    lines = [
        "The manifests do not contain these values, or they are secrets, which an import never copies. Set the variables "
        "in the environment of `lagscale apply`; it rejects a file with an unset variable, with an error for the field.",
        "",
        "| variable | field | source |",
        "|---|---|---|",
        *(
            f"| `{one['variable']}` | {_escape_cell(one['owner'])} | {_escape_cell(one['source'])} |"
            for one in missing_values
        ),
    ]
    commands = [one["command"] for one in missing_values if one["command"]]
    return [*lines, *(["", "```sh", *commands, "```"] if commands else [])]


def _render_errors(one: ReportData) -> list[str]:
    title = f"- **{one['kind']} {one['namespace']}/{one['name']}** (`{one['location']}`)"
    return [title, *(f"  - {_escape_cell(field_error)}" for field_error in one["errors"])]


def _render_object(one: ReportData) -> list[str]:
    lines = [f"## {one['kind']} {one['namespace']}/{one['name']}", "", f"From `{one['location']}`."]
    if one["converted"]:
        monitor_names = ", ".join(f"`{one['tenant']}/{monitor['name']}`" for monitor in one["monitors"])
        lines[-1] += f" Monitors: {monitor_names}; batch: {one['batch']}."
    else:
        lines[-1] += " **Not converted**, the object stays unchanged: " + "; ".join(
            _escape_cell(field_error) for field_error in one["errors"]
        )
    lines.append("")
    notes = [
        *(f"- To do: {_escape_cell(text)}" for text in one["tasks"]),
        *(f"- {_escape_cell(text)}" for text in one["warnings"]),
    ]
    lines += [*notes, ""] if notes else []
    lines += ["| key | outcome | reason |", "|---|---|---|"]
    lines += [
        f"| `{_escape_cell(key['key'])}` | {key['outcome']} | {_escape_cell(key['reason'])} |" for key in one["keys"]
    ]
    return [*lines, ""]


def _escape_cell(text: str) -> str:
    """A text as one cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


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
_VARIABLES = "   Set the variables that the report lists first; `apply` reports each one that is missing.\n"


def split_batches(conversion: Conversion, size: int) -> dict[str, list[ConvertedObject]]:
    """Batches: name -> objects."""
    converted_objects = conversion.converted_objects
    return {
        f"batch-{number // size + 1:03}": converted_objects[number : number + size]
        for number in range(0, len(converted_objects), size)
    }


def build_files(conversion: Conversion, options: ImportOptions, out: str) -> tuple[dict[str, str], ReportData]:
    """Relative path -> text, and the report. `out` is the directory, as in the commands of the steps."""
    registered = build_registrations(conversion, options)
    parts = split_batches(conversion, options.batch_size)
    data = build_report(conversion, registered, parts)
    texts = {f"register/{name}": text for name, text in registered.files.items() if text}
    for batch, objects in parts.items():
        for one in objects:
            name = _build_file_name(one)
            texts[f"{batch}/new/{name}"] = one.new or ""
            texts[f"{batch}/rollback/{name}"] = one.old or ""
    texts["README.md"] = _STEPS.format(out=out, variables=f"\n{_VARIABLES}" if registered.missing_values else "")
    texts["report.md"] = render_markdown(data)
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
