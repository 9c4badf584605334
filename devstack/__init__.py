"""A real broker and a real database on one machine, for `make demo`, `make up` and `make test`; not in the wheel."""
