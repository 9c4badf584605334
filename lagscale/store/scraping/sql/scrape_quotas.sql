-- How many partitions each tenant may have measured. All tenants: one scraper polls for all.
select
    t.id,
    t.max_partitions
from tenant as t
order by t.id
