-- The clusters whose last poll failed, or that were never polled. All tenants: one scraper polls for all.
-- slots: code.OK
select c.id
from cluster as c
left join cluster_state as s on s.cluster_id = c.id and s.tenant_id = c.tenant_id
where s.code is distinct from :code.OK
