"""Create the samples: a hypertable where TimescaleDB is there, else a plain table. pre: before the new code."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLE = """
create table lag_sample (
  ts            timestamptz not null,   -- the round's first request, whole milliseconds of the database's clock
  target_id     int not null,           -- no foreign key: it halves the ingest
  tenant_id     int not null,           -- for row-level security
  epoch         int not null,           -- raised when the topic's id changes
  notes         smallint not null,      -- bits: 1 no such topic
  -- arrays over partitions: [partition + 1]; NULL = missing from this round (or outside the limitation, by flag)
  lags          bigint[] not null,      -- for an uncommitted partition end - start
  ends          bigint[] not null,      -- position = end - lag
  flags         smallint[],             -- bits of lagscale.domain.lag.samples.Flag; NULL when all are 0
  lost          bigint[],               -- messages lost to retention; NULL when there are none
  -- the last sample of every partition that is missing here; NULL when none is missing
  carried_lags  bigint[],
  carried_ends  bigint[],
  carried_flags smallint[],
  carried_ages  int[],                  -- milliseconds before ts
  members       int,                    -- NULL: not known
  members_age   int,                    -- milliseconds before ts
  group_state   smallint,
  -- markers: what the writer knows from the rounds before, so that most verdicts read one row
  parts         int not null,           -- partitions in scope
  never         int not null,           -- of these, without any sample so far
  oldest_age    int not null,           -- ms: age of the oldest of the partitions' newest samples; 0 when complete
  total_lag     bigint not null,        -- over each partition's newest sample, committed ones
  max_lag       bigint not null,
  max_part      int,                    -- which partition has max_lag; NULL when no committed partition
  lagging       int not null,           -- committed partitions with lag > 0
  none_total    bigint not null,        -- the same over uncommitted ones, as `earliest` counts them
  none_max      bigint not null,
  none_max_part int,
  none_lagging  int not null,
  moved_age     int,                    -- ms since a position last advanced under this epoch; NULL: never seen
  known_age     int,                    -- ms since the youngest knowledge about a partition; 2e9 where all are born
  absent_age    int,                    -- ms since the topic was first absent; NULL while it is there
  primary key (target_id, ts)
)
"""


def upgrade() -> None:
    _create_extension()
    op.execute("set local role lagscale_owner")
    op.execute(TABLE)
    op.execute(
        """
        do $$ begin
          if exists (select from pg_extension where extname = 'timescaledb') then
            perform create_hypertable('lag_sample', by_range('ts', interval '6 hours'), create_default_indexes => false);
          else
            create index lag_sample_ts on lag_sample using brin (ts);
          end if;
        end $$
        """
    )
    _build_walls()
    _create_retention()
    _create_ask()
    op.execute("reset role")


def _create_extension() -> None:
    # Only the extension's absence is forgiven: then the table stays plain.
    op.execute(
        """
        do $$ begin
          if exists (select from pg_available_extensions where name = 'timescaledb') then
            create extension if not exists timescaledb;
          end if;
        exception when undefined_file or feature_not_supported or insufficient_privilege then
          raise notice 'TimescaleDB cannot be created here; samples go to a plain table';
        end $$
        """
    )


def _build_walls() -> None:
    """Policies do not reach a hypertable's chunks but grants do: so no service may SELECT the table itself.

    They read views owned by a role that cannot log in; the scraper writes by INSERT only.
    """
    for statement in (
        "alter table lag_sample enable row level security",
        "alter table lag_sample force row level security",
        "create policy of_owner on lag_sample to lagscale_owner using (true) with check (true)",
        "create policy of_views on lag_sample for select to lagscale_reader using (true)",
        "create policy of_scraper on lag_sample for insert to lagscale_scraper with check (true)",
        "grant select on lag_sample to lagscale_reader",
        "grant insert on lag_sample to lagscale_scraper",
        "grant execute on function present_tenant() to lagscale_reader",
        "set local role lagscale_reader",
        "create view tenant_lag_sample with (security_barrier) as "
        "select * from lag_sample where tenant_id = present_tenant()",
        "grant select on tenant_lag_sample to lagscale_api",
        # The coalesced verdict and the writer's look at the newest rows serve several tenants at once; every
        # statement on this view names its tenant or is listed with the reason.
        "create view every_lag_sample as select * from lag_sample",
        "grant select on every_lag_sample to lagscale_scaler, lagscale_scraper",
        "set local role lagscale_owner",
    ):
        op.execute(statement)


def _create_retention() -> None:
    op.execute(
        """
        create function drop_samples_before(cutoff timestamptz) returns table (dropped text) language plpgsql
        security definer set search_path from current as $$
        declare removed bigint;
        begin
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
        """
    )
    op.execute("revoke all on function drop_samples_before(timestamptz) from public")
    op.execute("grant execute on function drop_samples_before(timestamptz) to lagscale_scraper")


def _create_ask() -> None:
    """One parameter for all asks: an array of this type. Durations are milliseconds."""
    op.execute(
        """
        create type verdict_ask as (
          ask                int,           -- echoed in the answer
          tenant_id          int,
          targets            int[],
          upto               timestamptz,   -- NULL: every stored row counts
          judged_at          timestamptz,   -- NULL: the database's clock
          lag_threshold      bigint,
          target_lag         float8,
          sustain            bigint,
          max_gap            bigint,
          stale_after        bigint,
          activation_lag     bigint,
          activation_sustain bigint,
          work               bigint,
          lookback           bigint,
          by_total           boolean,       -- persistenceScope: total
          earliest           boolean,       -- offsetResetPolicy: earliest
          invalid_is_zero    boolean,       -- scaleToZeroOnInvalidOffset
          allow_idle         boolean,
          per_replica        int            -- consumersPerReplica
        )
        """
    )


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
