-- The value of a sustained ask: as many replicas as divide the partitions evenly, as can have partitions, and as those
-- with lag need.
-- needs: a(even_split, target_lag, per_replica, allow_idle, limit_lagging), v(amount, partitions, lagging)
-- gives: lateral capped(value)
cross join lateral (
    select
        least(
            case
                when a.even_split then a.target_lag * coalesce(
                    (
                        select min(d.replicas)
                        from generate_series(1, ceil(v.partitions / a.per_replica::float8)::int) as d (replicas)
                        where mod(ceil(v.partitions / a.per_replica::float8)::int, d.replicas) = 0
                            and d.replicas >= ceil(v.amount / a.target_lag)
                    ),
                    ceil(v.partitions / a.per_replica::float8)
                )
                else v.amount
            end,
            case when not a.allow_idle then ceil(v.partitions / a.per_replica::float8) * a.target_lag end,
            case when a.limit_lagging then ceil(v.lagging / a.per_replica::float8) * a.target_lag end
        ) as value
) as capped
