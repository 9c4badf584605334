-- Lets a standby take over at once when the holder shuts down in order. One lease for the system: no tenant.
update scraper_lease as l
set expires_at = clock_timestamp()
where l.name = %(name)s::text and l.holder = %(holder)s::text
