-- Appends the decisions of a replica; each row carries its tenant.
insert into decision (
    told_at, tenant_id, monitor_id, replica, snapshot_at, verdict, value, active, held, reason, code, version, overrides
)
select
    to_timestamp(d.told_ms / 1000.0), d.tenant_id, d.monitor_id, d.replica, to_timestamp(d.snapshot_ms / 1000.0),
    d.verdict, d.value, d.active, d.held, d.reason, d.code, d.version, d.overrides::jsonb
from unnest(
    %s::bigint[], %s::int[], %s::int[], %s::text[], %s::bigint[], %s::text[], %s::float8[], %s::bool[], %s::bool[],
    %s::text[], %s::text[], %s::int[], %s::text[]
) as d (
    told_ms, tenant_id, monitor_id, replica, snapshot_ms, verdict, value, active, held, reason, code, version, overrides
)
on conflict do nothing
