-- Every freeze that has not ended, and the database's clock, in at least one row. All tenants: a replica serves all.
select
    (extract(epoch from n.at) * 1000)::bigint as now_ms,
    f.id::text as freeze_id,
    f.tenant_id,
    c.name as cluster,
    f.monitor_id,
    (extract(epoch from f.since) * 1000)::bigint as since_ms,
    (extract(epoch from f.until) * 1000)::bigint as until_ms,
    f.reason
from (select clock_timestamp() as at) as n
left join scaling_freeze as f on f.until > n.at
left join cluster as c on c.id = f.cluster_id and c.tenant_id = f.tenant_id
order by f.since, f.id
