"""Secrets at rest: sealed by the first key, opened by any, unreadable without."""

from __future__ import annotations

import pytest

from lagscale.errors import SecretsUnreadable, SettingsInvalid
from lagscale.store.encryption import SecretBox, generate_key

SECRETS = {"password": "canary-99", "key": "---"}


def test_what_is_sealed_opens_and_does_not_show() -> None:
    box = SecretBox(generate_key())
    sealed = box.seal(SECRETS)
    assert b"canary" not in sealed
    assert box.open(sealed) == SECRETS


def test_a_new_key_in_front_seals_and_the_old_one_still_opens() -> None:
    old, new = generate_key(), generate_key()
    sealed = SecretBox(old).seal(SECRETS)
    both = SecretBox(f"{new}, {old}")
    assert both.open(sealed) == SECRETS
    assert SecretBox(new).open(both.seal(SECRETS)) == SECRETS


@pytest.mark.parametrize("keys", ["", generate_key()], ids=["none", "another"])
def test_without_the_key_it_is_unreadable(keys: str) -> None:
    sealed = SecretBox(generate_key()).seal(SECRETS)
    with pytest.raises(SecretsUnreadable):
        SecretBox(keys).open(sealed)


@pytest.mark.parametrize("damaged", [b"", b"x", b"\xff\x00"])
def test_damage_is_unreadable(damaged: bytes) -> None:
    with pytest.raises(SecretsUnreadable):
        SecretBox(generate_key()).open(damaged)


def test_a_bad_key_is_named_by_its_place_not_its_value() -> None:
    with pytest.raises(SettingsInvalid, match="key 2 is no Fernet key") as caught:
        SecretBox(f"{generate_key()},canary")
    assert "canary" not in caught.value.message


def test_without_any_key_nothing_is_sealed() -> None:
    box = SecretBox(" ")
    assert not box.usable
    with pytest.raises(SettingsInvalid, match="LAGSCALE_SECRET_KEYS"):
        box.seal(SECRETS)
