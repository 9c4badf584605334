"""The tables of freezes, beside those of `tables`."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Double, Integer, Table, Text, Uuid, text
from sqlalchemy.dialects.postgresql import TIMESTAMP

from lagscale.store.registry.tables import metadata

_INSTANT = TIMESTAMP(timezone=True)

freeze = Table(
    "scaling_freeze",
    metadata,
    Column("id", Uuid, primary_key=True, server_default=text("gen_random_uuid()")),
    Column("tenant_id", Integer, nullable=False),
    Column("cluster_id", Integer),
    Column("monitor_id", Integer),
    Column("reason", Text, nullable=False),
    Column("actor", Text, nullable=False),
    Column("since", _INSTANT, nullable=False, server_default=text("now()")),
    Column("until", _INSTANT, nullable=False),
)

#: Written by the scaler.
frozen_answer = Table(
    "frozen_answer",
    metadata,
    Column("freeze_id", Uuid, primary_key=True),
    Column("monitor_id", Integer, primary_key=True),
    Column("overrides", Text, primary_key=True),
    Column("tenant_id", Integer, nullable=False),
    Column("since", _INSTANT, nullable=False),
    Column("known_at", _INSTANT),
    Column("value", Double),
    Column("active", Boolean),
)
