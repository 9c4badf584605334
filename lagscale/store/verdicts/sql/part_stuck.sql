-- Partitions that are stuck, of asks with `stuckAfterSeconds`.
-- needs: a(stuck_after, stuck_time, gap_time)
-- needs: samples(target, part, ts, lag, ending, position, epoch, flag, running, disturbed)
-- needs: samples(previous_ts, previous_ending, previous_flag, previous_position, previous_epoch)
-- gives: cte stuck_partitions(target, part)
-- slots: flag.LOST, flag.UNCOMMITTED
    stall_candidates as (
        -- Where a stretch may begin in which lag stays and no commit moves although the group runs.
        select
            s.target,
            s.part,
            s.ts,
            max(s.ts) filter (where s.lag <= 0 or not s.running) over partition as broken_at,
            max(s.ts) filter (
                where s.previous_ts is not null
                    and (
                        s.epoch <> s.previous_epoch
                        or (
                            s.ts - s.previous_ts > a.gap_time
                            and (s.disturbed or s.lag - (s.ending - s.previous_ending) <= 0)
                        )
                        or not (
                            s.flag & :flag.LOST <> 0
                            or s.flag & s.previous_flag & :flag.UNCOMMITTED <> 0
                            or (s.position = s.previous_position and (s.flag | s.previous_flag) & :flag.LOST = 0)
                        )
                    )
            ) over partition as moved_at
        from samples as s
        where a.stuck_after > 0
        window partition as (partition by s.target, s.part)
    ),

    stuck_partitions as materialized (
        select k.target, k.part
        from stall_candidates as k
        where k.ts > coalesce(k.broken_at, '-infinity') and k.ts >= coalesce(k.moved_at, '-infinity')
        group by k.target, k.part
        having max(k.ts) - min(k.ts) >= a.stuck_time
    )
