"""Clusters' secrets at rest: Fernet with a set of keys. The API seals, the scraper opens."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from lagscale.errors import FieldError, SecretsUnreadable, SettingsInvalid

_VARIABLE = "LAGSCALE_SECRET_KEYS"


def generate_key() -> str:
    """A new key, fit for `LAGSCALE_SECRET_KEYS`."""
    return Fernet.generate_key().decode("ascii")


class Keyring:
    """Seals and opens small maps of secrets.

    The first key seals, every key opens: put a new key in front and drop the old one when all is sealed anew.
    """

    def __init__(self, keys: str) -> None:
        """Read a comma list of keys; an empty one makes a box that neither seals nor opens.

        Raises:
            SettingsInvalid: a key is no Fernet key; the text names its place, not its value.
        """
        fernets: list[Fernet] = []
        for place, key in enumerate((part.strip() for part in keys.split(",") if part.strip()), start=1):
            try:
                fernets.append(Fernet(key))
            except ValueError:
                field_error = FieldError(
                    _VARIABLE, f"key {place} is no Fernet key; make one with `lagscale keys generate`"
                )
                raise SettingsInvalid(str(field_error), field_errors=[field_error]) from None
        self._fernet = MultiFernet(fernets) if fernets else None
        self._first = fernets[0] if fernets else None

    @property
    def usable(self) -> bool:
        """Whether there is a key at all."""
        return self._fernet is not None

    def encrypt(self, secrets: Mapping[str, str]) -> bytes:
        """Encrypt the secrets.

        Raises:
            SettingsInvalid: there is no key.
        """
        if self._fernet is None:
            field_error = FieldError(
                _VARIABLE, "must be set before secrets can be stored; `lagscale keys generate` makes a key"
            )
            raise SettingsInvalid(str(field_error), field_errors=[field_error])
        return self._fernet.encrypt(json.dumps(dict(secrets), sort_keys=True).encode())

    def uses_first_key(self, encrypted: bytes) -> bool:
        """Whether the first key has sealed it."""
        try:
            return self._first is not None and self._first.decrypt(bytes(encrypted)) is not None
        except InvalidToken:
            return False

    def reencrypt(self, encrypted: bytes) -> bytes:
        """The same secrets, sealed by the first key.

        Raises:
            SecretsUnreadable: no present key wrote it, or it is damaged.
        """
        if self._fernet is None:
            raise SecretsUnreadable
        try:
            return self._fernet.rotate(bytes(encrypted))
        except InvalidToken as wrong:
            raise SecretsUnreadable from wrong

    def decrypt(self, encrypted: bytes) -> dict[str, str]:
        """Decrypt what `encrypt` made.

        Raises:
            SecretsUnreadable: no present key wrote it, or it is damaged.
        """
        if self._fernet is None:
            raise SecretsUnreadable
        try:
            return {str(name): str(value) for name, value in json.loads(self._fernet.decrypt(bytes(encrypted))).items()}
        except (InvalidToken, ValueError, AttributeError) as wrong:
            raise SecretsUnreadable from wrong
