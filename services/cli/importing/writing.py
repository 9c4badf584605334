"""The directory that an import makes: registrations, batches with the way back, the report, and the order of work."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from lagscale.errors import FieldError, InvalidInput
from services.cli.importing.conversion import Conversion, ConvertedObject
from services.cli.importing.options import ImportOptions
from services.cli.importing.registrations import build_registrations
from services.cli.importing.report import ReportData, build_report, render_markdown

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
