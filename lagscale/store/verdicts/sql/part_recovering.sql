-- Whether each lasting backlog recovers by itself, of asks with `drainSeconds`.
-- needs: a(drain, by_total, sustain_time, lag_threshold), evaluation_time(at), samples(target, part, ts, lag)
-- needs: islands(target, part, fresh, span), comparable_totals(of, at, total)
-- gives: cte recovering(recovers)
-- slots: limit.RECOVERY_MIN_SAMPLES
    recovery_points as (
        -- The samples of the last sustain time of what has lasted.
        select k.target, k.part, s.ts, s.lag
        from islands as k
        inner join samples as s on s.target = k.target and s.part = k.part
        where a.drain > 0 and not a.by_total and k.fresh and k.span >= a.sustain_time
        union all
        select null, null, n.at, n.total
        from comparable_totals as n
        where a.drain > 0 and a.by_total and n.of = 'lag'
    ),

    recovering as (
        -- The least-squares line through them in whole numbers: it falls, and is at the threshold soon enough.
        select
            l.n >= :limit.RECOVERY_MIN_SAMPLES
            and l.slope < 0
            and l.sum_lag * l.spread + l.slope * (l.n * a.drain - l.sum_t)
            <= a.lag_threshold * l.n * l.spread as recovers
        from (
            select
                f.*,
                f.n * f.sum_tt - f.sum_t * f.sum_t as spread,
                f.n * f.sum_t_lag - f.sum_t * f.sum_lag as slope
            from (
                select
                    count(m.t)::numeric as n,
                    coalesce(sum(m.t), 0) as sum_t,
                    coalesce(sum(m.lag), 0) as sum_lag,
                    coalesce(sum(m.t * m.t), 0) as sum_tt,
                    coalesce(sum(m.t * m.lag), 0) as sum_t_lag
                from (
                    -- A partition whose newest sample is older has none of them, and so cannot be told.
                    select
                        o.target,
                        o.part,
                        case when o.ts >= i.at - a.sustain_time then o.lag::numeric end as lag,
                        case
                            when o.ts >= i.at - a.sustain_time then round(extract(epoch from o.ts - i.at) * 1000)
                        end as t
                    from recovery_points as o
                    cross join evaluation_time as i
                ) as m
                group by m.target, m.part
            ) as f
        ) as l
    )
