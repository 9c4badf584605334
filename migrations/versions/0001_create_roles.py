"""Create the roles that own, read and write. pre: runs before the new code is deployed.

Roles belong to the whole database server, so another database's migration may create them at the same moment.
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Who owns tables, who owns the views over samples, and one role per service; none of them can log in.
ROLES = ("lagscale_owner", "lagscale_reader", "lagscale_scraper", "lagscale_scaler", "lagscale_api")


def upgrade() -> None:
    for role in ROLES:
        # Looked for first, because a user who may not create roles is refused even where the role is there already.
        op.execute(
            f"""
            do $$ begin
              if not exists (select from pg_roles where rolname = '{role}') then
                create role {role} nologin nosuperuser nobypassrls;
              end if;
            exception when duplicate_object or unique_violation then null;
            end $$
            """
        )
        # The migrating user must be able to hand tables over, and services with one login to step down. From
        # PostgreSQL 16 on, whoever creates a role is a member that may grant it, but may not become it.
        op.execute(
            f"""
            do $$ begin
              if not pg_has_role(current_user, '{role}',
                  case when current_setting('server_version_num')::int >= 160000 then 'SET' else 'MEMBER' end) then
                execute format('grant {role} to %I', current_user);
              end if;
            exception when unique_violation then null;
            end $$
            """
        )
    op.execute("do $$ begin execute format('grant create on schema %I to lagscale_owner', current_schema()); end $$")
    op.execute("do $$ begin execute format('grant create on schema %I to lagscale_reader', current_schema()); end $$")
    op.execute(
        """
        do $$ begin
          execute format('grant usage on schema %I to lagscale_owner, lagscale_reader, lagscale_scraper, '
                         'lagscale_scaler, lagscale_api', current_schema());
        end $$
        """
    )


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
