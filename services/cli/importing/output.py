"""The report of an import, as data: what became of every key of every object, and what is left to do."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lagscale.errors import FieldError, InvalidInput
from services.cli.importing.conversion import Conversion, ConvertedObject
from services.cli.importing.keda_keys import KEDA_KEYS
from services.cli.importing.options import ImportOptions
from services.cli.importing.registrations import RegistrationFiles, build_registrations
from services.cli.importing.rewriting import read_max_replicas, read_min_replicas

ReportData = dict[str, Any]


def build_report(
    conversion: Conversion, registered: RegistrationFiles, batches: Mapping[str, Sequence[ConvertedObject]]
) -> ReportData:
    """The whole report; JSON as it is, and what the Markdown is made of.

    Args:
        conversion: what was converted.
        registered: what is registered for it.
        batches: name -> objects.
    """
    batch_of = {id(one): name for name, objects in batches.items() for one in objects}
    return {
        "summary": {
            "converted": len(conversion.converted_objects),
            "notConverted": len(conversion.objects) - len(conversion.converted_objects),
            "untouched": len(conversion.without_kafka),
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
        "wanted": [
            {"variable": one.variable, "of": one.owner, "from": one.source, "command": one.command or None}
            for one in registered.missing_values
        ],
        "untouched": conversion.without_kafka,
        "unreadable": [{"where": where, "why": why} for where, why in conversion.unreadable],
        "notes": conversion.notes,
        "kedaKeys": _count_keys(conversion),
    }


def _describe_object(one: ConvertedObject, batch: str | None, conversion: Conversion) -> ReportData:
    resource, log = one.resource, one.log
    return {
        "kind": resource.kind,
        "namespace": resource.namespace,
        "name": resource.name,
        "where": resource.document.where,
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
        "faults": list(log.field_errors),
        "toDo": list(log.tasks),
        "warnings": list(log.warnings),
        "keys": [
            {"key": entry.key, "outcome": entry.outcome.value, "why": entry.why}
            for entry in sorted(log.entries, key=lambda entry: entry.key)
        ],
    }


def _count_keys(conversion: Conversion) -> list[ReportData]:
    counts = Counter(
        name
        for one in conversion.objects
        for entry in one.log.entries
        if entry.outcome.value != "added"
        for name in [entry.key.rpartition(".")[2].removesuffix("FromEnv")]
        if entry.key.startswith("triggers[")
    )
    return [
        {
            "key": key.name,
            "default": key.default or None,
            "goes": key.target.value,
            "why": key.why,
            "seen": counts[key.name],
        }
        for key in KEDA_KEYS.values()
    ]


def render_markdown(data: ReportData) -> str:
    """The report as a page."""
    summary = data["summary"]
    lines = [
        "# From KEDA's kafka triggers to Lagscale",
        "",
        f"{summary['converted']} objects are converted, {summary['notConverted']} are not, {summary['untouched']} have "
        f"no kafka trigger, {summary['unreadable']} documents could not be read. {summary['monitors']} monitors on "
        f"{summary['clusters']} clusters are to be registered.",
        "",
    ]
    lines += _render_section("What apply needs first", _render_missing_values(data["wanted"]))
    lines += _render_section(
        "Not converted", [line for one in data["objects"] if one["faults"] for line in _render_errors(one)]
    )
    lines += _render_section(
        "Not readable", [f"- `{one['where']}` {_escape_cell(one['why'])}" for one in data["unreadable"]]
    )
    lines += _render_section("About several objects", [f"- {_escape_cell(note)}" for note in data["notes"]])
    lines += _render_section(
        "Without a kafka trigger, left alone", [f"- {_escape_cell(title)}" for title in data["untouched"]]
    )
    for one in data["objects"]:
        lines += _render_object(one)
    lines += [
        "## Every key of KEDA's kafka trigger",
        "",
        "| key | KEDA's default | goes to | | found |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{key['key']}` | {key['default'] or ''} | {key['goes']} | {_escape_cell(key['why'])} | {key['seen']} |"
        for key in data["kedaKeys"]
    ]
    return "\n".join(lines) + "\n"


def _render_section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _render_missing_values(missing_values: Sequence[ReportData]) -> list[str]:
    if not missing_values:
        return []
    lines = [
        "The manifests do not hold these values, or they are secrets, which an import never copies. Set the variables "
        "where `lagscale apply` runs; it refuses a file whose variable is not set, and names the field.",
        "",
        "| variable | is | stands now in |",
        "|---|---|---|",
        *(
            f"| `{one['variable']}` | {_escape_cell(one['of'])} | {_escape_cell(one['from'])} |"
            for one in missing_values
        ),
    ]
    commands = [one["command"] for one in missing_values if one["command"]]
    return [*lines, *(["", "```sh", *commands, "```"] if commands else [])]


def _render_errors(one: ReportData) -> list[str]:
    title = f"- **{one['kind']} {one['namespace']}/{one['name']}** (`{one['where']}`)"
    return [title, *(f"  - {_escape_cell(field_error)}" for field_error in one["faults"])]


def _render_object(one: ReportData) -> list[str]:
    lines = [f"## {one['kind']} {one['namespace']}/{one['name']}", "", f"From `{one['where']}`."]
    if one["converted"]:
        monitor_names = ", ".join(f"`{one['tenant']}/{monitor['name']}`" for monitor in one["monitors"])
        lines[-1] += f" Asks for {monitor_names}; in {one['batch']}."
    else:
        lines[-1] += " **Not converted**, so it stays as it is: " + "; ".join(
            _escape_cell(field_error) for field_error in one["faults"]
        )
    lines.append("")
    notes = [
        *(f"- To do: {_escape_cell(text)}" for text in one["toDo"]),
        *(f"- {_escape_cell(text)}" for text in one["warnings"]),
    ]
    lines += [*notes, ""] if notes else []
    lines += ["| key | outcome | why |", "|---|---|---|"]
    lines += [
        f"| `{_escape_cell(key['key'])}` | {key['outcome']} | {_escape_cell(key['why'])} |" for key in one["keys"]
    ]
    return [*lines, ""]


def _escape_cell(text: str) -> str:
    """A text in one cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


_ORDER = """# In which order

1. **Look at `report.md`.** Nothing is changed by an import; what it could not do stands first.
2. **Register**, and let Lagscale measure while KEDA goes on scaling:

   ```sh
   lagscale apply -f {out}/register
   ```
{variables}
3. **Compare**, after some hours: what KEDA's trigger would have said, and what Lagscale says, from the same samples.

   ```sh
   lagscale compare --imported {out} --hours 6
   ```

4. **Switch**, batch by batch. `new` replaces objects of the same names; `rollback` holds each as it was.

   ```sh
   kubectl apply -f {out}/batch-001/new          # switch
   kubectl get scaledobject -A                   # READY must be True
   kubectl apply -f {out}/batch-001/rollback     # the way back
   ```

   Go on with the next batch when this one has seen a peak. The monitors can stay when you go back: they only measure.
"""
_VARIABLES = "   Set first the variables that the report lists; `apply` names each that is missing.\n"


def split_batches(conversion: Conversion, size: int) -> dict[str, list[ConvertedObject]]:
    """Name -> objects, in the order of their names."""
    converted_objects = conversion.converted_objects
    return {
        f"batch-{number // size + 1:03}": converted_objects[number : number + size]
        for number in range(0, len(converted_objects), size)
    }


def build_files(conversion: Conversion, options: ImportOptions, out: str) -> tuple[dict[str, str], ReportData]:
    """Path below the directory -> text, and the report. `out` is the directory, as commands call it."""
    registered = build_registrations(conversion, options)
    parts = split_batches(conversion, options.batch)
    data = build_report(conversion, registered, parts)
    texts = {f"register/{name}": text for name, text in registered.files.items() if text}
    for batch, objects in parts.items():
        for one in objects:
            name = _build_file_name(one)
            texts[f"{batch}/new/{name}"] = one.new or ""
            texts[f"{batch}/rollback/{name}"] = one.old or ""
    texts["README.md"] = _ORDER.format(out=out, variables=f"\n{_VARIABLES}" if registered.missing_values else "")
    texts["report.md"] = render_markdown(data)
    texts["report.json"] = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return texts, data


def check_directory(out: Path) -> Path:
    """A directory that can be written.

    Raises:
        InvalidInput: there is something in it, or it is a file.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInput([FieldError("--out", f"{out} is there already; name a directory that is new or empty")])
    return out


def write_files(texts: dict[str, str], out: Path) -> Sequence[Path]:
    """Write the files.

    Raises:
        InvalidInput: the directory cannot be written.
    """
    written_paths = []
    try:
        for name, text in texts.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written_paths.append(path)
    except OSError as wrong:
        raise InvalidInput([FieldError("--out", f"{out} cannot be written: {wrong.strerror}")]) from wrong
    return written_paths


def _build_file_name(one: ConvertedObject) -> str:
    """A name of its own for each object, and never a way out of the directory."""
    resource = one.resource
    parts = (
        re.sub(r"[^A-Za-z0-9-]+", ".", part).strip(".") for part in (resource.namespace, resource.kind, resource.name)
    )
    return "_".join(parts).lower() + ".yaml"
