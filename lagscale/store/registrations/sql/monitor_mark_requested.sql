-- Records that monitors were requested; the ids are of all tenants that the replica serves.
update monitor as m
set last_asked_at = now()
where m.id = any(%s::int[])
