"""References to secrets that stand outside the database: what they may be called, and which variable one means.

A reference is `{"file": NAME}`, a file under the tenant's own directory, or `{"env": NAME}`, a variable with the
tenant's own prefix. `credentials.py` reads them where the clusters are asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

#: The beginning of every tenant's variables; no setting of Lagscale begins so.
TENANT_VARIABLE_PREFIX = "LAGSCALE_TENANT_"
_MAX_PATH_PARTS = 4
_PATH_PART = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,252}", re.ASCII)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecretReference:
    """Where a secret stands: `kind` is `file` or `env`."""

    kind: str
    name: str

    @classmethod
    def read(cls, given: object) -> SecretReference:
        """From its stored or given form.

        Raises:
            ValueError: it is none; the text says what it must be.
        """
        if not isinstance(given, Mapping) or len(given) != 1 or not given.keys() <= {"file", "env"}:
            raise ValueError('must be a text, {"file": "NAME"} or {"env": "NAME"}')
        ((kind, name),) = given.items()
        if not isinstance(name, str):
            raise ValueError(f"the name of `{kind}` must be a text")
        if kind == "file":
            path_parts = name.split("/")
            if len(path_parts) > _MAX_PATH_PARTS or not all(_PATH_PART.fullmatch(step) for step in path_parts):
                raise ValueError(
                    "a file is named below the tenant's directory: names of letters, digits, `.`, `_` and `-` that do "
                    f"not begin with a dot, at most {_MAX_PATH_PARTS} by `/`"
                )
        elif name.startswith(TENANT_VARIABLE_PREFIX) or len(name) > 200 or not _VARIABLE.fullmatch(name):
            raise ValueError(
                "a variable is named without its prefix: capitals and digits by single underscores, as KAFKA_PASSWORD"
            )
        return cls(str(kind), name)

    def to_stored(self) -> dict[str, str]:
        """Its stored form."""
        return {self.kind: self.name}


def build_variable_name(tenant: str, name: str) -> str:
    """The variable that a tenant's reference means.

    Two underscores end the tenant: neither a tenant's name ends with a hyphen nor a variable's begins with or holds
    two underscores, so `shop` and `shop-eu` have no variable in common.
    """
    return f"{TENANT_VARIABLE_PREFIX}{tenant.upper().replace('-', '_')}__{name}"
