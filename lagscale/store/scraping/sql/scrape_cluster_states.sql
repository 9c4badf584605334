-- Writes the clusters' states: a change at once, the same state again only when it was last written a while ago.
-- slots: limit.STATE_REFRESH_SECONDS
insert into cluster_state as s (cluster_id, tenant_id, code, message, since, seen_at)
select c.id, c.tenant_id, n.code, n.message, clock_timestamp(), clock_timestamp()
from unnest(%(ids)s::int[], %(codes)s::text[], %(messages)s::text[]) as n (id, code, message)
inner join cluster as c on c.id = n.id
order by c.id
on conflict (cluster_id) do update
    set
        code = excluded.code,
        message = excluded.message,
        since = case when s.code = excluded.code then s.since else excluded.since end,
        seen_at = excluded.seen_at
    where
        s.code <> excluded.code
        or s.message <> excluded.message
        or s.seen_at < excluded.seen_at - :limit.STATE_REFRESH_SECONDS * interval '1 second'
