-- Judges each ask from every sample of its lookback: gaps and their bounds, missing partitions, carried totals.
-- Tenants: each ask names its tenant, and only that tenant's rows of its targets are read.
-- slots: flag.EXCLUDED, flag.FIRST_SEEN, flag.RESET, flag.RESET_BEGINS, flag.REWIND, flag.UNCOMMITTED
-- slots: limit.MEMBERS_MAX_AGE_MS, note.NO_TOPIC
with
-- include part_asks
select
    a.ask,
    j.verdict,
    j.reason,
    j.value,
    j.active,
    j.at,
    a.now_at,
    j.total,
    j.partitions,
    j.missing,
    j.incomplete,
    j.lagging,
    j.stuck_targets,
    j.stuck_partitions,
    j.stuck_lag,
    j.recovering,
    j.time_lag_lower,
    j.time_lag_estimate,
    j.time_lag_upper,
    j.members,
    j.activates_from_zero,
    j.absent,
    j.island_target,
    j.island_partition,
    j.island_lag,
    j.island_since,
    j.island_span,
    j.island_start_known
from asks as a
cross join lateral (
    with newest_rounds as materialized (
        -- One row per target, also where it has no round yet.
        select g.target_id as target, r.*
        from unnest(a.targets) as g (target_id)
        left join lateral (
            select s.*
            from every_lag_sample as s
            where s.target_id = g.target_id and s.tenant_id = a.tenant_id and s.ts <= a.until
            order by s.ts desc
            limit 1
        ) as r on true
    ),

    evaluation_time as materialized (
        select
            max(n.ts) as at,
            count(*) as targets,
            count(n.ts) as measured,
            count(*) filter (where n.notes & :note.NO_TOPIC <> 0) as absent_targets,
            coalesce(array_agg(n.target) filter (where n.notes & :note.NO_TOPIC <> 0), '{}') as absent,
            -- A row at T is the newest round; of several readings of the members the latest counts.
            (array_agg(n.members order by n.members_age)
                filter (
                    where n.members is not null and n.members_age <= :limit.MEMBERS_MAX_AGE_MS
                    and n.ts = (select max(m.ts) from newest_rounds as m)
                ))[1] as members,
            -- Rule of progress: the writer marks when a position last advanced in the topic's current incarnation.
            coalesce(bool_or(
                n.ts - n.moved_age * interval '1 millisecond' > (select max(m.ts) from newest_rounds as m) - a.work_time
            ), false) as progresses,
            -- Inactivity needs every partition covered since T - work.
            coalesce(bool_and(
                n.known_age is not null
                and n.ts - n.known_age * interval '1 millisecond'
                <= (select max(m.ts) from newest_rounds as m) - a.work_time
            ), false) as covered
        from newest_rounds as n
    ),

    scoped_partitions as materialized (
        -- The partitions in scope, each with its newest sample and that sample's time.
        select
            n.target,
            p.part,
            n.ts - coalesce(case when p.lag is null then p.carried_age else 0 end, 0) * interval '1 millisecond' as ts,
            coalesce(p.lag, p.carried_lag) is not null as has_sample,
            coalesce(p.lag, p.carried_lag) is not null
            and n.ts - coalesce(case when p.lag is null then p.carried_age else 0 end, 0) * interval '1 millisecond'
            >= a.now_at - a.stale_time as fresh,
            case
                when coalesce(case when p.lag is null then p.carried_flag else p.flag end, 0) & :flag.UNCOMMITTED <> 0
                    and not a.earliest then 0
                else coalesce(p.lag, p.carried_lag)
            end as lag,
            -- For activity an uncommitted partition with messages counts 1 (`latest`).
            case
                when coalesce(case when p.lag is null then p.carried_flag else p.flag end, 0) & :flag.UNCOMMITTED = 0
                    or a.earliest
                    then coalesce(p.lag, p.carried_lag)
                when a.invalid_is_zero then 0
                else least(coalesce(p.lag, p.carried_lag), 1)
            end as activity_lag
        from newest_rounds as n
        cross join lateral unnest(
            n.lags, n.flags, n.carried_lags, n.carried_flags, n.carried_ages
        ) with ordinality as p (lag, flag, carried_lag, carried_flag, carried_age, part)
        where coalesce(p.flag, 0) & :flag.EXCLUDED = 0
    ),

    current_total as materialized (
        -- Where the total at T is exact and its age does not matter, no run of totals has to be read.
        select
            n.*,
            n.exact and (n.activity_total <= a.activation_lag or n.members is distinct from 0) as tells_activity
        from (
            select
                coalesce(bool_and(c.has_sample and c.ts >= i.at - a.gap_time), false) as exact,
                sum(c.activity_lag) as activity_total,
                max(i.members) as members,
                max(i.at) as at
            from scoped_partitions as c
            cross join evaluation_time as i
        ) as n
    ),

    rounds as (
        -- The lookback, and per target the last round before it.
        select n.target, s.ts, s.epoch, s.lags, s.ends, s.flags, s.members, s.members_age
        from evaluation_time as i
        cross join newest_rounds as n
        cross join lateral (
            select w.ts, w.epoch, w.lags, w.ends, w.flags, w.members, w.members_age
            from every_lag_sample as w
            where w.target_id = n.target and w.tenant_id = a.tenant_id
                and w.ts >= i.at - a.lookback_time and w.ts <= a.until
            union all
            (
                select w.ts, w.epoch, w.lags, w.ends, w.flags, w.members, w.members_age
                from every_lag_sample as w
                where w.target_id = n.target and w.tenant_id = a.tenant_id and w.ts < i.at - a.lookback_time
                order by w.ts desc
                limit 1
            )
        ) as s
    ),

    raw_samples as materialized (
        select r.target, r.part, r.ts, r.epoch, r.ending, r.ending - r.stored as position, coalesce(r.flag, 0) as flag,
            case when coalesce(r.flag, 0) & :flag.UNCOMMITTED <> 0 and not a.earliest then 0 else r.stored end as lag,
            -- For activity an uncommitted partition with messages counts 1 (`latest`).
            case
                when coalesce(r.flag, 0) & :flag.UNCOMMITTED = 0 or a.earliest then r.stored
                when a.invalid_is_zero then 0
                else least(r.stored, 1)
            end as activity_lag,
            r.running,
            max(r.ts) filter (where coalesce(r.flag, 0) & :flag.FIRST_SEEN <> 0)
                over (partition by r.target, r.part) as first_seen_at
        from (
            -- `offset 0` keeps the planner from unnesting a round once for every partition in scope.
            select
                w.target,
                w.ts,
                w.epoch,
                coalesce(w.members >= 1 and w.members_age <= :limit.MEMBERS_MAX_AGE_MS, false) as running,
                u.*
            from rounds as w
            cross join lateral unnest(w.lags, w.ends, w.flags) with ordinality as u (stored, ending, flag, part)
            where u.stored is not null
            offset 0
        ) as r
        cross join current_total as n
        inner join scoped_partitions as c
            on c.target = r.target and c.part = r.part
            -- Partitions that are not above the threshold now matter for totals only.
            and (
                c.lag > a.lag_threshold or a.by_total or not n.tells_activity
                or ((a.stuck_after > 0 or a.by_time) and c.lag > 0)
            )
    ),

    removed_partitions as (
        -- A partition that a round no longer names is removed, with its samples until then.
        select c.target, c.part, max(r.ts) as at
        from rounds as r
        inner join scoped_partitions as c on c.target = r.target and c.part > cardinality(r.lags)
        group by c.target, c.part
    ),

    samples as materialized (
        -- Samples before a partition was last first seen do not count.
        select
            o.*,
            lag(o.ts) over neighbors as previous_ts,
            lag(o.lag) over neighbors as previous_lag,
            lag(o.ending) over neighbors as previous_ending,
            lag(o.flag) over neighbors as previous_flag,
            lag(o.position) over neighbors as previous_position,
            lag(o.epoch) over neighbors as previous_epoch,
            -- Commits only grow, except where one of these lies between two neighbors.
            coalesce(
                o.ending < lag(o.ending) over neighbors
                or o.position < lag(o.position) over neighbors
                or o.flag & :flag.UNCOMMITTED <> lag(o.flag) over neighbors & :flag.UNCOMMITTED
                or o.flag & (:flag.RESET | :flag.REWIND) <> 0
                or o.epoch <> lag(o.epoch) over neighbors,
                false
            ) as disturbed
        from raw_samples as o
        left join removed_partitions as u on u.target = o.target and u.part = o.part
        where (o.first_seen_at is null or o.ts >= o.first_seen_at) and (u.at is null or o.ts > u.at)
        window neighbors as (partition by o.target, o.part order by o.ts)
    ),

-- include part_time_lags
    ,

    measured_samples as materialized (
        -- The samples in the unit of the threshold: messages, or the lower bound of milliseconds.
        select
            s.*,
            lag(s.amount) over neighbors as previous_amount,
            lag(s.undetermined) over neighbors as previous_undetermined
        from (
            select
                k.*,
                case when a.by_time then coalesce(w.lower, 0) else k.lag end as amount,
                -- A lower bound below the threshold without an upper bound proves neither a breach nor calm.
                a.by_time and w.lower <= a.level and w.upper is null as undetermined
            from samples as k
            left join time_lags as w on w.target = k.target and w.part = k.part and w.ts = k.ts
        ) as s
        window neighbors as (partition by s.target, s.part order by s.ts)
    ),

-- include part_stuck
    ,

    current_partitions as materialized (
        -- Stuck partitions are excluded from verdict and value.
        select
            c.*,
            t.part is not null as is_stuck,
            case when a.by_time then coalesce(w.lower, 0) else c.lag end as amount,
            a.by_time and w.lower <= a.level and w.upper is null as undetermined,
            coalesce(w.lower, 0) as lower,
            coalesce(w.estimate, 0) as estimate,
            case when w.lower is null then 0 else w.upper end as upper
        from scoped_partitions as c
        left join stuck_partitions as t on t.target = c.target and t.part = c.part
        left join time_lags as w on w.target = c.target and w.part = c.part and w.ts = c.ts
    ),

    island_starts as (
        -- Where islands start, and whether that is known to be their true start.
        select
            s.target,
            s.part,
            s.ts,
            s.flag & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0
            or (
                s.previous_amount <= a.level
                and not coalesce(s.previous_undetermined, false)
                and s.ts - s.previous_ts <= a.gap_time
            )
            as start_known
        from measured_samples as s
        where s.amount > a.level
            and (
                s.previous_ts is null
                or s.previous_amount <= a.level
                or s.flag & :flag.RESET_BEGINS <> 0
                or (
                    s.ts - s.previous_ts > a.gap_time
                    and (
                        s.disturbed
                        or case
                            when a.by_time then s.amount - (extract(epoch from s.ts - s.previous_ts) * 1000)::bigint
                            else s.lag - (s.ending - s.previous_ending)
                        end <= a.level
                    )
                )
            )
    ),

    islands as materialized (
        -- The trailing island of each partition whose newest sample is a breach.
        select
            c.target,
            c.part,
            c.amount as lag,
            c.fresh,
            max(s.ts) as since,
            c.ts - max(s.ts) as span,
            coalesce(max(s.ts) filter (where s.start_known) = max(s.ts), false) as start_known
        from current_partitions as c
        left join island_starts as s on s.target = c.target and s.part = c.part
        where c.amount > a.level and not c.is_stuck
        group by c.target, c.part, c.amount, c.fresh, c.ts
    ),

    time_grid as materialized (
        -- Every sample time of the monitor with each partition's newest sample then.
        select
            t.ts as at,
            c.target,
            c.part,
            max(s.ts) over before as sample_ts
        from (select distinct r.ts from rounds as r, current_total as n where a.by_total or not n.tells_activity) as t
        cross join scoped_partitions as c
        left join samples as s on s.target = c.target and s.part = c.part and s.ts = t.ts
        window before as (partition by c.target, c.part order by t.ts)
    ),

    grid_samples as materialized (
        select
            g.at,
            g.target,
            g.part,
            s.ts as sample_ts,
            case when t.part is null then s.lag else 0 end as lag,
            s.activity_lag,
            s.ending,
            coalesce(g.sample_ts >= g.at - a.gap_time, false) as counted,
            b.first_seen_at,
            s.disturbances
        from time_grid as g
        left join (
            select
                k.*,
                count(*) filter (where k.disturbed) over (partition by k.target, k.part order by k.ts) as disturbances
            from samples as k
        ) as s on s.target = g.target and s.part = g.part and s.ts = g.sample_ts
        left join stuck_partitions as t on t.target = g.target and t.part = g.part
        left join (
            select o.target, o.part, max(o.first_seen_at) as first_seen_at
            from raw_samples as o
            group by o.target, o.part
        ) as b on b.target = g.target and b.part = g.part
    ),

    totals as materialized (
        select
            c.at,
            coalesce(sum(c.lag) filter (where c.counted), 0) as total,
            coalesce(sum(c.activity_lag) filter (where c.counted), 0) as activity_total,
            -- A partition first seen later counts 0; any other without a sample makes the sum a lower bound.
            bool_and(c.counted or coalesce(c.first_seen_at > c.at, false)) as exact,
            bool_and(coalesce(c.first_seen_at >= c.at, false)) as all_first_seen
        from grid_samples as c
        group by c.at
    ),

    thresholds as (
        select 'lag' as of, a.lag_threshold as level
        where a.by_total
        union all
        select 'activity', a.activation_lag
        from current_total as n
        where not n.tells_activity
    ),

    comparable_totals as materialized (
        -- A lower bound is counted when it is above the level, else that time is skipped.
        select
            l.of,
            l.level,
            t.at,
            v.total,
            t.all_first_seen,
            lag(t.at) over in_time as previous_at,
            lag(v.total) over in_time as previous_total
        from thresholds as l
        cross join totals as t
        cross join lateral (select case l.of when 'lag' then t.total else t.activity_total end as total) as v
        where t.exact or v.total > l.level
        window in_time as (partition by l.of order by t.at)
    ),

    total_starts as (
        select
            k.of,
            k.at,
            k.all_first_seen or (k.previous_total <= k.level and k.at - k.previous_at <= a.gap_time) as start_known
        from comparable_totals as k
        where k.total > k.level
            and (
                k.previous_at is null
                or k.previous_total <= k.level
                or (
                    k.at - k.previous_at > a.gap_time
                    and k.level >= (
                        -- The sum of the partitions' bounds between the two times, each at least 0; a partition
                        -- without a sample since proves nothing.
                        select coalesce(sum(greatest(v.lag - (newer.ending - older.ending), 0)), 0)
                        from grid_samples as newer
                        inner join grid_samples as older
                            on older.target = newer.target and older.part = newer.part and older.at = k.previous_at
                        cross join lateral (
                            select case k.of when 'lag' then newer.lag else newer.activity_lag end as lag
                        ) as v
                        where newer.at = k.at and newer.counted and older.disturbances = newer.disturbances
                    )
                )
            )
    ),

    runs as materialized (
        -- The newest counted total of each level with its trailing run.
        select
            n.of,
            n.at,
            n.total,
            n.total > n.level as above,
            n.at >= a.now_at - a.stale_time as fresh,
            s.since,
            n.at - s.since as span,
            s.start_known
        from (select distinct on (k.of) k.* from comparable_totals as k order by k.of, k.at desc) as n
        left join lateral (
            select
                max(t.at) as since,
                coalesce(max(t.at) filter (where t.start_known) = max(t.at), false) as start_known
            from total_starts as t
            where t.of = n.of and n.total > n.level
        ) as s on true
        union all
        select
            'activity', n.at, n.activity_total, n.activity_total > a.activation_lag, n.at >= a.now_at - a.stale_time,
            null, null, true
        from current_total as n
        where n.tells_activity
    ),

-- include part_recovering
    ,

    monitor_facts as (
        select
            i.*,
            coalesce(p.partitions, 0) as partitions,
            coalesce(p.missing, 0) as missing,
            coalesce(p.total, 0) as total,
            coalesce(p.stuck_lag, 0) as stuck_lag,
            case
                when a.by_time then
                    coalesce(z.estimate, 0)::numeric
                    * greatest((coalesce(i.members, 0) + a.per_replica - 1) / a.per_replica, 1)
                else (coalesce(p.total, 0) - coalesce(p.stuck_lag, 0))::numeric * 1000
            end as amount_milli,
            z.lower as time_lag_lower,
            z.estimate as time_lag_estimate,
            z.upper as time_lag_upper,
            coalesce(p.lagging, 0) as lagging,
            p.stuck_targets,
            p.stuck_partitions,
            i.at is not null and i.at < a.now_at - a.stale_time as stale,
            i.measured < i.targets or coalesce(p.missing, 0) > 0 as incomplete,
            case
                when a.by_total then
                    coalesce(l.fresh and l.above and l.span >= a.sustain_time, false)
                    -- The sustained backlog is no longer fresh, and 0 is not measured for the rest.
                    and (
                        coalesce(p.total > p.stuck_lag, p.total > 0, false)
                        or (i.measured = i.targets and p.missing = 0)
                    )
                else coalesce(h.is_sustained, false)
            end as is_sustained,
            case
                when a.by_total then coalesce(l.fresh and (not l.above or l.start_known), false)
                else not coalesce(h.open, false) and not coalesce(p.undetermined, false)
            end as start_known,
            case when a.by_total then coalesce(l.above, false) else coalesce(h.above_threshold, false) end
            as above_threshold,
            -- Only with members known and every partition fresh.
            coalesce(q.recovering and i.members is not null and i.measured = i.targets and p.missing = 0, false)
            as recovering,
            coalesce(b.fresh and b.above and (i.members is distinct from 0 or b.span >= a.activation_time), false)
            as backlog,
            coalesce(b.fresh and (not b.above or b.start_known), false) as backlog_determined,
            -- Only a fresh backlog proves activation from zero.
            coalesce(
                i.members = 0 and b.fresh and b.above and b.span >= a.activation_time
                and p.activity_total > a.activation_lag,
                false
            ) as activation_proven
        from evaluation_time as i
        left join (
            select
                count(*) as partitions,
                count(*) filter (where not c.fresh) as missing,
                sum(c.lag) filter (where c.fresh) as total,
                sum(c.lag) filter (where c.fresh and c.is_stuck) as stuck_lag,
                count(*) filter (where c.fresh and c.lag > 0 and not c.is_stuck) as lagging,
                bool_or(c.undetermined) filter (where c.fresh and not c.is_stuck) as undetermined,
                array_agg(c.target order by c.target, c.part) filter (where c.is_stuck) as stuck_targets,
                array_agg(c.part - 1 order by c.target, c.part) filter (where c.is_stuck) as stuck_partitions,
                sum(c.activity_lag) filter (where c.fresh) as activity_total
            from current_partitions as c
        ) as p on true
        left join (
            select
                count(*) > 0 as above_threshold,
                bool_or(k.fresh and k.span >= a.sustain_time) as is_sustained,
                bool_or(not k.start_known and k.span < a.sustain_time) as open
            from islands as k
        ) as h on true
        left join (
            select c.lower, c.estimate, c.upper
            from current_partitions as c
            where a.by_time and c.fresh and not c.is_stuck
            order by c.estimate desc, c.lower desc, c.upper desc nulls first
            limit 1
        ) as z on true
        left join (
            select bool_and(d.recovers) as recovering
            from recovering as d
        ) as q on true
        left join runs as l on l.of = 'lag'
        left join runs as b on b.of = 'activity'
    ),

    verdicts as (
        select
            f.*,
            f.is_sustained or f.backlog or f.progresses as is_active,
            case
                when f.is_sustained and (f.incomplete or a.by_time) and f.members is null then 'members_unknown'
                when f.is_sustained then 'lasted'
                when f.targets = 0 then 'nothing_to_measure'
                when f.measured < f.targets then 'no_data'
                when f.absent_targets = f.targets then 'no_topic'
                when f.partitions = 0 then 'nothing_to_measure'
                when f.stale then 'stale'
                when f.missing > 0 then 'missing'
                when not f.start_known then 'open_island'
                when not (f.backlog or f.progresses or (f.covered and f.backlog_determined)) then 'activity_untold'
                when f.above_threshold then 'not_yet'
                else 'no_breach'
            end as reason
        from monitor_facts as f
    )

    select
        v.verdict,
        v.reason,
        case v.verdict
            when 'calm' then 0.0
            when 'sustained' then
                (0.001 * greatest(
                    least(
                        capped.value_milli,
                        case
                            when v.recovering then
                                greatest((v.members + a.per_replica - 1) / a.per_replica, 1) * a.target_milli
                        end
                    ),
                    -- With a missing partition the value does not fall below that of the current members.
                    case when v.incomplete then (v.members + a.per_replica - 1) / a.per_replica * a.target_milli end
                ))::float8
        end as value,
        case when v.verdict <> 'unknown' then v.is_active end as active,
        v.at,
        v.total,
        v.partitions,
        v.missing,
        v.incomplete,
        v.lagging,
        v.stuck_targets,
        v.stuck_partitions,
        v.stuck_lag,
        v.verdict = 'sustained' and v.recovering as recovering,
        v.time_lag_lower,
        v.time_lag_estimate,
        v.time_lag_upper,
        v.members,
        v.verdict = 'unknown' and v.activation_proven as activates_from_zero,
        v.absent,
        e.target as island_target,
        e.part - 1 as island_partition,
        e.lag as island_lag,
        e.since as island_since,
        e.span as island_span,
        e.start_known as island_start_known
    from (
        select
            w.*,
            case
                when w.reason = 'lasted' then 'sustained'
                when w.reason in ('not_yet', 'no_breach') then 'calm'
                else 'unknown'
            end as verdict
        from verdicts as w
    ) as v
-- include part_capped
    left join lateral (
        select *
        from (
            select k.target, k.part, k.lag, k.since, k.span, k.start_known
            from islands as k
            where k.fresh and not a.by_total
            union all
            select null, null, r.total, r.since, r.span, r.start_known
            from runs as r
            where r.of = 'lag' and r.above and r.fresh
        ) as candidates
        order by span desc, lag desc, target, part
        limit 1
    ) as e on true
) as j
order by a.ask
