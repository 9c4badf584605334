"""Add what lies behind the last stable offsets of a target. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

STATEMENTS = (
    # {"at": when it was read, "partitions": {number: [last stable offset, messages behind it, since when it has not
    # moved]}}, times in milliseconds since 1970. NULL while nobody has read it.
    "alter table target_state add column unstable jsonb",
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in STATEMENTS:
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
