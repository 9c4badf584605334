-- The asks with their durations as intervals and their clock; a part of the statements that judge.
-- needs: %(asks)s
-- gives: cte asks
asks as (
    select
        a.*,
        coalesce(a.judged_at, statement_timestamp()) as now_at,
        coalesce(a.upto, 'infinity'::timestamptz) as until,
        a.sustain * interval '1 millisecond' as sustain_time,
        a.max_gap * interval '1 millisecond' as gap_time,
        a.stale_after * interval '1 millisecond' as stale_time,
        a.activation_sustain * interval '1 millisecond' as activation_time,
        a.work * interval '1 millisecond' as work_time,
        a.lookback * interval '1 millisecond' as lookback_time,
        -- The level of time lag is in milliseconds.
        case when a.by_time then a.lag_threshold * 1000 else a.lag_threshold end as level,
        -- Values are computed in whole thousandths. A bigint could not hold those of many replicas.
        a.target_lag::numeric * 1000 as target_milli,
        a.stuck_after * interval '1 millisecond' as stuck_time
    from unnest(%(asks)s::full_ask[]) as a
)
