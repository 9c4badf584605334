        -- Bounds and estimate of time lags, milliseconds, from the two ends around each one's message in `passing_ends`.
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
