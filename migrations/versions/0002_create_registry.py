"""Create tenants, clusters, monitors, keys and what belongs to them. pre: runs before the new code is deployed."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
create table tenant (
  id                int generated always as identity primary key,
  name              text not null unique check (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  display_name      text not null default '',
  auto_register     boolean not null default false,   -- may ScaledObjects create monitors by inline metadata?
  min_sampling_seconds int not null default 1,
  max_monitors      int not null default 1000,
  created_at        timestamptz not null default now(),
  version           int not null default 1
);

create table api_key (
  id           uuid primary key default gen_random_uuid(),
  tenant_id    int references tenant on delete cascade,          -- NULL: the platform's
  name         text not null,
  role         text not null check (role in ('platform-admin', 'tenant-admin', 'tenant-viewer')),
  prefix       text not null unique,                             -- shown in lists, finds the row
  digest       bytea not null,                                   -- SHA-256 of the whole key; 256 random bits need no salt
  created_at   timestamptz not null default now(),
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz,
  check ((tenant_id is null) = (role = 'platform-admin'))
);
create index api_key_tenant on api_key (tenant_id);

create table namespace_binding (
  id         uuid primary key default gen_random_uuid(),
  tenant_id  int not null references tenant on delete cascade,
  instance   text not null default 'default',                    -- KEDA's identity: SAN of its certificate, or 'default'
  namespace  text not null,                                      -- Kubernetes namespace, or '*' for all of that instance
  created_at timestamptz not null default now(),
  unique (instance, namespace)
);
create index namespace_binding_tenant on namespace_binding (tenant_id);

create table cluster (
  id          int generated always as identity primary key,
  tenant_id   int not null references tenant on delete cascade,
  name        text not null check (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  bootstrap   text[] not null check (cardinality(bootstrap) > 0),
  security    jsonb not null default '{}',                       -- protocol, SASL mechanism, user name, CA: nothing secret
  secrets     bytea,                                             -- encrypted JSON: password, client key, ...
  created_at  timestamptz not null default now(),
  updated_at  timestamptz not null default now(),
  version     int not null default 1,
  unique (tenant_id, name)
);

create table monitor (
  id              int generated always as identity primary key,
  tenant_id       int not null references tenant on delete cascade,
  name            text not null check (name ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  cluster_id      int not null references cluster on delete restrict,
  consumer_group  text not null,
  topics          text[],                                        -- a list, or
  topic_pattern   text,                                          -- a pattern, or neither: all topics of the group
  isolation_level text not null default 'read_uncommitted' check (isolation_level in ('read_uncommitted', 'read_committed')),
  partition_limitation text not null default '',
  policy          jsonb not null,                                -- the keys as given, without defaults; newest monitor_version
  sampling_ms     int not null check (sampling_ms >= 1000),      -- what the scraper needs of the policy
  stale_after_ms  int not null,
  overridable     boolean not null default false,                -- may ScaledObjects give policy keys beside serviceType?
  content_hash    text not null,                                 -- of cluster, group, topics and policy: finds inline monitors
  auto_registered boolean not null default false,
  last_asked_at   timestamptz,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  deleted_at      timestamptz,
  version         int not null default 1,
  check (topics is null or topic_pattern is null)
);
create unique index monitor_name on monitor (tenant_id, name) where deleted_at is null;
create index monitor_content on monitor (tenant_id, content_hash) where deleted_at is null;
create index monitor_cluster on monitor (cluster_id);

create table monitor_version (
  monitor_id  int not null references monitor on delete cascade,
  tenant_id   int not null references tenant on delete cascade,
  version     int not null,
  valid_from  timestamptz not null default now(),
  policy      jsonb not null,
  primary key (monitor_id, version)
);

create table lag_target (
  id                   int generated always as identity primary key,
  tenant_id            int not null references tenant on delete cascade,
  cluster_id           int not null references cluster on delete cascade,
  consumer_group       text not null,
  topic                text not null,
  isolation_level      text not null,
  partition_limitation text not null default '',
  topic_id             text,                                     -- Kafka's id of the topic, as last seen
  epoch                int not null default 0,                   -- raised when topic_id changes
  created_at           timestamptz not null default now(),
  unique (tenant_id, cluster_id, consumer_group, topic, isolation_level, partition_limitation)
);

create table monitor_target (
  monitor_id int not null references monitor on delete cascade,
  target_id  int not null references lag_target on delete cascade,
  tenant_id  int not null references tenant on delete cascade,
  primary key (monitor_id, target_id)
);
create index monitor_target_target on monitor_target (target_id);

create table cluster_state (                                     -- latest state, written by the scraper on change
  cluster_id int primary key references cluster on delete cascade,
  tenant_id  int not null references tenant on delete cascade,
  code       text not null,                                      -- 'ok', or a named error
  message    text not null default '',
  since      timestamptz not null,
  seen_at    timestamptz not null
);

create table target_state (
  target_id  int primary key references lag_target on delete cascade,
  tenant_id  int not null references tenant on delete cascade,
  code       text not null,
  message    text not null default '',
  since      timestamptz not null,
  seen_at    timestamptz not null
);

create table decision (                                          -- what a replica told KEDA
  told_at     timestamptz not null,
  tenant_id   int not null,
  monitor_id  int not null,
  replica     text not null,
  snapshot_at timestamptz,
  verdict     text not null,
  value       double precision,
  active      boolean,
  held        boolean not null default false,
  reason      text not null,
  code        text not null,
  primary key (monitor_id, told_at, replica)
);

create table audit_event (
  id         uuid primary key default gen_random_uuid(),
  at         timestamptz not null default now(),
  tenant_id  int references tenant on delete cascade,
  actor      text not null,
  action     text not null,
  object     text not null,
  before     jsonb,
  after      jsonb
);
create index audit_event_tenant on audit_event (tenant_id, at desc);

create table scraper_lease (
  name       text primary key,
  holder     text not null,
  epoch      bigint not null,
  expires_at timestamptz not null
);

create table registry_change (                                   -- one row: raised by every change of a registration
  only_row boolean primary key default true check (only_row),
  version  bigint not null
);
insert into registry_change (version) values (1);
"""

TENANT_TABLES = (
    "api_key", "namespace_binding", "cluster", "monitor", "monitor_version", "lag_target", "monitor_target",
    "cluster_state", "target_state", "decision", "audit_event",
)  # fmt: skip

# Changes of these tables change what the scraper polls or what the scaler answers.
REGISTRATIONS = ("tenant", "namespace_binding", "cluster", "monitor", "monitor_target")

GRANTS = """
grant select, insert, update, delete on tenant, api_key, namespace_binding, cluster, monitor, lag_target, monitor_target
  to lagscale_api;
grant select, insert on monitor_version, audit_event to lagscale_api;
grant select on cluster_state, target_state, decision, registry_change, scraper_lease to lagscale_api;

grant select on tenant, namespace_binding, cluster, monitor, monitor_version, lag_target, monitor_target,
  cluster_state, target_state, registry_change to lagscale_scaler;
grant insert on monitor, monitor_version, lag_target, monitor_target, decision to lagscale_scaler;
grant update (last_asked_at) on monitor to lagscale_scaler;

grant select on tenant, cluster, monitor, lag_target, monitor_target, registry_change to lagscale_scraper;
grant update (topic_id, epoch) on lag_target to lagscale_scraper;
grant select, insert, update on cluster_state, target_state, scraper_lease to lagscale_scraper;
"""


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    for statement in TABLES.split(";\n"):
        if statement.strip():
            op.execute(statement)
    _raise_version_on_change()
    _build_walls()
    for statement in GRANTS.split(";\n"):
        if statement.strip():
            op.execute(statement)
    op.execute("reset role")


def _raise_version_on_change() -> None:
    op.execute(
        """
        create function registration_changed() returns trigger language plpgsql
        security definer set search_path from current as $$
        begin
          update registry_change set version = version + 1;
          notify lagscale_registry;
          return null;
        end $$
        """
    )
    for table in REGISTRATIONS:
        # A column list keeps the scaler's `last_asked_at` from counting as a change.
        columns = (
            " of name, policy, topics, topic_pattern, consumer_group, cluster_id, deleted_at, overridable, version"
        )
        update = f"update{columns}" if table == "monitor" else "update"
        op.execute(
            f"""
            create trigger registration_changed after insert or {update} or delete on {table}
            for each statement execute function registration_changed()
            """
        )


def _build_walls() -> None:
    """Row-level security, forced: a tenant's rows are seen under that tenant's setting, or by the roles named here."""
    op.execute(
        """
        create function present_tenant() returns int language sql stable parallel safe
        return nullif(current_setting('lagscale.tenant', true), '')::int
        """
    )
    for table in ("tenant", *TENANT_TABLES):
        column = "id" if table == "tenant" else "tenant_id"
        op.execute(f"alter table {table} enable row level security")
        op.execute(f"alter table {table} force row level security")
        op.execute(
            f"create policy of_tenant on {table} to lagscale_api, lagscale_scaler "
            f"using ({column} = present_tenant()) with check ({column} = present_tenant())"
        )
        # The platform's administrators act across tenants; the API sets this only after it has checked their key.
        op.execute(
            f"create policy of_platform on {table} to lagscale_api "
            "using (current_setting('lagscale.platform', true) = 'on') "
            "with check (current_setting('lagscale.platform', true) = 'on')"
        )
        op.execute(f"create policy of_owner on {table} to lagscale_owner using (true) with check (true)")
    for table in (
        "tenant",
        "cluster",
        "monitor",
        "lag_target",
        "monitor_target",
        "cluster_state",
        "target_state",
    ):
        op.execute(f"create policy of_scraper on {table} to lagscale_scraper using (true) with check (true)")
    for table in (
        "tenant", "namespace_binding", "cluster", "monitor", "monitor_version", "lag_target", "monitor_target",
        "cluster_state", "target_state",
    ):  # fmt: skip
        op.execute(f"create policy of_scaler_cache on {table} for select to lagscale_scaler using (true)")
    op.execute("create policy of_scaler_told on decision for insert to lagscale_scaler with check (true)")
    op.execute("create policy of_scaler_asked on monitor for update to lagscale_scaler using (true)")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
