-- Writes the targets' states: a change at once, the same state again only when it was last written a while ago.
-- Returns whether one fits its quota now that did not, or the other way round, or has more or fewer partitions.
-- slots: limit.STATE_REFRESH_SECONDS, code.OVER_QUOTA
with previous_states as materialized (
    select
        b.target_id,
        b.code,
        b.partitions
    from target_state as b
    inner join lag_target as t on t.id = b.target_id and t.tenant_id = b.tenant_id
    where b.target_id = any(%(ids)s::int[])
),

written_states as (
    insert into target_state as s (
        target_id, tenant_id, code, message, since, seen_at, partitions, unstable
    )
    select t.id, t.tenant_id, n.code, n.message, clock_timestamp(), clock_timestamp(), n.partitions, n.unstable::jsonb
    from unnest(
        %(ids)s::int[], %(codes)s::text[], %(messages)s::text[], %(partitions)s::int[], %(unstable)s::text[]
    ) as n (id, code, message, partitions, unstable)
    inner join lag_target as t on t.id = n.id
    order by t.id
    on conflict (target_id) do update
        set
            code = excluded.code,
            message = excluded.message,
            since = case when s.code = excluded.code then s.since else excluded.since end,
            seen_at = excluded.seen_at,
            -- A cluster that does not answer has not lost its partitions.
            partitions = coalesce(excluded.partitions, s.partitions),
            -- A last stable offset that did not move has been there since it was first read.
            unstable = case
                when excluded.unstable is null then s.unstable
                else jsonb_set(
                    excluded.unstable,
                    '{partitions}',
                    (
                        select
                            coalesce(
                                jsonb_object_agg(
                                    p.key,
                                    case
                                        when s.unstable #> array['partitions', p.key, '0'] = p.value -> 0
                                            then jsonb_set(
                                                p.value, '{2}', s.unstable #> array['partitions', p.key, '2']
                                            )
                                        else p.value
                                    end
                                ),
                                '{}'
                            )
                        from jsonb_each(excluded.unstable -> 'partitions') as p
                    )
                )
            end
        where
            s.code <> excluded.code
            or s.message <> excluded.message
            or s.partitions is distinct from coalesce(excluded.partitions, s.partitions)
            or s.seen_at < excluded.seen_at - :limit.STATE_REFRESH_SECONDS * interval '1 second'
            or (excluded.unstable is not null and s.unstable is null)
            or (excluded.unstable ->> 'at')::bigint - (s.unstable ->> 'at')::bigint
            > 1000 * :limit.STATE_REFRESH_SECONDS
    returning s.target_id, s.code, s.partitions
)

select exists (
    select
    from written_states as w
    left join previous_states as b on b.target_id = w.target_id
    where w.partitions is distinct from b.partitions
        or (w.code = :code.OVER_QUOTA) is distinct from (coalesce(b.code, '') = :code.OVER_QUOTA)
) as changed
