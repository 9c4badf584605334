-- How to reach every cluster. All tenants: one scraper polls for all.
select
    c.id,
    c.tenant_id,
    c.bootstrap,
    c.security,
    c.secrets,
    c.version
from cluster as c
order by c.id
