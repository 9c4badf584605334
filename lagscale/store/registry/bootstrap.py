"""One monitor from the environment: registers it before a service starts. Every service may call it, also at once."""

from __future__ import annotations

from collections.abc import Mapping


def ensure_single_monitor(url: str, environ: Mapping[str, str]) -> None:
    """Register tenant `default`, cluster `default`, the monitor and its binding, unless they are there as wanted.

    Synchronous and idempotent; safe when several services call it at once. The schema must be there.

    Args:
        url: the database, as in `LAGSCALE_DATABASE_URL`.
        environ: holds `KAFKA_BROKERS`, `KAFKA_TOPIC`, `KAFKA_GROUP_ID`, and policy keys by their variables.

    Raises:
        SettingsInvalid: the variables are incomplete.
        InvalidInput: the policy has faults.
        StoreUnavailable: the database does not answer.
    """
    raise NotImplementedError
