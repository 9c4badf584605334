"""Add tenants' rules for policies, who registered a monitor, and their own expiry. pre: old code goes on."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

RULES = (
    """
    alter table tenant
      add column policy_defaults jsonb not null default '{}',      -- key -> text, where a monitor does not give the key
      add column policy_limits jsonb not null default '{}',        -- key -> min, max, allowed or fixed
      add column max_auto_monitors int not null default 1000 check (max_auto_monitors >= 0),
      add column auto_expiry_days int not null default 7 check (auto_expiry_days between 1 and 365)
    """,
    # `monitor.policy` and its versions stay what is in force; of these keys the tenant's defaults gave the text.
    "alter table monitor add column inherited text[] not null default '{}'",
    # KEDA instance, namespace and ScaledObject that asked first; NULL where people registered it, or nobody knows.
    "alter table monitor add column registered_by jsonb",
)

#: A transaction counts as one change, however many statements it has: a thousand monitors are put at once.
CHANGED = (
    """
    create or replace function registration_changed() returns trigger language plpgsql
    security definer set search_path from current as $$
    declare mine text := pg_current_xact_id()::text;
    begin
      if current_setting('lagscale.changed', true) is distinct from mine then
        update registry_change set version = version + 1;
        notify lagscale_registry;
        perform set_config('lagscale.changed', mine, true);
      end if;
      return null;
    end $$
    """,
)

TIDY = (
    """
    create or replace function tidy_registry(now_at timestamptz) returns table (what text, removed bigint)
    language plpgsql security definer set search_path from current as $$
    declare gone bigint;
    begin
      delete from decision where told_at < now_at - interval '1209600 seconds';      -- 14 days
      get diagnostics gone = row_count;
      return query select 'decisions', gone;

      -- An auto-registered monitor that nobody asked for is removed; its tenant says after how many days.
      gone := 0;
      if exists (
        select from monitor m join tenant t on t.id = m.tenant_id
        where m.auto_registered and m.deleted_at is null
          and coalesce(m.last_asked_at, m.created_at) < now_at - t.auto_expiry_days * interval '1 day'
      ) then
        with unasked as (
          update monitor m set deleted_at = now_at, updated_at = now_at, version = m.version + 1
          from tenant t
          where t.id = m.tenant_id and m.auto_registered and m.deleted_at is null
            and coalesce(m.last_asked_at, m.created_at) < now_at - t.auto_expiry_days * interval '1 day'
          returning m.id, m.tenant_id, m.name, m.last_asked_at
        ),
        unlinked as (
          delete from monitor_target x using unasked u where x.monitor_id = u.id
        )
        insert into audit_event (at, tenant_id, actor, action, object, before)
        select now_at, u.tenant_id, 'housekeeping', 'monitor.expire', 'monitor/' || u.name,
          jsonb_build_object('name', u.name, 'auto_registered', true, 'last_asked_at', u.last_asked_at)
        from unasked u;
        get diagnostics gone = row_count;
      end if;
      return query select 'unasked monitors', gone;

      -- What was deleted stays for a month, so that it can be restored and its decisions explained.
      gone := 0;
      if exists (select from monitor where deleted_at < now_at - interval '2592000 seconds') then
        delete from monitor where deleted_at < now_at - interval '2592000 seconds';
        get diagnostics gone = row_count;
      end if;
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
    for statement in (*RULES, *CHANGED, *TIDY):
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
