-- The value of a sustained ask in thousandths, limited to replicas that divide the partitions evenly, that get a
-- partition, and that partitions with lag need.
-- needs: a(even_split, target_milli, per_replica, allow_idle, limit_lagging), v(amount_milli, partitions, lagging)
-- gives: lateral capped(value_milli)
cross join lateral (
    select
        least(
            case
                when a.even_split then a.target_milli * coalesce(
                    (
                        select min(d.replicas)
                        from generate_series(1, r.most) as d (replicas)
                        where mod(r.most, d.replicas) = 0 and d.replicas * a.target_milli >= v.amount_milli
                    ),
                    r.most
                )
                else v.amount_milli
            end,
            case when not a.allow_idle then r.most * a.target_milli end,
            case when a.limit_lagging then r.lagging * a.target_milli end
        ) as value_milli
    from (
        select
            (v.partitions + a.per_replica - 1) / a.per_replica as most,
            (v.lagging + a.per_replica - 1) / a.per_replica as lagging
    ) as r
) as capped
