-- Takes topics out of a monitor; their targets and samples stay.
delete from monitor_target as x
where x.monitor_id = %(monitor_id)s::int and x.tenant_id = %(tenant)s::int and x.target_id = any(%(targets)s::int[])
