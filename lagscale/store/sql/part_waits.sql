    -- For how long the oldest unread message of each sample has waited, of asks by time; from `scope` and `samples`.
    furthest as (
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

    named as (
        -- The ends since then of every partition with lag; NULL where a round does not name it. A birth needs no look:
        -- the round before it did not name the partition.
        select
            c.target,
            c.part,
            h.ts,
            h.epoch,
            h.ends[c.part] as ending,
            h.asked,
            h.answered,
            c.part > cardinality(h.ends) as begins
        from furthest as f
        inner join scope as c on c.target = f.target and c.lag > 0
        inner join lateral (
            select s.ts, s.epoch, s.ends, coalesce(s.ends_asked, 0) as asked, coalesce(s.ends_answered, 0) as answered
            from every_lag_sample as s
            where s.target_id = f.target and s.tenant_id = a.tenant_id and s.ts >= f.since and s.ts <= a.until
        ) as h on h.ends[c.part] is not null or c.part > cardinality(h.ends)
    ),

    course as materialized (
        -- In runs in which the end never fell: under one topic id, since a birth.
        select
            k.*,
            lag(k.ts) over run as before_ts,
            lag(k.ending) over run as before_ending,
            lag(k.asked) over run as before_asked,
            lag(k.answered) over run as before_answered
        from (
            select
                n.*,
                count(*) filter (where n.falls) over (partition by n.target, n.part order by n.ts) as run
            from (
                select
                    m.*,
                    coalesce(
                        m.begins
                        or m.ending < lag(m.ending) over (partition by m.target, m.part order by m.ts)
                        or m.epoch <> lag(m.epoch) over (partition by m.target, m.part order by m.ts),
                        false
                    ) as falls
                from named as m
            ) as n
        ) as k
        where k.ending is not null
        window run as (partition by k.target, k.part, k.run order by k.ts)
    ),

    passed as (
        -- For each sample the first end that counts its oldest unread message, and the end before; milliseconds ago.
        select distinct on (s.target, s.part, s.ts)
            s.target,
            s.part,
            s.ts,
            s.position,
            (extract(epoch from s.ts - w.ts) * 1000)::bigint as new_age,
            w.asked,
            w.answered,
            w.ending,
            (extract(epoch from s.ts - w.before_ts) * 1000)::bigint as old_age,
            w.before_asked,
            w.before_answered,
            w.before_ending
        from samples as s
        inner join course as h on h.target = s.target and h.part = s.part and h.ts = s.ts
        inner join course as w
            on w.target = s.target and w.part = s.part and w.run = h.run and w.ts <= s.ts and w.ending > s.position
        where a.by_time and s.lag > 0
        order by s.target, s.part, s.ts, w.ts
    ),

    waits as materialized (
        -- The message came after the older end was asked for, and before the newer one was answered; between the two
        -- messages are taken as spread evenly, and each end as read in the middle of its request.
-- include part_bounds
    ),
