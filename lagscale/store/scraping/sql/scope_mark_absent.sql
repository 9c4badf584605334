-- Marks since when topics are absent, or that they are there again.
update monitor_target as x
set absent_at = n.absent_at
from unnest(%(targets)s::int[], %(absents)s::timestamptz[]) as n (target_id, absent_at)
where x.monitor_id = %(monitor_id)s::int and x.tenant_id = %(tenant)s::int and x.target_id = n.target_id
