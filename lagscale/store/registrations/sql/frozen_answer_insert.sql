-- Stores a frozen monitor's answer for each freeze that has none; the first replica decides for all.
insert into frozen_answer (freeze_id, monitor_id, overrides, tenant_id, since, known_at, value, active)
select
    f.id,
    m.id,
    %(overrides)s::text,
    f.tenant_id,
    to_timestamp(%(since_ms)s::bigint / 1000.0),
    to_timestamp(%(known_ms)s::bigint / 1000.0),
    %(value)s::float8,
    %(active)s::bool
from scaling_freeze as f
inner join monitor as m on m.id = %(monitor)s::int and m.tenant_id = f.tenant_id
where f.tenant_id = %(tenant)s::int and f.id = any(%(freezes)s::uuid[]) and f.until > now()
on conflict do nothing
