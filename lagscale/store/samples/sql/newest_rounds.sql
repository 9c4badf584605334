-- Partitions and age of some targets' newest rounds, and whether no partition has lag: such a target is ok while its
-- round is fresh, and no other round needs to be read.
select
    x.id,
    n.parts,
    (extract(epoch from statement_timestamp() - n.ts) * 1000)::bigint as age_ms,
    n.lagging = 0 and n.none_lagging = 0 and n.oldest_age = 0 and n.never = 0 as is_quiet
from unnest(%(targets)s::int[], %(tenants)s::int[]) as x (id, tenant_id)
cross join lateral (
    select
        s.ts,
        s.parts,
        s.lagging,
        s.none_lagging,
        s.oldest_age,
        s.never
    from every_lag_sample as s
    where s.target_id = x.id and s.tenant_id = x.tenant_id
    order by s.ts desc
    limit 1
) as n
