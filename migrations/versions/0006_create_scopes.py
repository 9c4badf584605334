"""Create what resolves patterns and groups to topics. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Names and patterns that are left out of a pattern's topics, or of a group's.
    "alter table monitor add column exclude_topics text[] not null default '{}'",
    # Since when complete answers of the cluster name the topic no more; NULL while they do, and for listed topics.
    "alter table monitor_target add column absent_at timestamptz",
    """
    create table monitor_scope (                                     -- of monitors without a list of topics
      monitor_id      int primary key references monitor on delete cascade,
      tenant_id       int not null references tenant on delete cascade,
      monitor_version int not null,                                  -- the version that was resolved
      resolved_at     timestamptz,                                   -- newest complete answer that the links follow
      matched         int not null,                                  -- topics that it named
      code            text not null,                                 -- 'ok', or why the links may not be all
      message         text not null default '',
      since           timestamptz not null,
      seen_at         timestamptz not null
    )
    """,
    "alter table monitor_scope enable row level security",
    "alter table monitor_scope force row level security",
    "create policy of_tenant on monitor_scope to lagscale_api, lagscale_scaler "
    "using (tenant_id = present_tenant()) with check (tenant_id = present_tenant())",
    "create policy of_platform on monitor_scope to lagscale_api "
    "using (current_setting('lagscale.platform', true) = 'on') "
    "with check (current_setting('lagscale.platform', true) = 'on')",
    "create policy of_owner on monitor_scope to lagscale_owner using (true) with check (true)",
    "create policy of_scraper on monitor_scope to lagscale_scraper using (true) with check (true)",
    "create policy of_scaler_cache on monitor_scope for select to lagscale_scaler using (true)",
    "grant select on monitor_scope to lagscale_api, lagscale_scaler",
    "grant select, insert, update on monitor_scope to lagscale_scraper",
    "grant insert on lag_target to lagscale_scraper",
    "grant insert, delete, update (absent_at) on monitor_target to lagscale_scraper",
    # Only what changes an answer counts as a change: the scraper looks every few seconds.
    "create trigger registration_changed after update on monitor_scope for each row "
    "when (old.code <> new.code or old.message <> new.message) execute function registration_changed()",
    "create trigger registration_added after insert on monitor_scope for each row "
    "when (new.code <> 'ok') execute function registration_changed()",
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in STATEMENTS:
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
