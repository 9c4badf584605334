"""Encryption of clusters' secrets at rest: Fernet with a list of keys. The API encrypts, the scraper decrypts."""

from __future__ import annotations

import json
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from lagscale.errors import FieldError, SecretsUnreadable, SettingsInvalid


def generate_key() -> str:
    """A new key for `LAGSCALE_SECRET_KEYS`."""
    return Fernet.generate_key().decode("ascii")


class Keyring:
    """Encrypts and decrypts small maps of secrets.

    The first key encrypts, every key decrypts: prepend a new key, re-encrypt everything, and then drop the old one.
    """

    def __init__(self, keys: str) -> None:
        """Parse comma-separated keys; with none, the keyring neither encrypts nor decrypts.

        Raises:
            SettingsInvalid: a key is not a Fernet key; the text names its position, not its value.
        """
        fernets: list[Fernet] = []
        for place, key in enumerate((part.strip() for part in keys.split(",") if part.strip()), start=1):
            try:
                fernets.append(Fernet(key))
            except ValueError:
                raise _build_error(
                    f"key {place} is not a Fernet key; generate one with `lagscale keys generate`"
                ) from None
        self._fernet = MultiFernet(fernets) if fernets else None
        self._first = fernets[0] if fernets else None

    @property
    def usable(self) -> bool:
        """Whether there is a key."""
        return self._fernet is not None

    def encrypt(self, secrets: Mapping[str, str]) -> bytes:
        """Encrypt the secrets.

        Raises:
            SettingsInvalid: there is no key.
        """
        if self._fernet is None:
            raise _build_error("must be set before secrets can be stored; generate a key with `lagscale keys generate`")
        return self._fernet.encrypt(json.dumps(dict(secrets), sort_keys=True).encode())

    def uses_first_key(self, encrypted: bytes) -> bool:
        """Whether the first key encrypted it."""
        try:
            return self._first is not None and self._first.decrypt(bytes(encrypted)) is not None
        except InvalidToken:
            return False

    def reencrypt(self, encrypted: bytes) -> bytes:
        """The same secrets, encrypted by the first key.

        Raises:
            SecretsUnreadable: none of the keys encrypted it, or it is damaged.
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
            SecretsUnreadable: none of the keys encrypted it, or it is damaged.
        """
        if self._fernet is None:
            raise SecretsUnreadable
        try:
            return {str(name): str(value) for name, value in json.loads(self._fernet.decrypt(bytes(encrypted))).items()}
        except (InvalidToken, ValueError, AttributeError) as wrong:
            raise SecretsUnreadable from wrong


def _build_error(text: str) -> SettingsInvalid:
    field_error = FieldError("LAGSCALE_SECRET_KEYS", text)
    return SettingsInvalid(str(field_error), field_errors=[field_error])
