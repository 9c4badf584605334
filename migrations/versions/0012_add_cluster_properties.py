"""Add clusters' client properties and references to secrets. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in (
        "set local role lagscale_owner",
        # Constant defaults: the rows that are there are not rewritten, and code of the version before inserts on.
        "alter table cluster add column properties jsonb not null default '{}', "
        "add column secret_references jsonb not null default '{}'",
        "reset role",
    ):
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
