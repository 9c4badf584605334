-- Lets other registrations and changes of links of the tenant wait until this transaction ends, so that quotas are
-- exact. A statement of its own: the next one sees what others have written. The API, the scaler and the scraper share it.
select pg_advisory_xact_lock(hashtext('lagscale.register'), %(tenant)s::int)
