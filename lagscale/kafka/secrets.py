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
from lagscale.kafka.secret_references import Reference, variable
from lagscale.kafka.security import shown

#: Bytes; a chain of certificates fits.
MOST = 65_536
_REASONS = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "there is no such file",
    errno.EISDIR: "it is a directory",
    errno.EINVAL: "it is no plain file",
    errno.EFBIG: f"it is larger than {MOST} bytes",
    errno.EXDEV: "it leads out of the tenant's directory",
    errno.ELOOP: "it leads out of the tenant's directory",
    errno.EACCES: "it may not be read",
    errno.EPERM: "it may not be read",
}


@dataclass(frozen=True, slots=True)
class Outside:
    """Where tenants' secrets stand outside the database.

    Attributes:
        directory: holds one directory for each tenant; None when there is none.
        variables: the environment; other names than those with a tenant's prefix are never read.
    """

    directory: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def resolved(
    tenant: str, sealed: Mapping[str, str], references: Mapping[str, object], outside: Outside
) -> dict[str, str]:
    """All secrets of a cluster.

    Args:
        tenant: the name of its tenant.
        sealed: what was decrypted.
        references: canonical names -> stored references; they count before what was sealed.
        outside: where to look.

    Raises:
        SecretReferenceBroken: one of them leads to nothing that can be used; the text names it, and no path.
    """
    if references and not is_name(tenant):
        # Without a name the directory of all tenants would be its own.
        raise SecretReferenceBroken
    found = dict(sealed)
    for name, given in references.items():
        try:
            reference = Reference.read(given)
            text = (
                _file(tenant, reference.name, outside)
                if reference.kind == "file"
                else _variable(tenant, reference.name, outside)
            )
        except ValueError as wrong:
            raise SecretReferenceBroken(f"{shown(name)}: {wrong}") from wrong
        found[name] = text
    return found


def _variable(tenant: str, name: str, outside: Outside) -> str:
    text = outside.variables.get(variable(tenant, name))
    if not text:
        raise ValueError("there is no such variable, or it is empty")
    return text


def _file(tenant: str, name: str, outside: Outside) -> str:
    if outside.directory is None:
        raise ValueError("this system has no LAGSCALE_SECRET_DIRECTORY")
    try:
        top = os.open(outside.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            mine = safe_open.open_directory(top, tenant)
        finally:
            os.close(top)
        try:
            content = safe_open.read(mine, name, MOST)
        finally:
            os.close(mine)
    except OSError as wrong:
        raise ValueError(_REASONS.get(wrong.errno or 0, "it cannot be read")) from wrong
    return _text(content)


def _text(content: bytes) -> str:
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
