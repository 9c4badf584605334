-- Notes that monitors were asked for; the ids come from registrations of whatever tenants this replica answered.
update monitor as m
set last_asked_at = now()
where m.id = any(%s::int[])
