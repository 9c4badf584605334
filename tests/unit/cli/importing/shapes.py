"""The shapes of tests/data/keda-imports through an import, and what is expected of each.

To renew the expected files, and then read every difference: .venv/bin/python -m tests.unit.cli.importing.shapes
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

from services.cli.importing.conversion import convert_all
from services.cli.importing.options import ImportOptions, TriggerOptions
from services.cli.importing.output import build_files
from services.cli.importing.yaml_text import read_sources

SHAPES = Path(__file__).parents[3] / "data" / "keda-imports"
EXPECTED = SHAPES / "expected"
PATHS = sorted(path for path in SHAPES.iterdir() if path.suffix in {".yaml", ".json"})
USUAL = ImportOptions(TriggerOptions())
#: Told apart: these say the same as the report's data in other words.
_PROSE = ("README.md", "report.md", "report.json")


@cache
def imported(*paths: Path, options: ImportOptions = USUAL) -> tuple[dict[str, str], dict[str, Any]]:
    """File -> text, and the report."""
    return build_files(convert_all(read_sources([str(path) for path in paths], sys.stdin), options), options, "out")


def expectation(path: Path) -> str:
    """Everything that an import makes of a shape, as one text to read."""
    texts, report = imported(path)
    parts = [f"##### {name}\n{text}" for name, text in texts.items() if name not in _PROSE]
    lines = []
    for one in report["objects"]:
        lines.append(f"{one['kind']} {one['namespace']}/{one['name']} ({one['where']}), {one['batch']}")
        lines += [f"  fault: {text}" for text in one["faults"]]
        lines += [f"  to do: {text}" for text in one["toDo"]]
        lines += [f"  warning: {text}" for text in one["warnings"]]
        lines += [f"  {key['key']}: {key['outcome']}: {key['why']}" for key in one["keys"]]
    for one in report["wanted"]:
        lines.append(f"wanted: {one['variable']} = {one['of']}, from {one['from']}")
        lines += [f"  {one['command']}"] if one["command"] else []
    lines += [f"unreadable: {one['where']} {one['why']}" for one in report["unreadable"]]
    lines += [f"untouched: {title}" for title in report["untouched"]]
    lines += [f"note: {text}" for text in report["notes"]]
    return "".join(parts) + "##### report\n" + "\n".join(lines) + "\n"


def expected(path: Path) -> Path:
    """Where the expectation of a shape stands."""
    return EXPECTED / f"{path.stem}.txt"


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    for shape in PATHS:
        expected(shape).write_text(expectation(shape), encoding="utf-8")
