"""The manifests of tests/data/keda-imports, imported, and the expected result of each.

To update the expected files, and then read every difference: .venv/bin/python -m tests.unit.cli.importing.manifests_fixture
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions, TriggerOptions
from services.cli.importing.output import build_files
from services.cli.importing.yaml_text import read_sources

MANIFESTS = Path(__file__).parents[3] / "data" / "keda-imports"
EXPECTED = MANIFESTS / "expected"
PATHS = sorted(path for path in MANIFESTS.iterdir() if path.suffix in {".yaml", ".json"})
USUAL = ImportOptions(TriggerOptions())
#: Left out: these have the same content as the report's data.
_PROSE = ("README.md", "report.md", "report.json")


@cache
def imported(*paths: Path, options: ImportOptions = USUAL) -> tuple[dict[str, str], dict[str, Any]]:
    """File -> text, and the report."""
    return build_files(convert_all(read_sources([str(path) for path in paths]), options), options, "out")


def expectation(path: Path) -> str:
    """The whole result of an import of a manifest, as one text to read."""
    texts, report = imported(path)
    parts = [f"##### {name}\n{text}" for name, text in texts.items() if name not in _PROSE]
    lines = []
    for one in report["objects"]:
        lines.append(f"{one['kind']} {one['namespace']}/{one['name']} ({one['location']}), {one['batch']}")
        lines += [f"  error: {text}" for text in one["errors"]]
        lines += [f"  task: {text}" for text in one["tasks"]]
        lines += [f"  warning: {text}" for text in one["warnings"]]
        lines += [f"  {key['key']}: {key['outcome']}: {key['reason']}" for key in one["keys"]]
    for one in report["missingValues"]:
        lines.append(f"missing value: {one['variable']} = {one['owner']}, from {one['source']}")
        lines += [f"  {one['command']}"] if one["command"] else []
    lines += [f"unreadable: {one['location']} {one['reason']}" for one in report["unreadable"]]
    lines += [f"without kafka trigger: {title}" for title in report["withoutKafkaTrigger"]]
    lines += [f"note: {text}" for text in report["notes"]]
    return "".join(parts) + "##### report\n" + "\n".join(lines) + "\n"


def expected(path: Path) -> Path:
    """The file with the expected result of a manifest."""
    return EXPECTED / f"{path.stem}.txt"


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    for manifest in PATHS:
        expected(manifest).write_text(expectation(manifest), encoding="utf-8")
