"""Local scratch: what a replica last knew, in files that may be lost at any time.

Atomic, private to the service's user, versioned by their form, bounded in size; written off the event loop.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import structlog
from pydantic import TypeAdapter, ValidationError

from lagscale.domain.verdict.freezes import Freeze
from lagscale.store.records import Registration, Registrations, TenantEntry

log = structlog.get_logger(__name__)

#: Raised with every change of the files' form; a file of another form is passed over.
FORMAT_VERSION: Final = 1
REGISTRATIONS: Final = "registrations.json"
ANSWERS: Final = "answers.json"
FROZEN: Final = "frozen.json"
_MAX_BYTES: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _CachedRegistrations:
    """`Registrations` as JSON can hold it: bindings as a list."""

    version: int
    tenants: tuple[TenantEntry, ...]
    monitors: tuple[Registration, ...]
    bindings: tuple[tuple[str, str, int], ...]
    # Files of the version before have none.
    freezes: tuple[Freeze, ...] = ()


_ADAPTER: Final = TypeAdapter(_CachedRegistrations)


class LocalCache:
    """The scaler's folder on scratch storage."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, content: Mapping[str, Any]) -> bool:
        """Replace a file; whether that worked. Blocks: call it in a thread."""
        data = json.dumps({"form": FORMAT_VERSION, "content": content}, separators=(",", ":")).encode()
        return self._replace(name, data)

    def read(self, name: str) -> Any:
        """A file's content; None when it is missing, torn, too large, or of another form."""
        try:
            path = self._folder / name
            if path.stat().st_size > _MAX_BYTES:
                log.warning("scratch_too_large", file=name)
                return None
            document = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("scratch_unreadable", file=name, error=type(error).__name__)
            return None
        if not isinstance(document, dict) or document.get("form") != FORMAT_VERSION:
            log.info("scratch_of_another_form", file=name)
            return None
        return document.get("content")

    def write_registrations(self, registrations: Registrations) -> bool:
        """Keep the registrations; whether that worked. Blocks: call it in a thread."""
        bindings = tuple(
            (instance, namespace, tenant) for (instance, namespace), tenant in registrations.bindings.items()
        )
        cached = _CachedRegistrations(
            registrations.version,
            registrations.tenants,
            registrations.monitors,
            bindings,
            registrations.freezes,
        )
        return self.write(REGISTRATIONS, _ADAPTER.dump_python(cached, mode="json"))

    def read_registrations(self) -> Registrations | None:
        """The registrations last kept; None without any."""
        content = self.read(REGISTRATIONS)
        if content is None:
            return None
        try:
            cached = _ADAPTER.validate_python(content)
        except ValidationError:
            log.warning("scratch_unreadable", file=REGISTRATIONS, error="ValidationError")
            return None
        bindings = {(instance, namespace): tenant for instance, namespace, tenant in cached.bindings}
        return Registrations(cached.version, cached.tenants, cached.monitors, bindings, cached.freezes)

    def _replace(self, name: str, data: bytes) -> bool:
        if len(data) > _MAX_BYTES:
            log.warning("scratch_too_large", file=name)
            return False
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkstemp makes the file for this user only; the rename puts a whole file in the place of a whole file.
            handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=self._folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self._folder / name)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            log.warning("scratch_unwritable", file=name, error=type(error).__name__)
            return False
        return True
