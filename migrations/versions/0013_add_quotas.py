"""Add the tenants' quotas, and how many partitions a target has. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Constants as defaults: no row is rewritten, and the locks are held for a moment only.
    """
    alter table tenant
      add column max_clusters int not null default 50,
      add column max_patterns int not null default 100,              -- monitors without a list of topics
      add column max_partitions int not null default 50000,
      add column calls_per_second int not null default 500,          -- KEDA's, of each replica of the scaler
      add column requests_per_second int not null default 200        -- of each replica of the API
    """,
    # As the cluster's metadata last told; NULL while nobody has asked.
    "alter table target_state add column partitions int",
    # A target that is over its quota, or no longer, changes what is answered and what is polled. The scraper says so
    # in a transaction of its own: within that of the states it would wait for the registry with their rows locked.
    """
    create function tell_registration_change() returns void language sql
    security definer set search_path from current as $$
      update registry_change set version = version + 1;
      notify lagscale_registry;
    $$
    """,
    "revoke all on function tell_registration_change() from public",
    "grant execute on function tell_registration_change() to lagscale_scraper",
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in STATEMENTS:
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
