-- How to reach every cluster. All tenants: one scraper polls for all.
select
    c.id,
    c.tenant_id,
    t.name as tenant,
    c.bootstrap,
    c.security,
    c.properties,
    c.secrets,
    c.secret_references,
    c.version
from cluster as c
inner join tenant as t on t.id = c.tenant_id
order by c.id
