-- Creates a monitor with its first version; the outcome is created, or why not: exists, no_cluster, outdated (the
-- tenant's rules have changed), over_auto_quota, or the quota that is used up.
-- slots: code.OVER_QUOTA
with registration as materialized (
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
            -- How many partitions it needs is known only when it is measured; what does not fit then is not measured.
            when (
                select coalesce(sum(s.partitions), 0)
                from target_state as s
                where s.tenant_id = t.id
                    and s.code <> :code.OVER_QUOTA
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
        r.tenant_id, %(name)s::text, r.cluster_id, %(consumer_group)s::text, nullif(%(topics)s::text[], '{}'),
        %(topic_pattern)s::text, %(exclude_topics)s::text[],
        %(isolation_level)s::text, %(partition_limitation)s::text, %(policy)s::jsonb,
        %(sampling_ms)s::int, %(stale_after_ms)s::int, %(content_hash)s::text, true, now(),
        %(inherited)s::text[], %(registered_by)s::jsonb
    from registration as r
    where r.outcome = 'created'
    -- The name has digits of the content's hash: a duplicate is this monitor as an older version read it.
    on conflict (tenant_id, name) where deleted_at is null do nothing
    returning id, tenant_id, version, policy
),

versioned as (
    insert into monitor_version (monitor_id, tenant_id, version, policy)
    select c.id, c.tenant_id, c.version, c.policy
    from created as c
)

select
    r.outcome,
    (select c.id from created as c) as monitor_id,
    r.cluster_id,
    r.limits
from registration as r
