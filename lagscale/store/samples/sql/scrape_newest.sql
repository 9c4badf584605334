-- What is known of each target before its next round: the topic's id, the epoch, and the newest row.
-- All tenants: one scraper writes for all, and the targets' ids come from its own plan.
-- slots: columns.ROW
select
    t.id,
    t.topic_id,
    t.epoch as target_epoch,
    s.*
from unnest(%(targets)s::int[]) as w (id)
inner join lag_target as t on t.id = w.id
left join lateral (
    select
        (extract(epoch from n.ts) * 1000)::bigint as at_ms,
        :columns.ROW
    from every_lag_sample as n
    where n.target_id = t.id and n.tenant_id = t.tenant_id
    order by n.ts desc
    limit 1
) as s on true
