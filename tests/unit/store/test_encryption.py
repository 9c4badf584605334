"""Secrets at rest: sealed by the first key, opened by any, unreadable without."""

from __future__ import annotations

import pytest

from lagscale.errors import SecretsUnreadable, SettingsInvalid
from lagscale.store.encryption import Keyring, generate_key

SECRETS = {"password": "canary-99", "key": "---"}


def test_what_is_sealed_opens_and_does_not_show() -> None:
    keyring = Keyring(generate_key())
    encrypted = keyring.encrypt(SECRETS)
    assert b"canary" not in encrypted
    assert keyring.decrypt(encrypted) == SECRETS


def test_a_new_key_in_front_seals_and_the_old_one_still_opens() -> None:
    old, new = generate_key(), generate_key()
    encrypted = Keyring(old).encrypt(SECRETS)
    both = Keyring(f"{new}, {old}")
    assert both.decrypt(encrypted) == SECRETS
    assert Keyring(new).decrypt(both.encrypt(SECRETS)) == SECRETS


@pytest.mark.parametrize("keys", ["", generate_key()], ids=["none", "another"])
def test_without_the_key_it_is_unreadable(keys: str) -> None:
    encrypted = Keyring(generate_key()).encrypt(SECRETS)
    with pytest.raises(SecretsUnreadable):
        Keyring(keys).decrypt(encrypted)


@pytest.mark.parametrize("damaged", [b"", b"x", b"\xff\x00"])
def test_damage_is_unreadable(damaged: bytes) -> None:
    with pytest.raises(SecretsUnreadable):
        Keyring(generate_key()).decrypt(damaged)


def test_a_bad_key_is_named_by_its_place_not_its_value() -> None:
    with pytest.raises(SettingsInvalid, match="key 2 is not a Fernet key") as caught:
        Keyring(f"{generate_key()},canary")
    assert "canary" not in caught.value.message


def test_without_any_key_nothing_is_sealed() -> None:
    keyring = Keyring(" ")
    assert not keyring.usable
    with pytest.raises(SettingsInvalid, match="LAGSCALE_SECRET_KEYS"):
        keyring.encrypt(SECRETS)
