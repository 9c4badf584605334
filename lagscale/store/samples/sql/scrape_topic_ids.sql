-- Stores the topics' ids and the incarnations they stand for. All tenants: one scraper writes for all.
update lag_target as t
set topic_id = n.topic_id, epoch = n.epoch
from unnest(%(targets)s::int[], %(topic_ids)s::text[], %(epochs)s::int[]) as n (id, topic_id, epoch)
where t.id = n.id
