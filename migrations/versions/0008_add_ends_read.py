"""Add when the ends of a round were read, for time lag. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in (
        "set local role lagscale_owner",
        # Milliseconds after ts: the brokers read the ends between the two. NULL in older rows, where it is not known.
        "alter table lag_sample add column ends_asked int, add column ends_answered int",
        # The star of a view is that of the day on which it was made.
        "set local role lagscale_reader",
        "create or replace view tenant_lag_sample with (security_barrier) as "
        "select * from lag_sample where tenant_id = present_tenant()",
        "create or replace view every_lag_sample as select * from lag_sample",
        "reset role",
    ):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
