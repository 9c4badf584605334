-- Counts the copied rows of all tenants that are stamped in the future; they are refused.
-- slots: limit.FUTURE_TOLERANCE_MS
select count(*)
from pg_temp.scraped as s
where s.ts > clock_timestamp() + :limit.FUTURE_TOLERANCE_MS * interval '1 millisecond'
