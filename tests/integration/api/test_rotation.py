"""`lagscale secrets rotate`: all is sealed by the newest key, also after an interruption, twice, and two at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from lagscale.errors import SecretsUnreadable, SettingsInvalid
from lagscale.store.encryption import Keyring, generate_key
from lagscale.store.registry import clusters as registered_clusters
from lagscale.store.registry.clusters import REENCRYPTION_ACTOR, ReencryptionProgress, reencrypt_all
from lagscale.store.registry.session import RegistryDatabase
from services.cli import __main__ as cli
from services.cli.exits import EXIT_CODES

pytestmark = pytest.mark.integration

CANARY = "canary-of-a-password"
OLD, NEW = generate_key(), generate_key()
BOTH = Keyring(f"{NEW},{OLD}")


@pytest.fixture
def owner(migrated_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Five clusters of two tenants with secrets of the old key, and one without."""
    with psycopg.connect(migrated_url, autocommit=True) as connection:
        for tenant, count in (("shop", 3), ("shop-eu", 2)):
            number = connection.execute("insert into tenant (name) values (%s) returning id", [tenant]).fetchone()
            assert number is not None
            for n in range(count):
                reencrypted = Keyring(OLD).encrypt({"password": f"{CANARY}-{tenant}-{n}"})
                insert(connection, number[0], f"c-{n}", reencrypted)
        insert(connection, number[0], "bare", None)
        yield connection


def insert(connection: psycopg.Connection[Any], tenant: int, name: str, reencrypted: bytes | None) -> None:
    connection.execute(
        "insert into cluster (tenant_id, name, bootstrap, secrets) values (%s, %s, '{k:1}', %s)",
        [tenant, name, reencrypted],
    )


@pytest.fixture
async def registry(migrated_url: str) -> AsyncIterator[RegistryDatabase]:
    made = RegistryDatabase(migrated_url, size=2)
    yield made
    await made.close()


def opened(connection: psycopg.Connection[Any], keys: str) -> list[str]:
    """The passwords that these keys open, in order."""
    keyring = Keyring(keys)
    rows = connection.execute("select secrets from cluster where secrets is not null order by id").fetchall()
    return [keyring.decrypt(row[0])["password"] for row in rows if keyring.uses_first_key(row[0])]


PASSWORDS = [f"{CANARY}-shop-{n}" for n in range(3)] + [f"{CANARY}-shop-eu-{n}" for n in range(2)]


async def test_everything_is_sealed_by_the_newest_key_and_stays_the_same(
    registry: RegistryDatabase, owner: psycopg.Connection[Any]
) -> None:
    processed: list[tuple[int, int]] = []
    done = await reencrypt_all(registry, BOTH, lambda so_far: processed.append((so_far.processed, so_far.total)))
    assert (done.reencrypted, done.current, done.unreadable) == (5, 0, [])
    assert processed == [(0, 5), (5, 5)]
    assert opened(owner, NEW) == PASSWORDS
    assert owner.execute("select count(*) from cluster where version <> 1").fetchone() == (0,)
    assert owner.execute("select count(*) from cluster where secrets is null").fetchone() == (1,)
    # Again there is nothing to do, and nothing is told.
    again = await reencrypt_all(registry, BOTH)
    assert (again.reencrypted, again.current) == (0, 5)
    rows = owner.execute("select actor, object, after from audit_event where action = 'secrets.rotate'").fetchall()
    clusters = ["shop/c-0", "shop/c-1", "shop/c-2", "shop-eu/c-0", "shop-eu/c-1"]
    assert rows == [(REENCRYPTION_ACTOR, "secrets", {"clusters": clusters})]
    assert CANARY not in json.dumps([row[2] for row in rows])


async def test_an_interrupted_run_keeps_what_it_has_done_and_the_next_one_does_the_rest(
    registry: RegistryDatabase, owner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered_clusters, "_REENCRYPTION_BATCH", 2)

    def interrupt(done: ReencryptionProgress) -> None:
        if done.processed:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await reencrypt_all(registry, BOTH, interrupt)
    assert opened(owner, NEW) == PASSWORDS[:2]
    done = await reencrypt_all(registry, BOTH)
    assert (done.reencrypted, done.current) == (3, 2)
    assert opened(owner, NEW) == PASSWORDS


async def test_two_runs_at_once_seal_each_secret_once(
    registry: RegistryDatabase, owner: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered_clusters, "_REENCRYPTION_BATCH", 1)
    one, other = await asyncio.gather(reencrypt_all(registry, BOTH), reencrypt_all(registry, BOTH))
    assert one.reencrypted + other.reencrypted == 5
    assert one.processed == other.processed == 5
    assert opened(owner, NEW) == PASSWORDS


async def test_what_no_key_opens_is_named_and_left_and_the_others_are_sealed(
    registry: RegistryDatabase, owner: psycopg.Connection[Any]
) -> None:
    lost = Keyring(generate_key()).encrypt({"password": CANARY})
    owner.execute("update cluster set secrets = %s where name = 'c-1'", [lost])
    done = await reencrypt_all(registry, BOTH)
    assert (done.reencrypted, done.unreadable) == (3, ["shop/c-1", "shop-eu/c-1"])
    kept = owner.execute("select secrets from cluster where name = 'c-1'").fetchall()
    assert {row[0] for row in kept} == {lost}


async def test_without_a_key_nothing_is_touched(registry: RegistryDatabase, owner: psycopg.Connection[Any]) -> None:
    with pytest.raises(SettingsInvalid, match="LAGSCALE_SECRET_KEYS"):
        await reencrypt_all(registry, Keyring(""))
    assert opened(owner, OLD) == PASSWORDS


def test_the_command_says_what_it_did_and_fails_on_what_it_could_not(
    owner: psycopg.Connection[Any],
    migrated_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("LAGSCALE_DATABASE_URL", migrated_url)
    monkeypatch.setenv("LAGSCALE_SECRET_KEYS", f"{NEW},{OLD}")
    monkeypatch.setattr("sys.argv", ["lagscale", "secrets", "rotate"])
    # The logging of this process is the test run's.
    monkeypatch.setattr(cli, "configure_logging", lambda *_, **__: None)
    assert cli.main() == 0
    assert "5 re-encrypted, 0 already up to date." in capsys.readouterr().out
    monkeypatch.setenv("LAGSCALE_SECRET_KEYS", generate_key())
    assert cli.main() == EXIT_CODES[SecretsUnreadable] == 9
    said = capsys.readouterr()
    assert "shop/c-0, shop/c-1" in said.err
    assert CANARY not in said.out + said.err
