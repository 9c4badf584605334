"""The registry's tables for SQLAlchemy. The migrations create them; a test compares the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.types import TypeEngine

from lagscale.domain.quotas import QUOTA_COLUMNS as QUOTAS
from lagscale.store.samples.columns import COLUMNS

metadata = MetaData()

_NOW = text("now()")
_INSTANT = TIMESTAMP(timezone=True)


def _id() -> Column[int]:
    return Column("id", Integer, Identity(always=True), primary_key=True)


def _uuid() -> Column[object]:
    return Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()"))


def _tenant(*, nullable: bool = False) -> Column[int]:
    return Column("tenant_id", Integer, nullable=nullable)


def _instant(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(name, _INSTANT, nullable=nullable, server_default=None if nullable else _NOW)


tenant = Table(
    "tenant",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("display_name", Text, nullable=False),
    Column("auto_register", Boolean, nullable=False),
    Column("min_sampling_seconds", Integer, nullable=False),
    Column("max_monitors", Integer, nullable=False),
    _instant("created_at"),
    Column("version", Integer, nullable=False),
    Column("policy_defaults", JSONB, nullable=False),
    Column("policy_limits", JSONB, nullable=False),
    Column("max_auto_monitors", Integer, nullable=False),
    Column("auto_expiry_days", Integer, nullable=False),
    *[Column(name, Integer, nullable=False) for name in QUOTAS.values() if name != "max_monitors"],
)

api_key = Table(
    "api_key",
    metadata,
    _uuid(),
    _tenant(nullable=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("prefix", Text, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    _instant("created_at"),
    _instant("expires_at", nullable=True),
    _instant("last_used_at", nullable=True),
    _instant("revoked_at", nullable=True),
    Column("replaced_by", Text),
)

namespace_binding = Table(
    "namespace_binding",
    metadata,
    _uuid(),
    _tenant(),
    Column("instance", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    _instant("created_at"),
)

cluster = Table(
    "cluster",
    metadata,
    _id(),
    _tenant(),
    Column("name", Text, nullable=False),
    Column("bootstrap", ARRAY(Text), nullable=False),
    Column("security", JSONB, nullable=False),
    Column("secrets", LargeBinary),
    _instant("created_at"),
    _instant("updated_at"),
    Column("version", Integer, nullable=False),
    Column("properties", JSONB, nullable=False),
    Column("secret_references", JSONB, nullable=False),
)

monitor = Table(
    "monitor",
    metadata,
    _id(),
    _tenant(),
    Column("name", Text, nullable=False),
    Column("cluster_id", Integer, nullable=False),
    Column("consumer_group", Text, nullable=False),
    Column("topics", ARRAY(Text)),
    Column("topic_pattern", Text),
    Column("isolation_level", Text, nullable=False),
    Column("partition_limitation", Text, nullable=False),
    Column("policy", JSONB, nullable=False),
    Column("sampling_ms", Integer, nullable=False),
    Column("stale_after_ms", Integer, nullable=False),
    Column("overridable", Boolean, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("auto_registered", Boolean, nullable=False),
    _instant("last_asked_at", nullable=True),
    _instant("created_at"),
    _instant("updated_at"),
    _instant("deleted_at", nullable=True),
    Column("version", Integer, nullable=False),
    Column("exclude_topics", ARRAY(Text), nullable=False),
    Column("inherited", ARRAY(Text), nullable=False),
    Column("registered_by", JSONB(none_as_null=True)),
)

monitor_version = Table(
    "monitor_version",
    metadata,
    Column("monitor_id", Integer, primary_key=True),
    _tenant(),
    Column("version", Integer, primary_key=True),
    _instant("valid_from"),
    Column("policy", JSONB, nullable=False),
)

lag_target = Table(
    "lag_target",
    metadata,
    _id(),
    _tenant(),
    Column("cluster_id", Integer, nullable=False),
    Column("consumer_group", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("isolation_level", Text, nullable=False),
    Column("partition_limitation", Text, nullable=False),
    Column("topic_id", Text),
    Column("epoch", Integer, nullable=False),
    _instant("created_at"),
)

monitor_target = Table(
    "monitor_target",
    metadata,
    Column("monitor_id", Integer, primary_key=True),
    Column("target_id", Integer, primary_key=True),
    _tenant(),
    _instant("absent_at", nullable=True),
)

monitor_scope = Table(
    "monitor_scope",
    metadata,
    Column("monitor_id", Integer, primary_key=True),
    _tenant(),
    Column("monitor_version", Integer, nullable=False),
    _instant("resolved_at", nullable=True),
    Column("matched", Integer, nullable=False),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("since", _INSTANT, nullable=False),
    Column("seen_at", _INSTANT, nullable=False),
)

monitor_target_span = Table(
    "monitor_target_span",
    metadata,
    Column("monitor_id", Integer, primary_key=True),
    Column("target_id", Integer, primary_key=True),
    _tenant(),
    Column("since", _INSTANT, primary_key=True, server_default=_NOW),
    _instant("until", nullable=True),
)

cluster_state = Table(
    "cluster_state",
    metadata,
    Column("cluster_id", Integer, primary_key=True),
    _tenant(),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("since", _INSTANT, nullable=False),
    Column("seen_at", _INSTANT, nullable=False),
)

target_state = Table(
    "target_state",
    metadata,
    Column("target_id", Integer, primary_key=True),
    _tenant(),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("since", _INSTANT, nullable=False),
    Column("seen_at", _INSTANT, nullable=False),
    Column("partitions", Integer),
)

decision = Table(
    "decision",
    metadata,
    Column("told_at", _INSTANT, primary_key=True),
    _tenant(),
    Column("monitor_id", Integer, primary_key=True),
    Column("replica", Text, primary_key=True),
    Column("snapshot_at", _INSTANT),
    Column("verdict", Text, nullable=False),
    Column("value", Double),
    Column("active", Boolean),
    Column("held", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("code", Text, nullable=False),
    Column("version", Integer),
    Column("overrides", JSONB(none_as_null=True)),
)

audit_event = Table(
    "audit_event",
    metadata,
    _uuid(),
    _instant("at"),
    _tenant(nullable=True),
    Column("actor", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("object", Text, nullable=False),
    Column("before", JSONB(none_as_null=True)),
    Column("after", JSONB(none_as_null=True)),
    Column("origin", Text),
)

freeze = Table(
    "scaling_freeze",
    metadata,
    _uuid(),
    _tenant(),
    Column("cluster_id", Integer),
    Column("monitor_id", Integer),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    _instant("since"),
    Column("until", _INSTANT, nullable=False),
)

#: The scaler writes it.
frozen_answer = Table(
    "frozen_answer",
    metadata,
    Column("freeze_id", Uuid, primary_key=True),
    Column("monitor_id", Integer, primary_key=True),
    Column("overrides", Text, primary_key=True),
    _tenant(),
    Column("since", _INSTANT, nullable=False),
    Column("known_at", _INSTANT),
    Column("value", Double),
    Column("active", Boolean),
)

samples_kept = Table(
    "samples_kept",
    metadata,
    Column("only_row", Boolean, primary_key=True, server_default=text("true")),
    _instant("kept_since", nullable=True),
)

_SAMPLE_TYPES: Mapping[str, TypeEngine[Any]] = {
    "timestamptz": _INSTANT,
    "int": Integer(),
    "bigint": BigInteger(),
    "smallint": SmallInteger(),
}


def _sample_column(name: str, kind: str) -> Column[Any]:
    scalar: TypeEngine[Any] = _SAMPLE_TYPES[kind.removesuffix("[]")]
    return Column(name, ARRAY(scalar) if kind.endswith("[]") else scalar)


#: A view that shows the set tenant's rows only; nothing is written through it.
tenant_lag_sample = Table(
    "tenant_lag_sample", MetaData(), *[_sample_column(name, kind) for name, kind in COLUMNS.items()]
)
