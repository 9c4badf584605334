"""Create what removes old rows of the registry. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    op.execute(
        """
        create function tidy_registry(now_at timestamptz) returns table (what text, removed bigint) language plpgsql
        security definer set search_path from current as $$
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

          delete from lag_target t
          where t.created_at < now_at - interval '2592000 seconds'
            and not exists (select from monitor_target m where m.target_id = t.id);
          get diagnostics gone = row_count;
          return query select 'targets', gone;

          delete from audit_event where at < now_at - interval '34560000 seconds';       -- 400 days
          get diagnostics gone = row_count;
          return query select 'audit events', gone;
        end $$
        """
    )
    op.execute("revoke all on function tidy_registry(timestamptz) from public")
    op.execute("grant execute on function tidy_registry(timestamptz) to lagscale_scraper")
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
