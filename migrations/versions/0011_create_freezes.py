"""Create freezes and the answers that they hold. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    create table scaling_freeze (                                    -- KEDA gets what was known when it began
      id         uuid primary key default gen_random_uuid(),
      tenant_id  int not null references tenant on delete cascade,
      cluster_id int references cluster on delete cascade,           -- one of the two at most;
      monitor_id int references monitor on delete cascade,           -- with neither it is of the whole tenant
      reason     text not null,
      actor      text not null,
      since      timestamptz not null default now(),
      until      timestamptz not null,                               -- ended ones are removed by the tenant's next one
      check (cluster_id is null or monitor_id is null),
      check (until > since)
    )
    """,
    "create unique index freeze_of_tenant on scaling_freeze (tenant_id) where cluster_id is null and monitor_id is null",
    "create unique index freeze_of_cluster on scaling_freeze (cluster_id)",
    "create unique index freeze_of_monitor on scaling_freeze (monitor_id)",
    "create index freeze_tenant on scaling_freeze (tenant_id)",
    """
    create table frozen_answer (                                     -- written once, so that all replicas tell the same
      freeze_id  uuid not null references scaling_freeze on delete cascade,
      monitor_id int not null references monitor on delete cascade,
      overrides  text not null,                                      -- policy keys that a ScaledObject gave, as JSON
      tenant_id  int not null references tenant on delete cascade,
      since      timestamptz not null,                               -- the freeze whose moment it is of
      known_at   timestamptz,                                        -- the last known instant; NULL: nothing to hold
      value      double precision,
      active     boolean,
      primary key (freeze_id, monitor_id, overrides),
      check ((known_at is null) = (value is null) and (value is null) = (active is null))
    )
    """,
    "create index frozen_answer_monitor on frozen_answer (monitor_id)",
    "create index frozen_answer_tenant on frozen_answer (tenant_id)",
    *(
        statement
        for table in ("scaling_freeze", "frozen_answer")
        for statement in (
            f"alter table {table} enable row level security",
            f"alter table {table} force row level security",
            f"create policy of_tenant on {table} to lagscale_api, lagscale_scaler "
            "using (tenant_id = present_tenant()) with check (tenant_id = present_tenant())",
            f"create policy of_platform on {table} to lagscale_api "
            "using (current_setting('lagscale.platform', true) = 'on') "
            "with check (current_setting('lagscale.platform', true) = 'on')",
            f"create policy of_owner on {table} to lagscale_owner using (true) with check (true)",
        )
    ),
    # A replica answers for all tenants, so it knows all freezes; answers it reads and writes behind one tenant's wall.
    "create policy of_scaler_cache on scaling_freeze for select to lagscale_scaler using (true)",
    "grant select, insert, update, delete on scaling_freeze to lagscale_api",
    "grant select on frozen_answer to lagscale_api",
    "grant select on scaling_freeze to lagscale_scaler",
    "grant select, insert on frozen_answer to lagscale_scaler",
    # Replicas hear of it as of any change of what they answer.
    "create trigger registration_changed after insert or update or delete on scaling_freeze "
    "for each statement execute function registration_changed()",
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in STATEMENTS:
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
