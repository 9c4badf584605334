"""Add successors of keys, from where a change came, and the audit of what no person does. pre: old code goes on."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

STATEMENTS = (
    # The prefix of the key that was made in its place; it ends on its own day, which rotation brings nearer.
    "alter table api_key add column replaced_by text",
    # The client's address; NULL where no request asked for the change.
    "alter table audit_event add column origin text",
    # The platform reads the newest of all tenants; a tenant's own are found by the index of 0002.
    "create index audit_event_at on audit_event (at desc, id desc)",
    # Who had a monitor registered by its trigger's metadata is written down where that is done. Behind the wall of
    # 0002, and never read.
    "grant insert on audit_event to lagscale_scaler",
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in STATEMENTS:
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
