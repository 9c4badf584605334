-- Judges each ask by time from its newest rows, back to the arrival of its oldest unread message, and from the rows of
-- the partition whose message has waited longest; the rest is "undecided".
-- Tenants: each ask names its tenant, and only that tenant's rows of its targets are read.
-- slots: flag.FIRST_SEEN, flag.RESET_BEGINS, flag.UNCOMMITTED
with
-- include part_asks
select
    a.ask,
    case
        when g.stale then 'unknown'
        when not g.decidable or not g.above_threshold or m.maybe_stuck or w.is_determined is not true then 'undecided'
        when h.is_sustained and g.members is null then 'unknown'
        when h.is_sustained then 'sustained'
        when w.lower_bound > a.level or not (g.is_active or g.is_idle or g.undetermined) then 'undecided'
        when g.undetermined then 'unknown'
        else 'calm'
    end as verdict,
    case
        when g.stale then 'stale'
        when h.is_sustained and g.members is null then 'members_unknown'
        when h.is_sustained then 'lasted'
        when g.undetermined then 'activity_untold'
        else 'no_breach'
    end as reason,
    case
        when h.is_sustained and g.members is not null then (capped.value_milli * 0.001)::float8
        when h.is_sustained is not true and (g.is_active or g.is_idle) then 0.0
    end as value,
    case
        when h.is_sustained then g.members is not null or null
        when g.is_active then true
        when g.is_idle then false
    end as active,
    g.at,
    a.now_at,
    case when g.stale then 0 else g.total end as total,
    g.partitions,
    case when g.stale then g.partitions else 0 end as missing,
    g.stale as incomplete,
    case when g.stale then 0 else g.lagging end as lagging,
    w.lower as time_lag_lower,
    w.estimate as time_lag_estimate,
    w.upper as time_lag_upper,
    g.members,
    g.absent
from asks as a
-- include part_gate
-- include part_maybe_stuck
left join lateral (
    -- The current time lag of every partition whose ends have not fallen since its message arrived.
    select
        c.is_determined,
        c.longest_array[1] as lower_bound,
        (-c.longest_array[2])::int as target_id,
        (-c.longest_array[3])::int as part,
        c.bounds_array[1] as estimate,
        c.bounds_array[2] as lower,
        c.bounds_array[3] as upper
    from (
        -- The maximum of arrays is the first of an order without a sort; of equal waits the first partition.
        select
            bool_and(n.oldest_age = 0 and k.upper is not null) as is_determined,
            max(array[k.lower, -t.target_id, -k.part]) as longest_array,
            max(array[k.estimate, k.lower, k.upper]) as bounds_array
        from unnest(a.targets) as t (target_id)
        cross join lateral (
            select s.ts, s.lags, s.ends, s.flags, s.epoch, s.oldest_age
            from every_lag_sample as s
            where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts <= a.until
            order by s.ts desc
            limit 1
        ) as n
        cross join lateral (
            -- [partition + 1]: where the group reads next; NULL without lag.
            select
                array_agg(
                    case
                        when p.lag > 0 and (a.earliest or coalesce(p.flag, 0) & :flag.UNCOMMITTED = 0)
                            then p.ending - p.lag
                    end
                    order by p.part
                ) as positions
            from unnest(n.lags, n.ends, n.flags) with ordinality as p (lag, ending, flag, part)
        ) as q
        left join lateral (
            -- The newest round before any of the messages arrived.
            select s.ts
            from every_lag_sample as s
            where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts < n.ts
                and not exists (
                    select
                    from (select unnest(q.positions) as position, unnest(s.ends) as ending) as p
                    where p.position is not null and coalesce(p.ending > p.position, true)
                )
            order by s.ts desc
            limit 1
        ) as f on true
        left join lateral (
            with rounds as (
                select
                    s.ts,
                    s.ends,
                    coalesce(s.ends_asked, 0) as asked,
                    coalesce(s.ends_answered, 0) as answered,
                    s.epoch = n.epoch and cardinality(s.ends) = cardinality(n.ends) as comparable,
                    lag(s.ts) over (order by s.ts) as previous_ts,
                    lag(s.ends) over (order by s.ts) as previous_ends,
                    lag(coalesce(s.ends_asked, 0)) over (order by s.ts) as previous_asked,
                    lag(coalesce(s.ends_answered, 0)) over (order by s.ts) as previous_answered
                from every_lag_sample as s
                where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts >= f.ts and s.ts <= n.ts
            ),

            end_series as (
                -- A missing sample, an end that fell or another incarnation: undetermined. Else one round is the first
                -- with the message.
                select
                    p.part,
                    p.position,
                    case
                        when bool_and(
                            r.comparable and p.ending is not null and coalesce(p.ending >= p.previous_ending, true)
                        )
                            then min(array[
                                (extract(epoch from n.ts - r.ts) * 1000)::bigint, r.asked, r.answered, p.ending,
                                (extract(epoch from n.ts - r.previous_ts) * 1000)::bigint,
                                r.previous_asked, r.previous_answered, p.previous_ending
                            ]) filter (where p.ending > p.position and p.previous_ending <= p.position)
                    end as passing
                from rounds as r
                cross join lateral (
                    select
                        generate_subscripts(q.positions, 1) as part,
                        unnest(q.positions) as position,
                        unnest(r.ends) as ending,
                        unnest(r.previous_ends) as previous_ending
                ) as p
                where p.position is not null
                group by p.part, p.position
            ),

            passing_ends as (
                select
                    t.target_id as target,
                    e.part,
                    n.ts,
                    e.position,
                    e.passing[1] as new_age,
                    e.passing[2] as asked,
                    e.passing[3] as answered,
                    e.passing[4] as ending,
                    e.passing[5] as old_age,
                    e.passing[6] as previous_asked,
                    e.passing[7] as previous_answered,
                    e.passing[8] as previous_ending
                from end_series as e
            ),

-- include part_bounds
            -- Once for each partition; what is determined has an upper bound, for both ends are known.
            select b.part, b.lower, b.estimate, b.upper
            from time_lags as b
        ) as k on true
        -- Conditions on the gate alone: when they are false, nothing below is read.
        where g.decidable and g.above_threshold and a.by_time
    ) as c
) as w on true
left join lateral (
    -- Whether the longest wait was above the threshold for the sustain time, without a gap.
    with longest_series as materialized (
        select
            r.*,
            lag(r.ts) over (order by r.ts) as previous_ts,
            lag(r.ending) over (order by r.ts) as previous_ending
        from (
            select
                s.ts,
                s.ends[w.part] as ending,
                s.ends[w.part] - s.lags[w.part] as position,
                s.epoch,
                coalesce(s.flags[w.part], 0) as flag,
                cardinality(s.lags) < w.part as removed,
                s.ts + coalesce(s.ends_answered, 0) * interval '1 millisecond' as read_at
            from every_lag_sample as s
            where s.target_id = w.target_id and s.tenant_id = a.tenant_id and s.ts <= g.at
                and s.ts >= g.at - a.sustain_time - 2 * a.gap_time - a.level * interval '1 millisecond'
                and (s.lags[w.part] is not null or cardinality(s.lags) < w.part)
        ) as r
    )

    select
        bool_and(
            (a.earliest or k.flag & :flag.UNCOMMITTED = 0)
            and exists (
                select
                from longest_series as r
                where r.read_at < k.ts - a.level * interval '1 millisecond' and r.ending > k.position
            )
        ) filter (where k.ts >= o.anchor)
        and coalesce(max(k.ts - k.previous_ts) filter (where k.ts > o.anchor) <= a.gap_time, a.sustain = 0)
        -- Samples before the partition was first seen, or before its commit was reset, prove nothing.
        and not bool_or(k.removed or k.flag & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0)
        and not coalesce(bool_or(k.ending < k.previous_ending), false)
        and min(k.epoch) = max(k.epoch) as is_sustained
    from longest_series as k
    cross join (select max(r.ts) filter (where r.ts <= g.at - a.sustain_time) as anchor from longest_series as r) as o
    where w.is_determined and w.lower_bound > a.level
) as h on true
cross join lateral (
    select
        w.estimate::numeric * greatest((coalesce(g.members, 0) + a.per_replica - 1) / a.per_replica, 1) as amount_milli,
        g.partitions,
        g.lagging
) as v
-- include part_capped
