-- Creates a monitor with its first version, or says why not: exists, no_cluster, outdated (the tenant has other rules
-- by now), over_auto_quota, or the quota that is used up.
with wanted as materialized (
    select
        t.id as tenant_id,
        c.id as cluster_id,
        jsonb_build_object(
            'monitors', t.max_monitors, 'patterns', t.max_patterns, 'partitions', t.max_partitions
        ) as limits,
        case
            when exists (
                select
                from monitor as m
                where m.tenant_id = t.id and m.deleted_at is null and m.content_hash = %(content_hash)s::text
            ) then 'exists'
            when c.id is null then 'no_cluster'
            when t.version <> nullif(%(tenant_version)s::int, 0) then 'outdated'
            when (
                select count(*) from monitor as m where m.tenant_id = t.id and m.deleted_at is null
            ) >= t.max_monitors then 'monitors'
            when (
                select count(*)
                from monitor as m
                where m.tenant_id = t.id and m.deleted_at is null and m.auto_registered
            ) >= t.max_auto_monitors then 'over_auto_quota'
            when cardinality(%(topics)s::text[]) = 0 and (
                select count(*) from monitor as m
                where m.tenant_id = t.id and m.deleted_at is null and m.topics is null
            ) >= t.max_patterns then 'patterns'
            -- More is not known before it is measured; what does not fit then is not measured.
            when (
                select coalesce(sum(s.partitions), 0)
                from target_state as s
                where s.tenant_id = t.id
                    and s.code <> 'over_quota'
                    and exists (
                        select from monitor_target as x where x.target_id = s.target_id and x.tenant_id = t.id
                    )
            ) >= t.max_partitions then 'partitions'
            else 'created'
        end as outcome
    from tenant as t
    left join cluster as c on c.tenant_id = t.id and c.name = %(cluster)s::text
    where t.id = %(tenant)s::int
),

created as (
    insert into monitor (
        tenant_id, name, cluster_id, consumer_group, topics, topic_pattern, exclude_topics, isolation_level,
        partition_limitation, policy, sampling_ms, stale_after_ms, content_hash, auto_registered, last_asked_at,
        inherited, registered_by
    )
    select
        w.tenant_id, %(name)s::text, w.cluster_id, %(consumer_group)s::text, nullif(%(topics)s::text[], '{}'),
        %(topic_pattern)s::text, %(exclude_topics)s::text[],
        %(isolation_level)s::text, %(partition_limitation)s::text, %(policy)s::jsonb,
        %(sampling_ms)s::int, %(stale_after_ms)s::int, %(content_hash)s::text, true, now(),
        %(inherited)s::text[], %(registered_by)s::jsonb
    from wanted as w
    where w.outcome = 'created'
    -- The name carries digits of the content's hash: a double of it is this monitor under an older reading.
    on conflict (tenant_id, name) where deleted_at is null do nothing
    returning id, tenant_id, version, policy
),

versioned as (
    insert into monitor_version (monitor_id, tenant_id, version, policy)
    select c.id, c.tenant_id, c.version, c.policy
    from created as c
)

select
    w.outcome,
    (select c.id from created as c) as monitor_id,
    w.cluster_id,
    w.limits
from wanted as w
