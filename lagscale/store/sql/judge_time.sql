-- Judges each ask by time from its newest rows, as far back as its oldest unread message came, and from the rows of
-- the partition whose message has waited longest; else says "undecided".
-- Tenants: each ask names its tenant, and only that tenant's rows of its targets are read.
-- include part_asks
select
    a.ask,
    case
        when g.stale then 'unknown'
        when not g.decidable or not g.hot or m.maybe_stuck or w.told is not true then 'undecided'
        when h.lasted and g.members is null then 'unknown'
        when h.lasted and a.drain > 0 then 'undecided'
        when h.lasted then 'sustained'
        when w.longest > a.level or not (g.is_active or g.is_idle or g.untold) then 'undecided'
        when g.untold then 'unknown'
        else 'calm'
    end as verdict,
    case
        when g.stale then 'stale'
        when h.lasted and g.members is null then 'members_unknown'
        when h.lasted then 'lasted'
        when g.untold then 'activity_untold'
        else 'no_breach'
    end as reason,
    case
        when h.lasted and g.members is not null then
-- include part_capped
        when h.lasted is not true and (g.is_active or g.is_idle) then 0.0
    end as value,
    case
        when h.lasted then g.members is not null or null
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
    w.lower as wait_lower,
    w.estimate as wait_estimate,
    w.upper as wait_upper,
    g.members,
    g.absent
from asks as a
-- include part_gate
-- include part_maybe_stuck
left join lateral (
    -- The time lag of every partition now, where the ends since its message came are without a fall.
    select
        bool_and(c.told) as told,
        max(c.lower) as longest,
        (array_agg(c.target_id order by c.lower desc, c.target_id, c.part) filter (where c.part is not null))[1] as target_id,
        (array_agg(c.part order by c.lower desc, c.target_id, c.part) filter (where c.part is not null))[1] as part,
        (array_agg(c.lower order by c.estimate desc, c.lower desc, c.upper desc) filter (where c.part is not null))[1] as lower,
        (array_agg(c.estimate order by c.estimate desc, c.lower desc, c.upper desc) filter (where c.part is not null))[1] as estimate,
        (array_agg(c.upper order by c.estimate desc, c.lower desc, c.upper desc) filter (where c.part is not null))[1] as upper
    from (
        select t.target_id, k.part, k.lower, k.estimate, k.upper, n.oldest_age = 0 and k.told as told
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
                    case when p.lag > 0 and (a.earliest or coalesce(p.flag, 0) & 1 = 0) then p.ending - p.lag end
                    order by p.part
                ) as positions
            from unnest(n.lags, n.ends, n.flags) with ordinality as p (lag, ending, flag, part)
        ) as q
        left join lateral (
            -- The newest round that none of the messages had come to.
            select s.ts
            from every_lag_sample as s
            where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts < n.ts
                and not exists (
                    select
                    from unnest(q.positions, s.ends) as p (position, ending)
                    where p.position is not null and coalesce(p.ending > p.position, true)
                )
            order by s.ts desc
            limit 1
        ) as f on true
        cross join lateral (
            with rounds as (
                select
                    s.ts,
                    s.ends,
                    coalesce(s.ends_asked, 0) as asked,
                    coalesce(s.ends_answered, 0) as answered,
                    s.epoch = n.epoch and cardinality(s.ends) = cardinality(n.ends) as comparable,
                    lag(s.ts) over (order by s.ts) as before_ts,
                    lag(s.ends) over (order by s.ts) as before_ends,
                    lag(coalesce(s.ends_asked, 0)) over (order by s.ts) as before_asked,
                    lag(coalesce(s.ends_answered, 0)) over (order by s.ts) as before_answered
                from every_lag_sample as s
                where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts >= f.ts and s.ts <= n.ts
            ),

            course as materialized (
                select r.*, p.part, p.position, p.ending, p.before_ending
                from rounds as r
                cross join lateral unnest(q.positions, r.ends, r.before_ends)
                with ordinality as p (position, ending, before_ending, part)
                where p.position is not null
            ),

            passed as (
                -- Where no end fell, there is one such round for each partition.
                select
                    t.target_id as target,
                    e.part,
                    e.ts,
                    e.position,
                    (extract(epoch from n.ts - e.ts) * 1000)::bigint as new_age,
                    e.asked,
                    e.answered,
                    e.ending,
                    (extract(epoch from n.ts - e.before_ts) * 1000)::bigint as old_age,
                    e.before_asked,
                    e.before_answered,
                    e.before_ending
                from course as e
                where e.ending > e.position and e.before_ending <= e.position
            ),

            bounds as (
-- include part_bounds
            )

            select b.part, b.lower, b.estimate, b.upper, true as told
            from bounds as b
            union all
            -- A hole, a fall, another topic id, or no round without the message: nothing is told.
            select null, 0, 0, null, coalesce(
                bool_and(e.comparable and e.ending is not null and coalesce(e.ending >= e.before_ending, true)), false
            )
            from course as e
        ) as k
        -- Conditions on the gate alone: when they are false, nothing below is read.
        where g.decidable and g.hot and a.by_time
    ) as c
) as w on true
left join lateral (
    -- Has the longest wait been above the threshold for the sustain time, without a gap?
    with trail as materialized (
        select
            r.ts,
            r.ends[w.part] as ending,
            r.ends[w.part] - r.lags[w.part] as position,
            r.epoch,
            coalesce(r.flags[w.part], 0) as flag,
            cardinality(r.lags) < w.part as unnamed,
            r.ts + coalesce(r.ends_answered, 0) * interval '1 millisecond' as read_at,
            lag(r.ts) over (order by r.ts) as before_ts,
            lag(r.ends[w.part]) over (order by r.ts) as before_ending,
            max(r.ts) filter (where r.ts <= g.at - a.sustain_time) over () as anchor
        from every_lag_sample as r
        where r.target_id = w.target_id and r.tenant_id = a.tenant_id and r.ts <= g.at
            and r.ts >= g.at - a.sustain_time - 2 * a.gap_time - a.level * interval '1 millisecond'
            and (r.lags[w.part] is not null or cardinality(r.lags) < w.part)
    )

    select
        bool_and(
            (a.earliest or k.flag & 1 = 0)
            and exists (
                select
                from trail as r
                where r.read_at < k.ts - a.level * interval '1 millisecond' and r.ending > k.position
            )
        ) filter (where k.ts >= k.anchor)
        and coalesce(max(k.ts - k.before_ts) filter (where k.ts > k.anchor) <= a.gap_time, a.sustain = 0)
        -- What came before the partition was named, or before its commit was reset, proves nothing.
        and not bool_or(k.unnamed or k.flag & 80 <> 0)
        and not coalesce(bool_or(k.ending < k.before_ending), false)
        and min(k.epoch) = max(k.epoch) as lasted
    from trail as k
    where w.told and w.longest > a.level
) as h on true
cross join lateral (
    select
        w.estimate / 1000.0::float8 * greatest(ceil(coalesce(g.members, 0) / a.per_replica::float8), 1) as amount,
        g.partitions,
        g.lagging
) as v
