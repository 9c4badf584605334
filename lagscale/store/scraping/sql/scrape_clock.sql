-- The database's clock in milliseconds since 1970, and the version of the registrations.
-- One clock and one version for all, so it names no tenant.
select
    (extract(epoch from clock_timestamp()) * 1000)::float8 as at_ms,
    (select c.version from registry_change as c) as version
