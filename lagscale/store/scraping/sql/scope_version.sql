-- The current version of a monitor; no row when it was deleted.
select m.version
from monitor as m
where m.id = %(monitor_id)s::int and m.tenant_id = %(tenant)s::int and m.deleted_at is null
