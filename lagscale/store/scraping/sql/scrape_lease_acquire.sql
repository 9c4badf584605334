-- Takes a free or expired lease under a new epoch, or renews the holder's own; no row when another holds it.
-- One lease for the whole system, so it names no tenant.
insert into scraper_lease as l (name, holder, epoch, expires_at)
select %(name)s::text, %(holder)s::text, 1, clock_timestamp() + %(seconds)s::float8 * interval '1 second'
on conflict (name) do update
    set
        holder = excluded.holder,
        epoch = case
            when l.holder = excluded.holder and l.expires_at > clock_timestamp() then l.epoch
            else l.epoch + 1
        end,
        expires_at = excluded.expires_at
    where l.holder = excluded.holder or l.expires_at <= clock_timestamp()
returning l.epoch
