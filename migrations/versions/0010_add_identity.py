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
    # A trigger, because whatever housekeeping takes monitors away must not forget to say so. The API writes its own.
    """
    create function remember_expiry() returns trigger language plpgsql
    security definer set search_path from current as $$
    begin
      insert into audit_event (tenant_id, actor, action, object, before)
      values (new.tenant_id, 'housekeeping', 'monitor.expire', 'monitor/' || old.name, jsonb_build_object(
        'name', old.name, 'consumer_group', old.consumer_group, 'topics', old.topics,
        'topic_pattern', old.topic_pattern, 'policy', old.policy, 'auto_registered', old.auto_registered,
        'last_asked_at', old.last_asked_at, 'version', old.version));
      return null;
    end $$
    """,
    "revoke all on function remember_expiry() from public",
    "create trigger monitor_expired after update of deleted_at on monitor for each row "
    "when (old.deleted_at is null and new.deleted_at is not null "
    "and current_user in ('lagscale_owner', 'lagscale_scraper')) execute function remember_expiry()",
)


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in STATEMENTS:
        op.execute(statement)
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
