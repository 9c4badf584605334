-- The rounds of some targets, from a while before each one's newest up to it, and the last one before that.
-- Of many partitions fewer rounds are read, so that one target cannot fill the memory.
-- slots: columns.ROUND
select
    x.id,
    (extract(epoch from r.ts) * 1000)::bigint as at_ms,
    :columns.ROUND
from unnest(%(targets)s::int[], %(tenants)s::int[], %(reaches)s::bigint[]) as x (id, tenant_id, reach)
cross join lateral (
    select
        n.ts,
        n.ts - x.reach * interval '1 millisecond' as since,
        %(most)s::bigint / greatest(cardinality(n.lags), 1) as rows_at_most
    from every_lag_sample as n
    where n.target_id = x.id and n.tenant_id = x.tenant_id
    order by n.ts desc
    limit 1
) as newest
left join lateral (
    select e.ts
    from every_lag_sample as e
    where e.target_id = x.id and e.tenant_id = x.tenant_id and e.ts < newest.since
    order by e.ts desc
    limit 1
) as edge on true
cross join lateral (
    select s.*
    from every_lag_sample as s
    where s.target_id = x.id and s.tenant_id = x.tenant_id and s.ts >= coalesce(edge.ts, newest.since)
    order by s.ts desc
    limit newest.rows_at_most
) as r
order by x.id, r.ts
