-- Whether each lasting backlog recovers by itself, of asks with `drainSeconds`.
-- needs: a(drain, by_total, sustain, sustain_time, lag_threshold), evaluation_time(at), samples(target, part, ts, lag)
-- needs: islands(target, part, fresh, span), comparable_totals(of, at, total)
-- gives: cte recovering(recovers)
-- slots: limit.RECOVERY_MIN_SAMPLES
    recovery_points as (
        -- The samples of the last sustain time of each sustained island.
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
            and l.duration * 4 >= a.sustain
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
                    max(m.t) - min(m.t) as duration,
                    coalesce(sum(m.t), 0) as sum_t,
                    coalesce(sum(m.lag), 0) as sum_lag,
                    coalesce(sum(m.t * m.t), 0) as sum_tt,
                    coalesce(sum(m.t * m.lag), 0) as sum_t_lag
                from (
                    -- From the highest sample on, of equal ones the latest: a rise is no part of the line.
                    select
                        e.target,
                        e.part,
                        case when e.t >= e.peak_t then e.lag end as lag,
                        case when e.t >= e.peak_t then e.t end as t
                    from (
                        select
                            k.*,
                            first_value(k.t) over (
                                partition by k.target, k.part order by k.lag desc nulls last, k.t desc
                            ) as peak_t
                        from (
                            -- A partition whose newest sample is older has none of them, and is not determined.
                            select
                                o.target,
                                o.part,
                                case when o.ts >= i.at - a.sustain_time then o.lag::numeric end as lag,
                                case
                                    when o.ts >= i.at - a.sustain_time
                                        then round(extract(epoch from o.ts - i.at) * 1000)
                                end as t
                            from recovery_points as o
                            cross join evaluation_time as i
                        ) as k
                    ) as e
                ) as m
                group by m.target, m.part
            ) as f
        ) as l
    )
