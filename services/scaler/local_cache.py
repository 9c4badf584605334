"""The local cache: registrations and last answers of a replica in files that may be lost at any time.

Writes are atomic and happen off the event loop; files are private to the user, versioned and bounded in size.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog
from pydantic import TypeAdapter, ValidationError

from lagscale.store.registrations.load import Registrations

log = structlog.get_logger(__name__)

#: Incremented with every change of the files' format; a file of another version is ignored.
FORMAT_VERSION: Final = 2
REGISTRATIONS: Final = "registrations.json"
ANSWERS: Final = "answers.json"
FROZEN: Final = "frozen.json"
_MAX_BYTES: Final = 256 * 1024 * 1024
_ADAPTER: Final = TypeAdapter(Registrations)
_BINDINGS: Final = TypeAdapter(list[tuple[str, str, int]])


class LocalCache:
    """The scaler's folder in the cache directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, content: Mapping[str, Any]) -> bool:
        """Replace a file; False if that failed. Blocks: call it in a thread."""
        data = json.dumps({"format": FORMAT_VERSION, "content": content}, separators=(",", ":")).encode()
        if len(data) > _MAX_BYTES:
            log.warning("local_cache_file_too_large", file=name)
            return False
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # mkstemp creates the file for this user only; the rename replaces a complete file by a complete file.
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
            log.warning("local_cache_write_failed", file=name, reason=type(error).__name__)
            return False
        return True

    def read(self, name: str) -> Any:
        """A file's content; None when it is missing, damaged, too large, or of another format version."""
        try:
            path = self._folder / name
            if path.stat().st_size > _MAX_BYTES:
                log.warning("local_cache_file_too_large", file=name)
                return None
            document = json.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("local_cache_read_failed", file=name, reason=type(error).__name__)
            return None
        if not isinstance(document, dict) or document.get("format") != FORMAT_VERSION:
            log.info("local_cache_format_mismatch", file=name)
            return None
        return document.get("content")

    def write_registrations(self, registrations: Registrations) -> bool:
        """Store the registrations; False if that failed. Blocks: call it in a thread."""
        content = _ADAPTER.dump_python(replace(registrations, bindings={}), mode="json", exclude={"now_ms"})
        # JSON has no pairs as keys.
        content["bindings"] = [[*caller, tenant] for caller, tenant in registrations.bindings.items()]
        return self.write(REGISTRATIONS, content)

    def read_registrations(self) -> Registrations | None:
        """The registrations stored last; None without any."""
        content = self.read(REGISTRATIONS)
        if content is None:
            return None
        try:
            # A file without tenants or monitors is damaged: read as empty, it would answer that no monitor exists.
            required = {"tenants": content["tenants"], "monitors": content["monitors"]}
            bindings = _BINDINGS.validate_python(content["bindings"])
            cached = _ADAPTER.validate_python({**content, **required, "bindings": {}, "now_ms": None})
        except (ValidationError, KeyError, TypeError):
            log.warning("local_cache_read_failed", file=REGISTRATIONS, reason="ValidationError")
            return None
        return replace(cached, bindings={(instance, namespace): tenant for instance, namespace, tenant in bindings})
