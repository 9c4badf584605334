-- The stored answer of a frozen monitor; of several freezes the one that began first decides.
select
    (extract(epoch from a.known_at) * 1000)::bigint as known_ms,
    a.value,
    a.active,
    (extract(epoch from a.since) * 1000)::bigint as since_ms
from frozen_answer as a
where
    a.tenant_id = %(tenant)s::int
    and a.freeze_id = any(%(freezes)s::uuid[])
    and a.monitor_id = %(monitor)s::int
    and a.overrides = %(overrides)s::text
order by a.since, a.freeze_id
limit 1
