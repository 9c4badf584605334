"""The registry's tables for SQLAlchemy. The migrations create them; a test compares the two."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.types import TypeEngine

from lagscale.domain.quotas import QUOTA_COLUMNS
from lagscale.store.samples.columns import COLUMNS

metadata = sa.MetaData()

_TYPES: Mapping[str, TypeEngine[Any]] = {
    "bigint": sa.BigInteger(),
    "boolean": sa.Boolean(),
    "bytea": sa.LargeBinary(),
    "float8": sa.Double(),
    "int": sa.Integer(),
    "jsonb": JSONB(none_as_null=True),
    "smallint": sa.SmallInteger(),
    "text": sa.Text(),
    "timestamptz": TIMESTAMP(timezone=True),
    "uuid": sa.Uuid(),
}
_DEFAULTS = {"now": sa.text("now()"), "random": sa.text("gen_random_uuid()"), "true": sa.text("true")}


def _column(name: str, kind: str, *marks: str) -> sa.Column[Any]:
    scalar = _TYPES[kind.removesuffix("[]")]
    return sa.Column(
        name,
        sa.ARRAY(scalar) if kind.endswith("[]") else scalar,
        *[sa.Identity(always=True) for mark in marks if mark == "identity"],
        primary_key="key" in marks,
        nullable="null" in marks,
        server_default=next((_DEFAULTS[mark] for mark in marks if mark in _DEFAULTS), None),
    )


def _table(name: str, columns: str) -> sa.Table:
    """A table of `name type marks`, comma-separated: `null`, `key` of the primary key, `identity`, or a default."""
    return sa.Table(name, metadata, *[_column(*column.split()) for column in columns.split(",")])


tenant = _table(
    "tenant",
    """
    id int key identity, name text, display_name text, auto_register boolean, min_sampling_seconds int,
    created_at timestamptz now, version int, policy_defaults jsonb, policy_limits jsonb, max_auto_monitors int,
    auto_expiry_days int,
    """
    + ", ".join(f"{column} int" for column in QUOTA_COLUMNS.values()),
)
api_key = _table(
    "api_key",
    """
    id uuid key random, tenant_id int null, name text, role text, prefix text, digest bytea,
    created_at timestamptz now, expires_at timestamptz null, last_used_at timestamptz null,
    revoked_at timestamptz null, replaced_by text null
    """,
)
namespace_binding = _table(
    "namespace_binding",
    "id uuid key random, tenant_id int, instance text, namespace text, created_at timestamptz now",
)
cluster = _table(
    "cluster",
    """
    id int key identity, tenant_id int, name text, bootstrap text[], security jsonb, secrets bytea null,
    created_at timestamptz now, updated_at timestamptz now, version int, properties jsonb, secret_references jsonb
    """,
)
monitor = _table(
    "monitor",
    """
    id int key identity, tenant_id int, name text, cluster_id int, consumer_group text, topics text[] null,
    topic_pattern text null, isolation_level text, partition_limitation text, policy jsonb, sampling_ms int,
    stale_after_ms int, overridable boolean, content_hash text, auto_registered boolean,
    last_asked_at timestamptz null, created_at timestamptz now, updated_at timestamptz now,
    deleted_at timestamptz null, version int, exclude_topics text[], inherited text[], registered_by jsonb null
    """,
)
monitor_version = _table(
    "monitor_version",
    "monitor_id int key, tenant_id int, version int key, valid_from timestamptz now, policy jsonb",
)
lag_target = _table(
    "lag_target",
    """
    id int key identity, tenant_id int, cluster_id int, consumer_group text, topic text, isolation_level text,
    partition_limitation text, topic_id text null, epoch int, created_at timestamptz now
    """,
)
monitor_target = _table(
    "monitor_target", "monitor_id int key, target_id int key, tenant_id int, absent_at timestamptz null"
)
monitor_scope = _table(
    "monitor_scope",
    """
    monitor_id int key, tenant_id int, monitor_version int, resolved_at timestamptz null, matched int, code text,
    message text, since timestamptz, seen_at timestamptz
    """,
)
monitor_target_span = _table(
    "monitor_target_span",
    "monitor_id int key, target_id int key, tenant_id int, since timestamptz key now, until timestamptz null",
)
cluster_state = _table(
    "cluster_state",
    "cluster_id int key, tenant_id int, code text, message text, since timestamptz, seen_at timestamptz",
)
target_state = _table(
    "target_state",
    """
    target_id int key, tenant_id int, code text, message text, since timestamptz, seen_at timestamptz,
    partitions int null, unstable jsonb null
    """,
)
decision = _table(
    "decision",
    """
    told_at timestamptz key, tenant_id int, monitor_id int key, replica text key, snapshot_at timestamptz null,
    verdict text, value float8 null, active boolean null, held boolean, reason text, code text, version int null,
    overrides jsonb null
    """,
)
audit_event = _table(
    "audit_event",
    """
    id uuid key random, at timestamptz now, tenant_id int null, actor text, action text, object text,
    before jsonb null, after jsonb null, origin text null
    """,
)
freeze = _table(
    "scaling_freeze",
    """
    id uuid key random, tenant_id int, cluster_id int null, monitor_id int null, reason text, actor text,
    since timestamptz now, until timestamptz
    """,
)
#: The scaler writes it.
frozen_answer = _table(
    "frozen_answer",
    """
    freeze_id uuid key, monitor_id int key, overrides text key, tenant_id int, since timestamptz,
    known_at timestamptz null, value float8 null, active boolean null
    """,
)
samples_kept = _table("samples_kept", "only_row boolean key true, kept_since timestamptz null")

#: A view that shows the set tenant's rows only; nothing is written through it.
tenant_lag_sample = sa.Table(
    "tenant_lag_sample", sa.MetaData(), *[_column(name, kind, "null") for name, kind in COLUMNS.items()]
)
