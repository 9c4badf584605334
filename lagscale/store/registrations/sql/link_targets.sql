-- Links a monitor to its targets, for the scaler and the scraper; a statement of its own, so that it sees targets that
-- others have just created.
insert into monitor_target (monitor_id, target_id, tenant_id)
select %(monitor_id)s::int, t.id, t.tenant_id
from lag_target as t
where t.tenant_id = %(tenant)s::int
    and t.cluster_id = %(cluster_id)s::int
    and t.consumer_group = %(consumer_group)s::text
    and t.isolation_level = %(isolation_level)s::text
    and t.partition_limitation = %(partition_limitation)s::text
    and t.topic = any(%(topics)s::text[])
on conflict do nothing
