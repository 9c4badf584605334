-- For how long the oldest unread message of each sample has waited, of asks by time.
-- needs: a(by_time, tenant_id, until, earliest), scoped_partitions(target, part, lag)
-- needs: samples(target, part, ts, lag, position)
-- gives: cte time_lags(target, part, ts, lower, upper, estimate)
-- slots: flag.UNCOMMITTED
    history_start as (
        -- How far back ends are needed to tell since when each partition's oldest unread message has waited.
        select r.target, coalesce(max(r.ts), '-infinity') as since
        from (
            select
                s.target,
                array_agg(s.part order by s.part) as parts,
                array_agg(s.position order by s.part) as positions,
                min(s.ts) as ts
            from (
                select k.target, k.part, min(k.position) as position, min(k.ts) as ts
                from samples as k
                where a.by_time and k.lag > 0
                group by k.target, k.part
            ) as s
            group by s.target
        ) as w
        left join lateral (
            select h.ts
            from every_lag_sample as h
            where h.target_id = w.target and h.tenant_id = a.tenant_id and h.ts < w.ts
                and not exists (
                    select
                    from unnest(w.parts, w.positions) as p (part, position)
                    where coalesce(h.ends[p.part] > p.position, true)
                )
            order by h.ts desc
            limit 1
        ) as f on true
        cross join lateral (select w.target, f.ts) as r
        group by r.target
    ),

    end_history as materialized (
        -- Read once, for all partitions.
        select
            f.target, s.ts, s.epoch, s.lags, s.ends, s.flags,
            coalesce(s.ends_asked, 0) as asked,
            coalesce(s.ends_answered, 0) as answered
        from history_start as f
        cross join lateral (
            select r.*
            from every_lag_sample as r
            where r.target_id = f.target and r.tenant_id = a.tenant_id and r.ts >= f.since and r.ts <= a.until
        ) as s
    ),

    partition_ends as (
        -- The ends since then of every partition with lag; NULL where a round does not name it. The round
        -- before a partition was first seen does not name it either.
        select
            c.target,
            c.part,
            h.ts,
            h.epoch,
            h.ends[c.part] as ending,
            h.ends[c.part]
            - case
                when coalesce(h.flags[c.part], 0) & :flag.UNCOMMITTED <> 0 and not a.earliest then 0
                else h.lags[c.part]
            end as position,
            h.asked,
            h.answered,
            c.part > cardinality(h.ends) as starts_series
        from end_history as h
        inner join scoped_partitions as c on c.target = h.target and c.lag > 0
        where h.ends[c.part] is not null or c.part > cardinality(h.ends)
    ),

    end_series as materialized (
        -- In runs in which the end never fell: under one topic id, since a birth.
        select
            k.*,
            lag(k.ts) over run as previous_ts,
            lag(k.ending) over run as previous_ending,
            lag(k.asked) over run as previous_asked,
            lag(k.answered) over run as previous_answered
        from (
            select
                n.*,
                count(*) filter (where n.falls) over (partition by n.target, n.part order by n.ts) as run
            from (
                select
                    m.*,
                    coalesce(
                        m.starts_series
                        or m.ending < lag(m.ending) over (partition by m.target, m.part order by m.ts)
                        or m.epoch <> lag(m.epoch) over (partition by m.target, m.part order by m.ts),
                        false
                    ) as falls
                from partition_ends as m
            ) as n
        ) as k
        where k.ending is not null
        window run as (partition by k.target, k.part, k.run order by k.ts)
    ),

    end_events as (
        -- Ends, and positions that look for the first end above them; no self-join, for its size would be guessed.
        select
            k.target,
            k.part,
            k.run,
            k.ending as offset_at,
            true as is_end,
            null::timestamptz as ts,
            array[
                (extract(epoch from k.ts) * 1000)::bigint, k.asked, k.answered, k.ending,
                (extract(epoch from k.previous_ts) * 1000)::bigint,
                k.previous_asked, k.previous_answered, k.previous_ending
            ] as facts
        from end_series as k
        union all
        select k.target, k.part, k.run, k.position, false, k.ts, null
        from end_series as k
        where k.position < k.ending
    ),

    passing_ends as (
        -- For each sample the first end that counts its oldest unread message, and the end before; milliseconds ago.
        select
            w.target,
            w.part,
            w.ts,
            w.offset_at as position,
            (extract(epoch from w.ts) * 1000)::bigint - w.passing[1] as new_age,
            w.passing[2] as asked,
            w.passing[3] as answered,
            w.passing[4] as ending,
            (extract(epoch from w.ts) * 1000)::bigint - w.passing[5] as old_age,
            w.passing[6] as previous_asked,
            w.passing[7] as previous_answered,
            w.passing[8] as previous_ending
        from (
            select
                e.*,
                -- From the greatest offset down: of the ends above, the oldest one.
                min(e.facts) over (
                    partition by e.target, e.part, e.run
                    order by e.offset_at desc, e.is_end
                    rows unbounded preceding
                ) as passing
            from end_events as e
        ) as w
        where not w.is_end
    ),

-- include part_bounds
