"""`valueFrom` in files: a value out of the command's own environment or out of a file beside the manifest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lagscale.errors import FieldError
from lagscale.settings import PREFIX
from services.cli.objects.documents import KeyPath, SourceDocument

_KEY = "valueFrom"
_LONGEST = 1_048_576
_FORM = "must read like {env: NAME} or {file: path}"


@dataclass(frozen=True, slots=True)
class ValueFromResolver:
    """Resolves them.

    Attributes:
        environ: the variables that may be meant; none of Lagscale's own is.
        field_errors: takes a fault for each reference that leads nowhere, by the place and the field.
    """

    environ: Mapping[str, str]
    field_errors: list[FieldError]

    def resolve_spec(self, document: SourceDocument) -> Any:
        """The document's spec with every reference in it replaced by what it leads to; a left out one is empty."""
        spec = document.value.get("spec") if isinstance(document.value, dict) else None
        return {} if spec is None else self._resolve(document, ("spec",), spec)

    def _resolve(self, document: SourceDocument, key_path: KeyPath, value: Any) -> Any:
        if isinstance(value, list):
            return [self._resolve(document, (*key_path, number), item) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        if _KEY not in value:
            return {name: self._resolve(document, (*key_path, name), item) for name, item in value.items()}
        try:
            return self._read_reference(document, value)
        except ValueError as wrong:
            field = ".".join(map(str, key_path))
            self.field_errors.append(FieldError(f"{document.locate((*key_path, _KEY))}: {field}.{_KEY}", str(wrong)))
            # In its place, so that no other fault is told of this field.
            return "unresolved"

    def _read_reference(self, document: SourceDocument, value: dict[str, Any]) -> str:
        reference = value[_KEY]
        if len(value) != 1 or not isinstance(reference, dict) or len(reference) != 1:
            raise ValueError(_FORM)
        ((kind, name),) = reference.items()
        if kind not in {"env", "file"} or not isinstance(name, str) or not name:
            raise ValueError(_FORM)
        return self._read_variable(name) if kind == "env" else _read_file(document.file, name)

    def _read_variable(self, name: str) -> str:
        if name.upper().startswith(PREFIX):
            # A file that somebody else wrote must not carry the command's own key into an object.
            raise ValueError(f"env {name}: is a setting of the command; name a variable of another prefix")
        if not self.environ.get(name):
            raise ValueError(f"env {name}: is not set, or empty; set it where `lagscale` runs")
        return self.environ[name]


def _read_file(manifest: str, name: str) -> str:
    path = Path(manifest).parent / name
    try:
        if not path.is_file():
            raise ValueError(f"file {name}: is no file; paths count from the manifest's directory")
        with path.open("rb") as opened:
            content = opened.read(_LONGEST + 1)
        text = content.decode("utf-8")
    except OSError as wrong:
        raise ValueError(f"file {name}: cannot be read: {wrong.strerror}") from wrong
    except UnicodeDecodeError:
        raise ValueError(f"file {name}: is not UTF-8") from None
    if len(content) > _LONGEST or not text.strip():
        raise ValueError(f"file {name}: must hold 1 to {_LONGEST} bytes")
    # Editors and `echo` end a file with a line break that is no part of a password.
    return text.removesuffix("\n").removesuffix("\r")


def walk_leaves(value: Any, key_path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every value that is no mapping, with its way."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from walk_leaves(item, (*key_path, name))
    else:
        yield key_path, value
