-- Whether a reading of this time says that the group has members.
select exists (
    select
    from unnest(%(targets)s::int[]) as g (target_id)
    inner join every_lag_sample as s on s.target_id = g.target_id and s.tenant_id = %(tenant)s::int
    where s.ts >= %(since)s::timestamptz and s.ts <= %(until)s::timestamptz
        and s.members >= 1 and s.ts - s.members_age * interval '1 millisecond' >= %(since)s::timestamptz
)
