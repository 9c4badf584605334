"""One monitor from the environment: registered once, however many services start at once."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from lagscale.errors import InvalidInput, SettingsInvalid, StoreUnavailable
from services.single_monitor import build_monitor_name, ensure_single_monitor

pytestmark = pytest.mark.integration

ENVIRON = {
    "KAFKA_BROKERS": "kafka-0:9092,kafka-1:9092", "KAFKA_TOPIC": "test-topic", "KAFKA_GROUP_ID": "sample-consumer-group",
    "LAG_THRESHOLD": "500", "SUSTAIN_SECONDS": "120", "SAMPLING_INTERVAL": "10", "WINDOW_SIZE": "30",
}  # fmt: skip


def rows(url: str, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return connection.execute(query).fetchall()


def register(url: str, environ: Mapping[str, str]) -> None:
    ensure_single_monitor(url, environ, tick_seconds=5.0)


def test_services_that_start_at_once_register_it_once(migrated_url: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(register, migrated_url, ENVIRON) for _ in range(4)]:
            done.result()
    [tenant] = rows(migrated_url, "select * from tenant")
    assert (tenant["name"], tenant["auto_register"]) == ("default", False)
    [cluster] = rows(migrated_url, "select * from cluster")
    assert (cluster["name"], cluster["bootstrap"]) == ("default", ["kafka-0:9092", "kafka-1:9092"])
    [monitor] = rows(migrated_url, "select * from monitor")
    assert (monitor["name"], monitor["topics"], monitor["version"]) == ("test-topic", ["test-topic"], 1)
    assert monitor["policy"] == {
        "lagThreshold": "500", "sustainSeconds": "120", "samplingInterval": "10", "windowSize": "30",
    }  # fmt: skip
    [binding] = rows(migrated_url, "select * from namespace_binding")
    assert (binding["instance"], binding["namespace"]) == ("default", "*")
    assert len(rows(migrated_url, "select * from lag_target")) == 1
    assert {row["actor"] for row in rows(migrated_url, "select actor from audit_event")} == {"environment"}


def test_a_changed_environment_changes_the_monitor_and_keeps_what_a_person_set(migrated_url: str) -> None:
    register(migrated_url, ENVIRON)
    with psycopg.connect(migrated_url) as connection:
        connection.execute("update tenant set auto_register = true")
        connection.execute('update cluster set security = \'{"protocol": "SSL"}\'')
    register(migrated_url, ENVIRON | {"LAG_THRESHOLD": "700", "KAFKA_BROKERS": "other:9092"})
    assert rows(migrated_url, "select auto_register from tenant") == [{"auto_register": True}]
    [cluster] = rows(migrated_url, "select bootstrap, security from cluster")
    assert cluster == {"bootstrap": ["other:9092"], "security": {"protocol": "SSL"}}
    [monitor] = rows(migrated_url, "select version, policy from monitor")
    assert (monitor["version"], monitor["policy"]["lagThreshold"]) == (2, "700")


def test_the_rules_of_the_tenant_count(migrated_url: str) -> None:
    register(migrated_url, ENVIRON)
    with psycopg.connect(migrated_url) as connection:
        connection.execute(
            """update tenant set policy_limits = '{"lagThreshold": {"max": "600"}}', version = version + 1,
            policy_defaults = '{"holdSeconds": "60"}'"""
        )
    with pytest.raises(InvalidInput, match="lagThreshold: is 700, and this tenant allows at most 600"):
        register(migrated_url, ENVIRON | {"LAG_THRESHOLD": "700"})
    register(migrated_url, ENVIRON | {"LAG_THRESHOLD": "600"})
    [monitor] = rows(migrated_url, "select policy, inherited from monitor")
    assert (monitor["policy"]["lagThreshold"], monitor["policy"]["holdSeconds"]) == ("600", "60")
    assert monitor["inherited"] == ["holdSeconds"]
    with psycopg.connect(migrated_url) as connection:
        connection.execute("""update tenant set policy_limits = '{"lagThreshold": {"max": "500"}}'""")
    # What is registered already keeps the services starting.
    register(migrated_url, ENVIRON | {"LAG_THRESHOLD": "600"})
    assert rows(migrated_url, "select policy, inherited from monitor") == [monitor]


def test_bindings_made_by_hand_stay(migrated_url: str) -> None:
    register(migrated_url, ENVIRON)
    with psycopg.connect(migrated_url) as connection:
        connection.execute("update namespace_binding set namespace = 'prod'")
    register(migrated_url, ENVIRON)
    assert [row["namespace"] for row in rows(migrated_url, "select namespace from namespace_binding")] == ["prod"]


def test_faults_are_told_before_the_database_is_asked() -> None:
    nowhere = "postgresql://nobody@127.0.0.1:1/none"
    with pytest.raises(SettingsInvalid, match="KAFKA_GROUP_ID"):
        register(nowhere, {name: text for name, text in ENVIRON.items() if name != "KAFKA_GROUP_ID"})
    with pytest.raises(InvalidInput, match="windowSize"):
        register(nowhere, ENVIRON | {"WINDOW_SIZE": "2"})
    with pytest.raises(StoreUnavailable):
        register(nowhere, ENVIRON)


def test_without_the_schema_the_store_is_unavailable(empty_url: str) -> None:
    with psycopg.connect(empty_url) as connection:
        present = connection.execute("select 1 from pg_roles where rolname = 'lagscale_api'").fetchone()
    # Roles belong to the whole server, so both ways of "not migrated" may be met here; both are to be waited for.
    assert present in {None, (1,)}
    with pytest.raises(StoreUnavailable):
        register(empty_url, ENVIRON)


@pytest.mark.parametrize(
    ("topic", "name"),
    [("test-topic", "test-topic"), ("Orders.v1_EU", "orders-v1-eu"), ("___", "default"), ("x" * 80, "x" * 63)],
)
def test_the_monitor_is_named_after_the_topic(topic: str, name: str) -> None:
    assert build_monitor_name(topic) == name
