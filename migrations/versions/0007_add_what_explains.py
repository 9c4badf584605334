"""Add what explains the past: targets of monitors over time, how far samples reach, versions told. pre: old code goes on."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SPANS = (
    """
    create table monitor_target_span (                               -- which targets a monitor had, and when
      monitor_id int not null references monitor on delete cascade,
      target_id  int not null references lag_target on delete cascade,
      tenant_id  int not null references tenant on delete cascade,
      since      timestamptz not null default now(),
      until      timestamptz,                                        -- NULL while it is so
      primary key (monitor_id, target_id, since)
    )
    """,
    "create index monitor_target_span_target on monitor_target_span (target_id)",
    "alter table monitor_target_span enable row level security",
    "alter table monitor_target_span force row level security",
    "create policy of_tenant on monitor_target_span to lagscale_api "
    "using (tenant_id = present_tenant()) with check (tenant_id = present_tenant())",
    "create policy of_platform on monitor_target_span for select to lagscale_api "
    "using (current_setting('lagscale.platform', true) = 'on')",
    "create policy of_owner on monitor_target_span to lagscale_owner using (true) with check (true)",
    "grant select on monitor_target_span to lagscale_api",
    # A trigger, because three services link and unlink targets, and none may forget to write it down.
    """
    create function remember_monitor_target() returns trigger language plpgsql
    security definer set search_path from current as $$
    begin
      if tg_op = 'INSERT' then
        insert into monitor_target_span (monitor_id, target_id, tenant_id)
        values (new.monitor_id, new.target_id, new.tenant_id)
        on conflict (monitor_id, target_id, since) do update set until = null;
      else
        update monitor_target_span set until = now()
        where monitor_id = old.monitor_id and target_id = old.target_id and until is null;
      end if;
      return null;
    end $$
    """,
    "revoke all on function remember_monitor_target() from public",
    "create trigger monitor_target_remembered after insert or delete on monitor_target "
    "for each row execute function remember_monitor_target()",
    # Of what was linked before this, no more is known than that the monitor has it now.
    """
    insert into monitor_target_span (monitor_id, target_id, tenant_id, since)
    select t.monitor_id, t.target_id, t.tenant_id, m.created_at
    from monitor_target as t
    join monitor as m on m.id = t.monitor_id
    """,
)

#: One statement: an explanation must not take samples that were dropped for samples that never were.
KEPT = (
    """
    create table samples_kept (                                      -- one row: older samples may have been dropped
      only_row   boolean primary key default true check (only_row),
      kept_since timestamptz
    )
    """,
    "insert into samples_kept default values",
    "grant select on samples_kept to lagscale_api",
    """
    create or replace function drop_samples_before(cutoff timestamptz) returns table (dropped text) language plpgsql
    security definer set search_path from current as $$
    declare removed bigint;
    begin
      update samples_kept set kept_since = greatest(kept_since, cutoff);
      if exists (select from pg_extension where extname = 'timescaledb') then
        return query select d::text from drop_chunks('lag_sample', cutoff) d;
      else
        delete from lag_sample where ts < cutoff;
        get diagnostics removed = row_count;
        if removed > 0 then
          return query select removed || ' rows';
        end if;
      end if;
    end $$
    """,
)

TOLD = (
    # By which registration a replica answered, and which policy keys the ScaledObject gave beside it.
    "alter table decision add column version int, add column overrides jsonb",
    """
    create or replace function tidy_registry(now_at timestamptz) returns table (what text, removed bigint)
    language plpgsql security definer set search_path from current as $$
    declare gone bigint;
    begin
      delete from decision where told_at < now_at - interval '1209600 seconds';      -- 14 days
      get diagnostics gone = row_count;
      return query select 'decisions', gone;

      -- An auto-registered monitor that nobody asked for during 7 days is removed.
      update monitor set deleted_at = now_at, updated_at = now_at, version = version + 1
      where auto_registered and deleted_at is null
        and coalesce(last_asked_at, created_at) < now_at - interval '604800 seconds';
      get diagnostics gone = row_count;
      return query select 'unasked monitors', gone;

      -- What was deleted stays for a month, so that its decisions can be explained.
      delete from monitor where deleted_at < now_at - interval '2592000 seconds';
      get diagnostics gone = row_count;
      return query select 'deleted monitors', gone;

      -- And so do the targets that a monitor had within it: without them its samples have no topic.
      delete from lag_target t
      where t.created_at < now_at - interval '2592000 seconds'
        and not exists (select from monitor_target m where m.target_id = t.id)
        and not exists (
          select from monitor_target_span s
          where s.target_id = t.id and coalesce(s.until, 'infinity') > now_at - interval '2592000 seconds'
        );
      get diagnostics gone = row_count;
      return query select 'targets', gone;

      delete from monitor_target_span where until < now_at - interval '2592000 seconds';
      get diagnostics gone = row_count;
      return query select 'former targets', gone;

      delete from audit_event where at < now_at - interval '34560000 seconds';       -- 400 days
      get diagnostics gone = row_count;
      return query select 'audit events', gone;
    end $$
    """,
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in (*SPANS, *KEPT, *TOLD):
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
