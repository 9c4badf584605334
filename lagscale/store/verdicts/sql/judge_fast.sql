-- Judges each ask from its targets' newest rows alone, or from the rows of the partition with the highest lag; the rest
-- is "undecided".
-- Tenants: each ask names its tenant, and only that tenant's rows of its targets are read.
-- slots: flag.FIRST_SEEN, flag.RESET_BEGINS, flag.UNCOMMITTED
with
-- include part_asks
select
    a.ask,
    case
        when g.stale then 'unknown'
        when not g.decidable or m.maybe_stuck then 'undecided'
        -- Recovery depends on samples of more than one partition.
        when h.is_sustained and a.drain > 0 then 'undecided'
        when h.is_sustained then 'sustained'
        when (g.above_threshold and q.too_short is not true) or not (g.is_active or g.is_idle or g.undetermined)
            then 'undecided'
        when g.undetermined then 'unknown'
        else 'calm'
    end as verdict,
    case
        when g.stale then 'stale'
        when h.is_sustained then 'lasted'
        when g.undetermined then 'activity_untold'
        when g.above_threshold then 'not_yet'
        else 'no_breach'
    end as reason,
    case
        when h.is_sustained then (capped.value_milli * 0.001)::float8
        when g.is_active or g.is_idle then 0.0
    end as value,
    case when h.is_sustained or g.is_active then true when g.is_idle then false end as active,
    g.at,
    a.now_at,
    case when g.stale then 0 else g.total end as total,
    g.partitions,
    case when g.stale then g.partitions else 0 end as missing,
    g.stale as incomplete,
    case when g.stale then 0 else g.lagging end as lagging,
    g.members,
    g.absent
from asks as a
-- include part_gate
cross join lateral (select g.total::numeric * 1000 as amount_milli, g.partitions, g.lagging) as v
-- include part_capped
-- include part_maybe_stuck
left join lateral (
    -- Whether the partition with the highest lag was above the threshold for the sustain time, without a gap.
    select
        coalesce(bool_and(k.lag > a.lag_threshold) filter (where k.ts >= k.anchor), false)
        and coalesce(max(k.ts - k.previous_ts) filter (where k.ts > k.anchor) <= a.gap_time, a.sustain = 0)
        and not coalesce(bool_or(k.starts_series) filter (where k.ts > k.anchor), false)
        and bool_or(k.ts = k.anchor) as is_sustained
    from (
        select
            w.*,
            lag(w.ts) over (order by w.ts) as previous_ts,
            max(w.ts) filter (where w.ts <= w.newest - a.sustain_time) over () as anchor
        from (
            select
                r.ts,
                p.newest,
                case
                    when coalesce(r.flags[p.part], 0) & :flag.UNCOMMITTED <> 0 and not a.earliest then 0
                    else r.lags[p.part]
                end as lag,
                -- A reset starts a new island, and samples before a partition was first seen do not count.
                coalesce(r.flags[p.part], 0) & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0 as starts_series
            from (
                select
                    n.target_id,
                    n.ts as newest,
                    1 + case
                        when a.earliest and n.none_max > n.max_lag then n.none_max_part
                        else n.max_part
                    end as part
                from unnest(a.targets) as t (target_id)
                cross join lateral (
                    select s.*
                    from every_lag_sample as s
                    where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts <= a.until
                    order by s.ts desc
                    limit 1
                ) as n
                -- Conditions on the gate alone: when they are false, nothing below is read.
                where g.decidable and g.above_threshold and not a.by_total
                    and greatest(n.max_lag, case when a.earliest then n.none_max end) = g.greatest_lag
                limit 1
            ) as p
            inner join every_lag_sample as r
                on r.target_id = p.target_id and r.tenant_id = a.tenant_id
                and r.ts <= p.newest and r.ts >= p.newest - a.sustain_time - a.gap_time
            where r.lags[p.part] is not null
        ) as w
    ) as k
    having max(k.newest) = max(k.ts)
) as h on true
left join lateral (
    -- All partitions were calm at one complete round less than the sustain time ago, and no round since misses a
    -- sample: then every island has a known start and is too short, whichever partition it is of.
    select
        min(k.ts) filter (where k.ts > k.anchor) > max(k.ts) - a.sustain_time
        and bool_and(k.complete) filter (where k.ts >= k.anchor)
        and max(k.ts - k.previous_ts) filter (where k.ts > k.anchor) <= a.gap_time as too_short
    from (
        select
            w.ts,
            w.complete and w.parts = first_value(w.parts) over newest_first
            and w.epoch = first_value(w.epoch) over newest_first as complete,
            lag(w.ts) over (order by w.ts) as previous_ts,
            max(w.ts) filter (where w.greatest_lag <= a.lag_threshold) over () as anchor
        from (
            select
                r.ts,
                r.parts,
                r.epoch,
                r.oldest_age = 0 and r.never = 0 as complete,
                greatest(r.max_lag, case when a.earliest then r.none_max end) as greatest_lag
            from every_lag_sample as r
            where g.decidable and g.above_threshold and h.is_sustained is not true
                and not a.by_total and a.targets[2] is null
                and r.target_id = a.targets[1] and r.tenant_id = a.tenant_id and r.ts <= g.at
                and r.ts >= g.at - a.sustain_time - a.gap_time
        ) as w
        window newest_first as (order by w.ts desc)
    ) as k
) as q on true
