-- Records that trigger metadata created a monitor, and for whom, in the transaction that created it.
insert into audit_event (tenant_id, actor, action, object, after)
select
    m.tenant_id, %(actor)s::text, 'monitor.create', 'monitor/' || m.name,
    jsonb_build_object(
        'name', m.name, 'cluster', %(cluster)s::text, 'consumer_group', m.consumer_group, 'topics', m.topics,
        'topic_pattern', m.topic_pattern, 'exclude_topics', m.exclude_topics, 'policy', m.policy,
        'auto_registered', m.auto_registered, 'version', m.version
    )
from monitor as m
where m.tenant_id = %(tenant)s::int and m.id = %(monitor_id)s::int
