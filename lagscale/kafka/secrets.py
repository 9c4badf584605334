"""A cluster's secrets as they are now: those that were sealed, and those that a reference leads to.

Files and variables are read at each call, so that a rotated secret counts from the next poll on.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lagscale.domain.tenancy import is_name
from lagscale.errors import SecretReferenceBroken
from lagscale.kafka import safe_open
from lagscale.kafka.secret_references import SecretReference, build_variable_name
from lagscale.kafka.security import display_name

#: Bytes; a chain of certificates fits.
MAX_SECRET_BYTES = 65_536
_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "there is no such file",
    errno.EISDIR: "it is a directory",
    errno.EINVAL: "it is no plain file",
    errno.EFBIG: f"it is larger than {MAX_SECRET_BYTES} bytes",
    errno.EXDEV: "it leads out of the tenant's directory",
    errno.ELOOP: "it leads out of the tenant's directory",
    errno.EACCES: "it may not be read",
    errno.EPERM: "it may not be read",
}


@dataclass(frozen=True, slots=True)
class SecretSources:
    """Where tenants' secrets stand outside the database.

    Attributes:
        directory: holds one directory for each tenant; None when there is none.
        variables: the environment; other names than those with a tenant's prefix are never read.
    """

    directory: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def resolve_secrets(
    tenant: str, decrypted: Mapping[str, str], references: Mapping[str, object], secret_sources: SecretSources
) -> dict[str, str]:
    """All secrets of a cluster.

    Args:
        tenant: the name of its tenant.
        decrypted: what was decrypted.
        references: canonical names -> stored references; they count before what was sealed.
        secret_sources: where to look.

    Raises:
        SecretReferenceBroken: one of them leads to nothing that can be used; the text names it, and no path.
    """
    if references and not is_name(tenant):
        # Without a name the directory of all tenants would be its own.
        raise SecretReferenceBroken
    found = dict(decrypted)
    for name, given in references.items():
        try:
            reference = SecretReference.read(given)
            text = (
                _read_file(tenant, reference.name, secret_sources)
                if reference.kind == "file"
                else _read_variable(tenant, reference.name, secret_sources)
            )
        except ValueError as wrong:
            raise SecretReferenceBroken(f"{display_name(name)}: {wrong}") from wrong
        found[name] = text
    return found


def _read_variable(tenant: str, name: str, secret_sources: SecretSources) -> str:
    text = secret_sources.variables.get(build_variable_name(tenant, name))
    if not text:
        raise ValueError("there is no such variable, or it is empty")
    return text


def _read_file(tenant: str, name: str, secret_sources: SecretSources) -> str:
    if secret_sources.directory is None:
        raise ValueError("this system has no LAGSCALE_SECRET_DIR")
    try:
        top = os.open(secret_sources.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            tenant_directory = safe_open.open_directory(top, tenant)
        finally:
            os.close(top)
        try:
            content = safe_open.read(tenant_directory, name, MAX_SECRET_BYTES)
        finally:
            os.close(tenant_directory)
    except OSError as wrong:
        raise ValueError(_REASONS.get(wrong.errno or 0, "it cannot be read")) from wrong
    return _decode_secret(content)


def _decode_secret(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        # Without the cause: it would hold the content.
        raise ValueError("it is no text in UTF-8") from None
    # Editors end a file with a new line, and no password does.
    text = text.removesuffix("\n").removesuffix("\r")
    if not text or "\0" in text:
        raise ValueError("it is empty" if not text else "it is no text in UTF-8")
    return text
