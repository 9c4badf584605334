-- What the scaler needs of every tenant, its clusters' bootstrap addresses included. All tenants: a replica serves all.
select
    t.id,
    t.name,
    t.auto_register,
    t.min_sampling_seconds,
    t.max_monitors,
    t.policy_defaults,
    t.policy_limits,
    t.version,
    t.calls_per_second,
    coalesce(jsonb_object_agg(c.name, to_jsonb(c.bootstrap)) filter (where c.id is not null), '{}') as clusters
from tenant as t
left join cluster as c on c.tenant_id = t.id
group by t.id
order by t.id
