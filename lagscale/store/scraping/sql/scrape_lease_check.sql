-- Locks the lease until this transaction ends; no row when it is lost. One for the system: no tenant.
select l.epoch
from scraper_lease as l
where
    l.name = %(name)s::text
    and l.holder = %(holder)s::text
    and l.epoch = %(epoch)s::bigint
    and l.expires_at > clock_timestamp()
for share
