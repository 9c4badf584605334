-- Moves the copied rows of all tenants to the samples, without duplicates and without the future.
-- slots: limit.FUTURE_TOLERANCE_MS
insert into lag_sample
select s.*
from pg_temp.scraped as s
where s.ts <= clock_timestamp() + :limit.FUTURE_TOLERANCE_MS * interval '1 millisecond'
on conflict do nothing
