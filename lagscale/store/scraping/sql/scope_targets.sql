-- The targets of a monitor's new topics.
select t.id, t.topic
from lag_target as t
where t.tenant_id = %(tenant)s::int
    and t.cluster_id = %(cluster_id)s::int
    and t.consumer_group = %(consumer_group)s::text
    and t.isolation_level = %(isolation_level)s::text
    and t.partition_limitation = ''
    and t.topic = any(%(topics)s::text[])
