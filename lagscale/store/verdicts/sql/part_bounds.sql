-- Bounds and estimate of time lags, milliseconds, from the two ends around each one's oldest unread message.
-- needs: passing_ends(target, part, ts, position, new_age, asked, answered, ending)
-- needs: passing_ends(old_age, previous_asked, previous_answered, previous_ending)
-- gives: cte time_lags(target, part, ts, lower, upper, estimate)
time_lags as materialized (
    -- The message came after the older end was asked for, and before the newer one was answered; between the two
    -- messages are taken as spread evenly, and each end as read in the middle of its request.
    select
        b.target,
        b.part,
        b.ts,
        b.lower,
        b.upper,
        case
            when b.upper is null then b.lower
            else least(greatest(
                div(
                    b.old_twice::numeric * (b.ending - b.previous_ending)
                    - (b.old_twice - b.new_twice)::numeric * (b.position - b.previous_ending),
                    2 * nullif(b.ending - b.previous_ending, 0)
                )::bigint,
                b.lower
            ), b.upper)
        end as estimate
    from (
        select
            p.*,
            greatest(p.new_age - p.answered, 0) as lower,
            case
                when p.old_age is not null
                    then greatest(p.old_age - p.previous_asked, p.new_age - p.answered, 0)
            end as upper,
            2 * p.old_age - p.previous_asked - p.previous_answered as old_twice,
            2 * p.new_age - p.asked - p.answered as new_twice
        from passing_ends as p
    ) as b
)
