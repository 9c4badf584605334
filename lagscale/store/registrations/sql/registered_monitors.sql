-- Every monitor with its targets, in the order of its topics. All tenants: a replica serves all.
-- slots: code.OVER_QUOTA, code.TOO_MANY_TOPICS
select
    m.id,
    m.tenant_id,
    m.name,
    c.name as cluster,
    m.consumer_group,
    coalesce(g.topics, '{}') as topics,
    m.policy,
    m.overridable,
    m.content_hash,
    m.version,
    coalesce(g.target_ids, '{}') as target_ids,
    case when s.code = :code.TOO_MANY_TOPICS then s.message else '' end as partial_reason,
    coalesce(g.over_quota_reason, '') as over_quota_reason
from monitor as m
inner join cluster as c on c.id = m.cluster_id and c.tenant_id = m.tenant_id
-- A list of topics is always whole; discovered topics may be more than the monitor may measure.
left join monitor_scope as s on s.monitor_id = m.id and s.tenant_id = m.tenant_id and m.topics is null
left join lateral (
    select
        array_agg(x.target_id order by array_position(m.topics, t.topic), x.target_id) as target_ids,
        array_agg(t.topic order by array_position(m.topics, t.topic), x.target_id) as topics,
        max(z.message) filter (where z.code = :code.OVER_QUOTA) as over_quota_reason
    from monitor_target as x
    inner join lag_target as t on t.id = x.target_id and t.tenant_id = m.tenant_id
    left join target_state as z on z.target_id = x.target_id and z.tenant_id = m.tenant_id
    where x.monitor_id = m.id and x.tenant_id = m.tenant_id
) as g on true
where m.deleted_at is null
order by m.id
