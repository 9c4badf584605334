"""Settings of the stack from the environment. Broker, database and the commands read them, and refuse former names."""

from __future__ import annotations

import os

from lagscale.errors import SettingsInvalid
from lagscale.settings import find_unknown_names

#: Read by the fuzz tests, which start a broker and a database too.
_TEST_NAMES = ("LAGSCALE_FUZZ_EXAMPLES",)


def check_setting_names() -> None:
    """Check the names of all variables with Lagscale's prefix, as the services do.

    Raises:
        SettingsInvalid: a name is unknown, or former; with the new one.
    """
    field_errors = find_unknown_names(os.environ, _TEST_NAMES)
    if field_errors:
        raise SettingsInvalid("; ".join(map(str, field_errors)), field_errors=field_errors)


def read_setting(name: str) -> str | None:
    """The value of a setting; None if it is not set or empty.

    Raises:
        SettingsInvalid: as for `check_setting_names`.
    """
    check_setting_names()
    return os.environ.get(name) or None
