-- What is known of each target before its next round: the topic's id, the epoch, and the newest row.
-- All tenants: one scraper writes for all, and the targets' ids come from its own plan.
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
        n.epoch,
        n.notes,
        n.lags,
        n.ends,
        n.flags,
        n.lost,
        n.carried_lags,
        n.carried_ends,
        n.carried_flags,
        n.carried_ages,
        n.members,
        n.members_age,
        n.group_state,
        n.parts,
        n.never,
        n.oldest_age,
        n.total_lag,
        n.max_lag,
        n.max_part,
        n.lagging,
        n.none_total,
        n.none_max,
        n.none_max_part,
        n.none_lagging,
        n.moved_age,
        n.known_age,
        n.absent_age,
        n.ends_asked,
        n.ends_answered
    from every_lag_sample as n
    where n.target_id = t.id and n.tenant_id = t.tenant_id
    order by n.ts desc
    limit 1
) as s on true
