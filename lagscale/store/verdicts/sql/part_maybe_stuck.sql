-- Whether a partition of an ask that is above the threshold by its gate may be stuck.
-- needs: a(targets, tenant_id, until, earliest, stuck_after, stuck_time), g(decidable, above_threshold)
-- gives: lateral m(maybe_stuck)
-- slots: flag.LOST, flag.UNCOMMITTED
left join lateral (
    -- May a partition be stuck? Not one that is at another position than `stuckAfterSeconds` ago; under `earliest` a
    -- position may also move by itself.
    select bool_or(
        a.earliest
        or (
            c.lag > 0 and c.flag & :flag.UNCOMMITTED = 0
            and (p.then_lag is null or p.then_ending - p.then_lag = c.position or c.flag & :flag.LOST <> 0)
        )
    ) as maybe_stuck
    from unnest(a.targets) as t (target_id)
    cross join lateral (
        select s.*
        from every_lag_sample as s
        where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts <= a.until
        order by s.ts desc
        limit 1
    ) as n
    cross join lateral (
        select s.lags, s.ends
        from every_lag_sample as s
        where s.target_id = t.target_id and s.tenant_id = a.tenant_id and s.ts <= n.ts - a.stuck_time
        order by s.ts desc
        limit 1
    ) as o
    cross join lateral unnest(
        n.lags, n.ends, n.flags, n.carried_lags, n.carried_ends, n.carried_flags, o.lags, o.ends
    ) as p (lag, ending, flag, carried_lag, carried_ending, carried_flag, then_lag, then_ending)
    cross join lateral (
        select
            coalesce(p.lag, p.carried_lag) as lag,
            case when p.lag is null then p.carried_ending - p.carried_lag else p.ending - p.lag end as position,
            coalesce(case when p.lag is null then p.carried_flag else p.flag end, 0) as flag
    ) as c
    where g.decidable and g.above_threshold and a.stuck_after > 0
) as m on true
