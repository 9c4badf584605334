-- Every target of a live monitor, with how often and where it is polled. All tenants: one scraper polls for all.
select
    t.id as target_id,
    t.tenant_id,
    t.cluster_id,
    t.consumer_group,
    t.topic,
    t.isolation_level = 'read_committed' as read_committed,
    t.partition_limitation as limitation,
    min(m.sampling_ms) as sampling_ms,
    max(m.stale_after_ms) as stale_after_ms,
    max(s.partitions) as partitions
from lag_target as t
inner join monitor_target as x on x.target_id = t.id and x.tenant_id = t.tenant_id
inner join monitor as m on m.id = x.monitor_id and m.tenant_id = t.tenant_id
left join target_state as s on s.target_id = t.id and s.tenant_id = t.tenant_id
where m.deleted_at is null
group by t.id
order by t.id
