"""One monitor from the environment, which every service registers when it starts; several may do so at once."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Mapping

import structlog
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_when_event_set, wait_exponential_jitter
from tenacity.nap import sleep_using_event

from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.quotas import DEFAULT_QUOTAS, QUOTA_COLUMNS
from lagscale.domain.tenancy import ANY_NAMESPACE, DEFAULT_INSTANCE, find_group_error
from lagscale.domain.topics import TopicScope
from lagscale.errors import Conflict, FieldError, InvalidInput, LagscaleError, StoreUnavailable
from lagscale.settings import SingleMonitorSettings
from lagscale.store.encryption import Keyring
from lagscale.store.registry import bindings, clusters, monitors, tenants
from lagscale.store.registry.clusters import ClusterSpec
from lagscale.store.registry.monitor_spec import MonitorSpec
from lagscale.store.registry.session import RegistryDatabase, RegistrySession, TenantSession, as_tenant

log = structlog.get_logger(__name__)

#: The name of the tenant and of the cluster, and of a monitor whose topic yields none.
NAME = "default"
_ACTOR = "environment"
_TENANT = {
    "display_name": "",
    "auto_register": False,
    "min_sampling_seconds": 1,
    **{column: DEFAULT_QUOTAS[quota] for quota, column in QUOTA_COLUMNS.items()},
    "policy_defaults": {},
    "policy_limits": {},
    "max_auto_monitors": 1000,
    "auto_expiry_days": 7,
}
_MAX_NAME_LENGTH = 63


def start_registration(url: str, environ: Mapping[str, str], stop: threading.Event, *, tick_seconds: float) -> None:
    """Register the monitor in a background thread as soon as the store answers, until `stop` is set.

    What cannot be registered is logged, and the service goes on without it.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(StoreUnavailable),
        wait=wait_exponential_jitter(0.5, 5.0),
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        before_sleep=_log_retry,
        reraise=True,
    )

    def register() -> None:
        try:
            retrying(ensure_single_monitor, url, environ, tick_seconds=tick_seconds)
        except LagscaleError as error:
            log.error("single_monitor_rejected", reason=error.message)

    # A daemon: a store that does not answer must not delay the end of the process.
    threading.Thread(target=register, name="single-monitor", daemon=True).start()


def _log_retry(state: RetryCallState) -> None:
    log.info("waiting_for_store", attempt=state.attempt_number)


def ensure_single_monitor(url: str, environ: Mapping[str, str], *, tick_seconds: float) -> None:
    """Register tenant `default`, cluster `default`, the monitor and its binding, unless they exist as described.

    Idempotent, and safe when several services call it at once. The schema must exist. What a person has changed
    since in the tenant and in the cluster's security stays. Not for a thread that runs an event loop.

    Raises:
        SettingsInvalid: the variables are incomplete.
        InvalidInput: the policy has faults, or the tenant's rules forbid it.
        StoreUnavailable: the database does not answer.
    """
    settings = SingleMonitorSettings.parse(environ)
    asyncio.run(_register(url, settings, build_single_monitor(environ, tick_seconds=tick_seconds), tick_seconds))


def build_monitor_name(topic: str) -> str:
    """The topic's name, reduced to the characters that a monitor's name may have."""
    return re.sub(r"[^a-z0-9]+", "-", topic.lower()).strip("-")[:_MAX_NAME_LENGTH].strip("-") or NAME


def build_single_monitor(environ: Mapping[str, str], *, tick_seconds: float) -> MonitorSpec:
    """The monitor that the environment describes, checked without the database.

    Raises:
        SettingsInvalid: the variables are incomplete.
        InvalidInput: the policy has faults.
    """
    settings = SingleMonitorSettings.parse(environ)
    if (group_error := find_group_error(settings.group)) is not None:
        raise InvalidInput([FieldError("KAFKA_GROUP_ID", group_error)])
    given = settings.policy()
    scope = TopicScope(tuple(settings.topics()))
    policy = parse_policy(given, tick_seconds=tick_seconds)
    return MonitorSpec(build_monitor_name(scope.topics[0]), NAME, settings.group.strip(), scope, given, policy=policy)


async def _register(url: str, settings: SingleMonitorSettings, spec: MonitorSpec, tick_seconds: float) -> None:
    database = RegistryDatabase(url, size=1)
    try:
        async with database.platform(_ACTOR) as session:
            # Services that start together wait for each other here; the later ones find everything registered.
            row = await tenants.ensure(session, NAME, _TENANT)
            await _bind(session, int(row["id"]))
            tenant_session = await as_tenant(session, row)
            await _ensure_cluster(tenant_session, settings)
            outcome = await monitors.put_draft(tenant_session, spec, tick_seconds, None)
        log.info("single_monitor_ready", monitor=spec.name, changed=outcome.changed)
    finally:
        await database.close()


async def _bind(session: RegistrySession, tenant_id: int) -> None:
    try:
        await bindings.put(session, tenant_id, DEFAULT_INSTANCE, ANY_NAMESPACE)
    except Conflict:
        # Namespaces were bound by hand, which stays so; the monitor is measured all the same.
        log.warning("single_monitor_binding_skipped", instance=DEFAULT_INSTANCE)


async def _ensure_cluster(session: TenantSession, settings: SingleMonitorSettings) -> None:
    row = await clusters.find_by_name(session, NAME)
    bootstrap = tuple(part.strip() for part in settings.brokers.split(",") if part.strip())
    security = {"protocol": "PLAINTEXT"} if row is None else row["security"]
    await clusters.put(session, ClusterSpec(NAME, bootstrap, security, by_platform=True), Keyring(""), None)
