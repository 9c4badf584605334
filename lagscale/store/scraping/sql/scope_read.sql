-- Every live monitor whose topics are looked up, with its links. All tenants: one scraper looks up for all.
select
    m.id as monitor_id,
    m.tenant_id,
    m.cluster_id,
    m.consumer_group,
    m.topic_pattern,
    m.exclude_topics,
    m.isolation_level,
    m.sampling_ms,
    m.stale_after_ms,
    m.version,
    s.code,
    case
        when s.monitor_version = m.version then (extract(epoch from s.resolved_at) * 1000)::bigint
    end as resolved_ms,
    l.target_ids,
    l.topics,
    l.absents,
    l.fits
from monitor as m
left join monitor_scope as s on s.monitor_id = m.id and s.tenant_id = m.tenant_id
cross join lateral (
    select
        coalesce(array_agg(t.id order by t.topic, t.id), '{}') as target_ids,
        coalesce(array_agg(t.topic order by t.topic, t.id), '{}') as topics,
        coalesce(array_agg((extract(epoch from x.absent_at) * 1000)::bigint order by t.topic, t.id), '{}') as absents,
        -- A link that an older version of the monitor left behind.
        coalesce(array_agg(
            t.cluster_id = m.cluster_id and t.consumer_group = m.consumer_group
            and t.isolation_level = m.isolation_level and t.partition_limitation = ''
            order by t.topic, t.id
        ), '{}') as fits
    from monitor_target as x
    inner join lag_target as t on t.id = x.target_id and t.tenant_id = x.tenant_id
    where x.monitor_id = m.id and x.tenant_id = m.tenant_id
) as l
where m.deleted_at is null and m.topics is null
order by m.id
