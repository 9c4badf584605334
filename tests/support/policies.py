"""Every policy of the whole database, word by word: a new one, or another word of one, is written down here too.

The policies of a table are permissive: each of them opens the wall for its roles, so each has to be wanted.
"""

from __future__ import annotations

from typing import NamedTuple


class Policy(NamedTuple):
    """One row of `pg_policies`; the two expressions are as PostgreSQL prints them, None for none."""

    name: str
    roles: tuple[str, ...]
    command: str
    using: str | None
    check: str | None


_MINE = "(tenant_id = present_tenant())"
_ME = "(id = present_tenant())"
_ADMINISTRATORS = "(current_setting('lagscale.platform'::text, true) = 'on'::text)"
_API, _SCALER, _SCRAPER = "lagscale_api", "lagscale_scaler", "lagscale_scraper"

#: The functions that tidy up, and the migrations.
OF_OWNER = Policy("of_owner", ("lagscale_owner",), "ALL", "true", "true")
OF_TENANT = Policy("of_tenant", (_API, _SCALER), "ALL", _MINE, _MINE)
#: Platform administrators, after their key was checked.
OF_PLATFORM = Policy("of_platform", (_API,), "ALL", _ADMINISTRATORS, _ADMINISTRATORS)
#: One scraper measures for all tenants.
OF_SCRAPER = Policy("of_scraper", (_SCRAPER,), "ALL", "true", "true")
#: One scaler answers all tenants, from registrations in its memory.
OF_SCALER_CACHE = Policy("of_scaler_cache", (_SCALER,), "SELECT", "true", None)

WALL = {OF_OWNER, OF_TENANT, OF_PLATFORM}
POLICIES: dict[str, set[Policy]] = {
    "api_key": WALL,
    "audit_event": WALL,
    "cluster": WALL | {OF_SCRAPER, OF_SCALER_CACHE},
    "cluster_state": WALL | {OF_SCRAPER, OF_SCALER_CACHE},
    # Decisions of all tenants go out in one batch, and are never read by the scaler.
    "decision": WALL | {Policy("of_scaler_told", (_SCALER,), "INSERT", None, "true")},
    "frozen_answer": WALL,
    # Read through the two views alone, written by the scraper alone; the API may not even name it.
    "lag_sample": {
        OF_OWNER,
        Policy("of_scraper", (_SCRAPER,), "INSERT", None, "true"),
        Policy("of_views", ("lagscale_reader",), "SELECT", "true", None),
    },
    "lag_target": WALL | {OF_SCRAPER, OF_SCALER_CACHE},
    # Which monitors were asked for is written in one statement, and a grant allows that column alone.
    "monitor": WALL | {OF_SCRAPER, OF_SCALER_CACHE, Policy("of_scaler_asked", (_SCALER,), "UPDATE", "true", None)},
    "monitor_scope": WALL | {OF_SCRAPER, OF_SCALER_CACHE},
    "monitor_target": WALL | {OF_SCRAPER, OF_SCALER_CACHE},
    # A trigger of the owner writes it; the API reads it.
    "monitor_target_span": {
        OF_OWNER,
        OF_TENANT._replace(roles=(_API,)),
        OF_PLATFORM._replace(command="SELECT", check=None),
    },
    "monitor_version": WALL | {OF_SCALER_CACHE},
    "namespace_binding": WALL | {OF_SCALER_CACHE},
    "scaling_freeze": WALL | {OF_SCALER_CACHE},
    "target_state": WALL | {OF_SCRAPER, OF_SCALER_CACHE},
    "tenant": {OF_OWNER, OF_TENANT._replace(using=_ME, check=_ME), OF_PLATFORM, OF_SCRAPER, OF_SCALER_CACHE},
}
