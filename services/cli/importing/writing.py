"""The directory that an import makes: registrations, batches with the way back, the report, and the order of work."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from lagscale.errors import Fault, InvalidInput
from services.cli.importing.conversion import Conversion, Converted
from services.cli.importing.options import Options
from services.cli.importing.registrations import registrations
from services.cli.importing.report import Report, markdown, report

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


def batches(conversion: Conversion, size: int) -> dict[str, list[Converted]]:
    """Name -> objects, in the order of their names."""
    done = conversion.done
    return {f"batch-{number // size + 1:03}": done[number : number + size] for number in range(0, len(done), size)}


def files(conversion: Conversion, options: Options, out: str) -> tuple[dict[str, str], Report]:
    """Path below the directory -> text, and the report. `out` is the directory, as commands call it."""
    made = registrations(conversion, options)
    parts = batches(conversion, options.batch)
    found = report(conversion, made, parts)
    texts = {f"register/{name}": text for name, text in made.files.items() if text}
    for batch, objects in parts.items():
        for one in objects:
            name = _file_name(one)
            texts[f"{batch}/new/{name}"] = one.new or ""
            texts[f"{batch}/rollback/{name}"] = one.old or ""
    texts["README.md"] = _ORDER.format(out=out, variables=f"\n{_VARIABLES}" if made.wanted else "")
    texts["report.md"] = markdown(found)
    texts["report.json"] = json.dumps(found, indent=2, ensure_ascii=False) + "\n"
    return texts, found


def checked(out: Path) -> Path:
    """A directory that can be written.

    Raises:
        InvalidInput: there is something in it, or it is a file.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InvalidInput([Fault("--out", f"{out} is there already; name a directory that is new or empty")])
    return out


def write(texts: dict[str, str], out: Path) -> Sequence[Path]:
    """Write the files.

    Raises:
        InvalidInput: the directory cannot be written.
    """
    written = []
    try:
        for name, text in texts.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            written.append(path)
    except OSError as wrong:
        raise InvalidInput([Fault("--out", f"{out} cannot be written: {wrong.strerror}")]) from wrong
    return written


def _file_name(one: Converted) -> str:
    """A name of its own for each object, and never a way out of the directory."""
    scaled = one.scaled
    parts = (re.sub(r"[^A-Za-z0-9-]+", ".", part).strip(".") for part in (scaled.namespace, scaled.kind, scaled.name))
    return "_".join(parts).lower() + ".yaml"
