-- How looking up the monitors' topics went, and when that was last done. All tenants: one scraper looks up for all.
insert into monitor_scope as s (
    monitor_id, tenant_id, monitor_version, resolved_at, matched, code, message, since, seen_at
)
select m.id, m.tenant_id, n.version, n.resolved_at, n.matched, n.code, n.message, clock_timestamp(), clock_timestamp()
from unnest(
    %(monitors)s::int[], %(versions)s::int[], %(resolved)s::timestamptz[], %(matched)s::int[], %(codes)s::text[],
    %(messages)s::text[]
) as n (id, version, resolved_at, matched, code, message)
inner join monitor as m on m.id = n.id and m.deleted_at is null
order by m.id
on conflict (monitor_id) do update
    set
        monitor_version = excluded.monitor_version,
        resolved_at = excluded.resolved_at,
        matched = excluded.matched,
        code = excluded.code,
        message = excluded.message,
        since = case when s.code = excluded.code then s.since else excluded.since end,
        seen_at = excluded.seen_at
