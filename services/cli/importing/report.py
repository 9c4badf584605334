"""The report of an import, as data: what became of every key of every object, and what is left to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from services.cli.importing.conversion import Conversion, Converted
from services.cli.importing.kafka_keys import KEDA_KEYS
from services.cli.importing.registrations import Registrations
from services.cli.importing.surroundings import maximum, minimum

Report = dict[str, Any]


def report(conversion: Conversion, made: Registrations, batches: Mapping[str, Sequence[Converted]]) -> Report:
    """The whole report; JSON as it is, and what the Markdown is made of.

    Args:
        conversion: what was converted.
        made: what is registered for it.
        batches: name -> objects.
    """
    batch_of = {id(one): name for name, objects in batches.items() for one in objects}
    return {
        "summary": {
            "converted": len(conversion.done),
            "notConverted": len(conversion.objects) - len(conversion.done),
            "untouched": len(conversion.untouched),
            "unreadable": len(conversion.unreadable),
            "clusters": len(conversion.clusters),
            "monitors": sum(len(one.names) for one in conversion.done),
            "batches": len(batches),
        },
        "objects": [_object(one, batch_of.get(id(one)), conversion) for one in conversion.objects],
        "clusters": [
            {"tenant": cluster.tenant, "name": name, "bootstrapServers": [server.text for server in cluster.servers]}
            for cluster, name in conversion.clusters.items()
        ],
        "bindings": [{"tenant": tenant, "namespace": namespace} for tenant, namespace in conversion.bindings],
        "wanted": [
            {"variable": one.variable, "of": one.of, "from": one.told, "command": one.command or None}
            for one in made.wanted
        ],
        "untouched": conversion.untouched,
        "unreadable": [{"where": where, "why": why} for where, why in conversion.unreadable],
        "notes": conversion.notes,
        "kedaKeys": _keys(conversion),
    }


def _object(one: Converted, batch: str | None, conversion: Conversion) -> Report:
    scaled, findings = one.scaled, one.findings
    return {
        "kind": scaled.kind,
        "namespace": scaled.namespace,
        "name": scaled.name,
        "where": scaled.document.where,
        "tenant": one.tenant,
        "converted": one.new is not None,
        "batch": batch,
        "monitors": [
            {
                "name": name,
                "trigger": place,
                "cluster": conversion.clusters[one.clusters[place]],
                "minReplicas": minimum(scaled),
                "maxReplicas": maximum(scaled),
                "keda": dict(one.monitors[place].keda),
            }
            for place, name in sorted(one.names.items())
        ],
        "faults": list(findings.faults),
        "toDo": list(findings.to_do),
        "warnings": list(findings.warnings),
        "keys": [
            {"key": entry.key, "outcome": entry.outcome.value, "why": entry.why}
            for entry in sorted(findings.entries, key=lambda entry: entry.key)
        ],
    }


def _keys(conversion: Conversion) -> list[Report]:
    seen = Counter(
        name
        for one in conversion.objects
        for entry in one.findings.entries
        if entry.outcome.value != "added"
        for name in [entry.key.rpartition(".")[2].removesuffix("FromEnv")]
        if entry.key.startswith("triggers[")
    )
    return [
        {
            "key": key.name,
            "default": key.default or None,
            "goes": key.fate.value,
            "why": key.why,
            "seen": seen[key.name],
        }
        for key in KEDA_KEYS.values()
    ]


def markdown(found: Report) -> str:
    """The report as a page."""
    summary = found["summary"]
    lines = [
        "# From KEDA's kafka triggers to Lagscale",
        "",
        f"{summary['converted']} objects are converted, {summary['notConverted']} are not, {summary['untouched']} have "
        f"no kafka trigger, {summary['unreadable']} documents could not be read. {summary['monitors']} monitors on "
        f"{summary['clusters']} clusters are to be registered.",
        "",
    ]
    lines += _section("What apply needs first", _wanted(found["wanted"]))
    lines += _section("Not converted", [line for one in found["objects"] if one["faults"] for line in _faults(one)])
    lines += _section("Not readable", [f"- `{one['where']}` {_cell(one['why'])}" for one in found["unreadable"]])
    lines += _section("About several objects", [f"- {_cell(note)}" for note in found["notes"]])
    lines += _section("Without a kafka trigger, left alone", [f"- {_cell(title)}" for title in found["untouched"]])
    for one in found["objects"]:
        lines += _page(one)
    lines += [
        "## Every key of KEDA's kafka trigger",
        "",
        "| key | KEDA's default | goes to | | found |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{key['key']}` | {key['default'] or ''} | {key['goes']} | {_cell(key['why'])} | {key['seen']} |"
        for key in found["kedaKeys"]
    ]
    return "\n".join(lines) + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _wanted(wanted: Sequence[Report]) -> list[str]:
    if not wanted:
        return []
    lines = [
        "The manifests do not hold these values, or they are secrets, which an import never copies. Set the variables "
        "where `lagscale apply` runs; it refuses a file whose variable is not set, and names the field.",
        "",
        "| variable | is | stands now in |",
        "|---|---|---|",
        *(f"| `{one['variable']}` | {_cell(one['of'])} | {_cell(one['from'])} |" for one in wanted),
    ]
    commands = [one["command"] for one in wanted if one["command"]]
    return [*lines, *(["", "```sh", *commands, "```"] if commands else [])]


def _faults(one: Report) -> list[str]:
    title = f"- **{one['kind']} {one['namespace']}/{one['name']}** (`{one['where']}`)"
    return [title, *(f"  - {_cell(fault)}" for fault in one["faults"])]


def _page(one: Report) -> list[str]:
    lines = [f"## {one['kind']} {one['namespace']}/{one['name']}", "", f"From `{one['where']}`."]
    if one["converted"]:
        asks = ", ".join(f"`{one['tenant']}/{monitor['name']}`" for monitor in one["monitors"])
        lines[-1] += f" Asks for {asks}; in {one['batch']}."
    else:
        lines[-1] += " **Not converted**, so it stays as it is: " + "; ".join(_cell(fault) for fault in one["faults"])
    lines.append("")
    notes = [*(f"- To do: {_cell(text)}" for text in one["toDo"]), *(f"- {_cell(text)}" for text in one["warnings"])]
    lines += [*notes, ""] if notes else []
    lines += ["| key | outcome | why |", "|---|---|---|"]
    lines += [f"| `{_cell(key['key'])}` | {key['outcome']} | {_cell(key['why'])} |" for key in one["keys"]]
    return [*lines, ""]


def _cell(text: str) -> str:
    """A text in one cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")
