-- The times of all rounds of a monitor's targets, newest first: the times at which a verdict can have changed.
select distinct s.ts
from unnest(%(targets)s::int[]) as g (target_id)
cross join lateral (
    select r.ts
    from every_lag_sample as r
    where r.target_id = g.target_id and r.tenant_id = %(tenant)s::int
        and r.ts >= %(since)s::timestamptz and r.ts <= %(until)s::timestamptz
) as s
order by s.ts desc
