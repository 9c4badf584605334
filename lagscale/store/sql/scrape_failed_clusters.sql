-- The clusters whose last poll failed. All tenants: one scraper polls for all.
select s.cluster_id
from cluster_state as s
inner join cluster as c on c.id = s.cluster_id and c.tenant_id = s.tenant_id
where s.code <> 'ok'
