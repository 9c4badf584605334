-- Creates the missing targets of a monitor, for the scaler and the scraper.
insert into lag_target (tenant_id, cluster_id, consumer_group, topic, isolation_level, partition_limitation)
select
    %(tenant)s::int, %(cluster_id)s::int, %(consumer_group)s::text, p.topic, %(isolation_level)s::text,
    %(partition_limitation)s::text
from unnest(%(topics)s::text[]) as p (topic)
on conflict (tenant_id, cluster_id, consumer_group, topic, isolation_level, partition_limitation) do nothing
