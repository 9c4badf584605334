-- The number that increases with every change of a registration of any tenant; the table has one row.
select c.version from registry_change as c
