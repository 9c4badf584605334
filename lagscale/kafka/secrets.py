"""Secrets of a cluster: decrypted ones from the database, and referenced ones from files and variables.

A reference is `{"file": NAME}`, a file in the tenant's own directory, or `{"env": NAME}`, a variable with the tenant's
own prefix. Both are read at each call, so that a rotated secret takes effect at the next poll.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagscale.domain.tenancy import is_name
from lagscale.errors import SecretReferenceBroken
from lagscale.kafka import safe_open
from lagscale.kafka.security import display_name

#: Prefix of the variables of all tenants; no setting of Lagscale has it.
TENANT_VARIABLE_PREFIX = "LAGSCALE_TENANT_"
_MAX_PATH_PARTS = 4
_PATH_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}", re.ASCII)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", re.ASCII)
#: Enough for a certificate chain.
MAX_SECRET_BYTES = 65_536
_REASONS = {
    errno.ENOENT: "file not found",
    errno.ENOTDIR: "file not found",
    errno.EISDIR: "is a directory",
    errno.EINVAL: "not a regular file",
    errno.EFBIG: f"larger than {MAX_SECRET_BYTES} bytes",
    errno.EXDEV: "outside the tenant's directory",
    errno.ELOOP: "outside the tenant's directory",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
}


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a secret is stored: `kind` is `file` or `env`."""

    kind: str
    name: str

    @classmethod
    def parse(cls, given: object) -> SecretReference:
        """Parse the form that is stored and sent.

        Raises:
            ValueError: invalid; the text says what it must be.
        """
        if not isinstance(given, Mapping) or len(given) != 1 or not given.keys() <= {"file", "env"}:
            raise ValueError('must be a string, {"file": "NAME"} or {"env": "NAME"}')
        ((kind, name),) = given.items()
        if not isinstance(name, str):
            raise ValueError(f"the name of `{kind}` must be a string")
        if kind == "file":
            path_parts = name.split("/")
            if len(path_parts) > _MAX_PATH_PARTS or not all(_PATH_PART.fullmatch(step) for step in path_parts):
                raise ValueError(
                    "a file is a path relative to the tenant's directory: names of letters, digits, `.`, `_` and `-` "
                    f"that do not begin with a dot, at most {_MAX_PATH_PARTS} separated by `/`"
                )
        elif name.startswith(TENANT_VARIABLE_PREFIX) or len(name) > 200 or not _VARIABLE.fullmatch(name):
            raise ValueError(
                "a variable is named without its prefix: uppercase letters and digits separated by single underscores, for "
                "example KAFKA_PASSWORD"
            )
        return cls(str(kind), name)

    def to_stored(self) -> dict[str, str]:
        """The stored form."""
        return {self.kind: self.name}


def build_variable_name(tenant: str, name: str) -> str:
    """The full name of a variable that a tenant refers to.

    Two underscores end the tenant: a tenant's name does not end with a hyphen, and a variable's has no two underscores
    in a row, so `shop` and `shop-eu` have no variable in common.
    """
    return f"{TENANT_VARIABLE_PREFIX}{tenant.upper().replace('-', '_')}__{name}"


@dataclass(frozen=True, slots=True)
class SecretSources:
    """Secrets of tenants outside the database: subdirectories, one per tenant, and environment variables."""

    directory: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def resolve_secrets(
    tenant: str, decrypted: Mapping[str, str], references: Mapping[str, object], secret_sources: SecretSources
) -> dict[str, str]:
    """All secrets of a cluster by canonical name; references override those from the database.

    Raises:
        SecretReferenceBroken: a reference cannot be resolved; the text names it, but no path.
    """
    if references and not is_name(tenant):
        # With an empty name, the directory of all tenants would be its own.
        raise SecretReferenceBroken
    found = dict(decrypted)
    for name, given in references.items():
        try:
            reference = SecretReference.parse(given)
            read = _read_file if reference.kind == "file" else _read_variable
            found[name] = read(tenant, reference.name, secret_sources)
        except ValueError as wrong:
            raise SecretReferenceBroken(f"{display_name(name)}: {wrong}") from wrong
    return found


def _read_variable(tenant: str, name: str, secret_sources: SecretSources) -> str:
    text = secret_sources.variables.get(build_variable_name(tenant, name))
    if not text:
        raise ValueError("variable not set, or empty")
    return text


def _read_file(tenant: str, name: str, secret_sources: SecretSources) -> str:
    if secret_sources.directory is None:
        raise ValueError("LAGSCALE_SECRET_DIR is not set")
    try:
        top = os.open(secret_sources.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            tenant_directory = safe_open.open_directory(top, tenant)
        finally:
            os.close(top)
        try:
            content = safe_open.read_file(tenant_directory, name, MAX_SECRET_BYTES)
        finally:
            os.close(tenant_directory)
    except OSError as wrong:
        raise ValueError(_REASONS.get(wrong.errno or 0, "cannot be read")) from wrong
    return _decode_secret(content)


def _decode_secret(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        # Without the cause, which would contain the secret.
        raise ValueError("not valid UTF-8 text") from None
    # Editors end a file with a newline, and no password does.
    text = text.removesuffix("\n").removesuffix("\r")
    if not text or "\0" in text:
        raise ValueError("is empty" if not text else "not valid UTF-8 text")
    return text
