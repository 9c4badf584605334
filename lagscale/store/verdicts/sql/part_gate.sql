-- The gate: scalars of the newest row of each target of an ask; a part of the statements that judge.
-- needs: a(activation_lag, by_time, by_total, earliest, gap_time, invalid_is_zero)
-- needs: a(lag_threshold, now_at, stale_time, targets, tenant_id, until, work_time)
-- gives: lateral g(stale, decidable, above_threshold, is_active, is_idle, undetermined, at, total, partitions, lagging)
-- gives: lateral g(greatest_lag, members, absent)
-- slots: limit.MEMBERS_MAX_AGE_MS, note.NO_TOPIC
cross join lateral (
    select
        d.*,
        d.decidable and (d.progresses or (d.activity_total > a.activation_lag and d.members is distinct from 0))
        as is_active,
        d.decidable and not d.progresses and d.activity_total <= a.activation_lag and d.covered as is_idle,
        d.decidable and not d.progresses and d.activity_total <= a.activation_lag and not d.covered as undetermined
    from (
        select
            c.*,
            c.whole and c.present > 0 and c.at < a.now_at - a.stale_time and not a.by_total as stale,
            -- Every partition known, fresh, and counted in the newest total.
            c.whole and c.never = 0 and c.oldest >= a.now_at - a.stale_time and c.oldest >= c.at - a.gap_time
            as decidable,
            case when a.by_total then c.total else c.greatest_lag end
            > case when a.by_time then 0 else a.lag_threshold end as above_threshold,
            coalesce(c.progress_at > c.at - a.work_time, false) as progresses,
            c.coverage_at <= c.at - a.work_time as covered
        from (
            select
                max(n.ts) as at,
                -- All targets have a round, of one time, and something is in scope.
                coalesce(count(n.ts) = count(*) and min(n.ts) = max(n.ts) and sum(n.parts) > 0, false) as whole,
                count(*) filter (where n.notes & :note.NO_TOPIC = 0) as present,
                coalesce(array_agg(g.target_id) filter (where n.notes & :note.NO_TOPIC <> 0), '{}') as absent,
                sum(n.parts) as partitions,
                sum(n.never) as never,
                sum(n.lagging + case when a.earliest then n.none_lagging else 0 end) as lagging,
                min(n.ts - n.oldest_age * interval '1 millisecond') as oldest,
                sum(n.total_lag + case when a.earliest then n.none_total else 0 end)::bigint as total,
                sum(
                    n.total_lag
                    + case when a.earliest then n.none_total when a.invalid_is_zero then 0 else n.none_lagging end
                )::bigint as activity_total,
                max(greatest(n.max_lag, case when a.earliest then n.none_max end)) as greatest_lag,
                max(n.ts - n.moved_age * interval '1 millisecond') as progress_at,
                -- Not known in one target: not known at all.
                case
                    when count(n.known_age) = count(*) then max(n.ts - n.known_age * interval '1 millisecond')
                    else 'infinity'
                end as coverage_at,
                -- Of several readings at one time the youngest counts: ages in the upper bits, members in the lower.
                (
                    min(n.members_age * 4294967296 + n.members)
                        filter (where n.members_age <= :limit.MEMBERS_MAX_AGE_MS)
                    & 4294967295
                )::int as members
            from unnest(a.targets) as g (target_id)
            left join lateral (
                select s.*
                from every_lag_sample as s
                where s.target_id = g.target_id and s.tenant_id = a.tenant_id and s.ts <= a.until
                order by s.ts desc
                limit 1
            ) as n on true
        ) as c
    ) as d
) as g
