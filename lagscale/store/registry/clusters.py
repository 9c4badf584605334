"""Kafka clusters of a tenant, and the monitors that use them. Stored secrets are encrypted; only services that
connect to the cluster decrypt them, and `lagscale secrets rotate` encrypts all of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Select, delete, exists, func, select, update

from lagscale.domain.quotas import Quota
from lagscale.errors import Conflict, FieldError, InvalidInput, NotAllowed, SecretsUnreadable
from lagscale.kafka.security import display_name, list_privileged
from lagscale.store.encryption import Keyring
from lagscale.store.registry import audit, quotas
from lagscale.store.registry.paging import Page, PageRequest, read_page
from lagscale.store.registry.session import (
    Precondition,
    RegistryDatabase,
    RegistrySession,
    Row,
    TenantSession,
    WriteResult,
    check_precondition,
)
from lagscale.store.registry.tables import cluster, cluster_state, lag_target, monitor, monitor_target, tenant

REENCRYPTION_ACTOR = "lagscale secrets rotate"
#: Clusters whose secrets one transaction encrypts again.
_REENCRYPTION_BATCH = 100


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """Desired state of a cluster.

    Attributes:
        bootstrap: `host:port` each.
        security: in canonical form, without secrets.
        secrets: None keeps the stored ones; an empty map removes them.
        references: of secrets outside the database, in their stored form; None keeps the stored ones.
        properties: of the Kafka client, by its names; None keeps the stored ones.
        by_platform: whether it comes from a platform administrator or the environment.
    """

    name: str
    bootstrap: tuple[str, ...]
    security: Mapping[str, Any]
    secrets: Mapping[str, str] | None = None
    references: Mapping[str, Mapping[str, str]] | None = None
    properties: Mapping[str, Any] | None = None
    by_platform: bool = False


def _select_clusters() -> Select[Any]:
    state = [cluster_state.c[name].label(f"state_{name}") for name in ("code", "message", "since", "seen_at")]
    return select(cluster, *state).outerjoin(cluster_state, cluster_state.c.cluster_id == cluster.c.id)


async def list_page(session: TenantSession, page_request: PageRequest) -> Page:
    """The tenant's clusters with their states."""
    return await read_page(session, _select_clusters(), ["name"], page_request)


async def read_by_name(session: TenantSession, name: str) -> Row:
    """One cluster with its state.

    Raises:
        NotFound: there is none.
    """
    return await session.fetch_existing(_select_clusters().where(cluster.c.name == name))


async def create(session: TenantSession, spec: ClusterSpec, keyring: Keyring) -> WriteResult:
    """Create a cluster.

    Raises:
        Conflict: the name is taken.
        QuotaExceeded: the tenant's quota of clusters is used up.
        SettingsInvalid: it has secrets, and no key to encrypt them is configured.
    """
    await quotas.lock_registrations(session)
    # Before the quota: registering a cluster twice is a conflict, also when the quota is used up.
    if (await session.execute(select(exists().where(cluster.c.name == spec.name)))).scalar_one():
        raise Conflict("A cluster with this name already exists.")
    await quotas.check_quota(session, Quota.CLUSTERS)
    values = {
        "tenant_id": session.tenant_id,
        "name": spec.name,
        "bootstrap": list(spec.bootstrap),
        "security": dict(spec.security),
        "secrets": keyring.encrypt(spec.secrets) if spec.secrets else None,
        "secret_references": _to_dicts(spec.references),
        "properties": dict(spec.properties or {}),
    }
    return await audit.insert_row(session, cluster, values, "cluster.create", spec.name)


async def put(
    session: TenantSession, spec: ClusterSpec, keyring: Keyring, precondition: Precondition | None
) -> WriteResult:
    """Create or replace the cluster; nothing changes when it is already as described.

    Raises:
        InvalidInput: a key of `security` is also a stored secret that is kept.
        NotAllowed: it has settings that only a platform administrator may set, and the caller is none.
        PreconditionFailed: its version is not what the caller expects.
        SettingsInvalid: it has secrets, and no key to encrypt them is configured.
    """
    statement = select(cluster).where(cluster.c.name == spec.name).with_for_update()
    row = await session.fetch_optional(statement)
    check_precondition(row, precondition)
    if row is None:
        return await create(session, spec, keyring)
    privileged = list_privileged(row["security"], row["properties"])
    if privileged and not spec.by_platform:
        # Privileged settings were granted for these addresses; a tenant must not send them to others.
        raise NotAllowed(
            f"Only a platform administrator may change this cluster, because it has {', '.join(privileged)}; ask one, or "
            "delete the cluster and create it without."
        )
    return await audit.update_row(session, cluster, row, _desired_values(row, spec, keyring), "cluster.update")


def _desired_values(row: Row, spec: ClusterSpec, keyring: Keyring) -> dict[str, Any]:
    if spec.secrets is None:
        stored = row["secret_references"].keys() | (_decrypt_or_none(row["secrets"], keyring) or {}).keys()
        twice = sorted(stored & dict(spec.security).keys())
        if twice:
            text = "is stored as a secret; omit it here, and give `secrets` to change it"
            raise InvalidInput([FieldError(f"security.{display_name(name)}", text) for name in twice])
    values: dict[str, Any] = {"bootstrap": list(spec.bootstrap), "security": dict(spec.security)}
    # The same secrets are not encrypted again: the text would differ.
    if spec.secrets is not None and dict(spec.secrets) != _decrypt_or_none(row["secrets"], keyring):
        values["secrets"] = keyring.encrypt(spec.secrets) if spec.secrets else None
    if spec.references is not None:
        values["secret_references"] = _to_dicts(spec.references)
    if spec.properties is not None:
        values["properties"] = dict(spec.properties)
    return values


def _to_dicts(references: Mapping[str, Mapping[str, str]] | None) -> dict[str, dict[str, str]]:
    return {name: dict(reference) for name, reference in (references or {}).items()}


def _decrypt_or_none(encrypted: bytes | None, keyring: Keyring) -> dict[str, str] | None:
    try:
        return {} if encrypted is None else keyring.decrypt(encrypted)
    except SecretsUnreadable:
        # Encrypted with keys that are no longer configured: the given secrets replace it.
        return None


async def remove(session: TenantSession, name: str, precondition: Precondition | None) -> None:
    """Remove a cluster that no live monitor uses, and with it its targets.

    Raises:
        NotFound: there is none.
        Conflict: monitors use it.
        PreconditionFailed: its version is not what the caller expects.
    """
    statement = select(cluster).where(cluster.c.name == name).with_for_update()
    row = await session.fetch_existing(statement)
    check_precondition(row, precondition)
    of_cluster = monitor.c.cluster_id == row["id"]
    live = select(monitor.c.name).where(of_cluster, monitor.c.deleted_at.is_(None)).order_by(monitor.c.name).limit(4)
    users = list((await session.execute(live)).scalars())
    if users:
        names = ", ".join(users[:3]) + (" and more" if len(users) > 3 else "")
        raise Conflict(f"Monitors use this cluster; delete them first: {names}.")
    # Deleted monitors still refer to it; their last state is in the audit log.
    await session.execute(delete(monitor).where(of_cluster))
    await session.execute(delete(cluster).where(cluster.c.id == row["id"]))
    await audit.record(session, "cluster.delete", f"cluster/{name}", row, None)


async def find_by_name(session: TenantSession, name: str) -> Row | None:
    """One cluster with its encrypted secrets; None where there is none."""
    return await session.fetch_optional(select(cluster).where(cluster.c.name == name))


async def read_watched_groups(session: TenantSession, cluster_id: int) -> dict[str, tuple[str, ...]]:
    """Consumer groups of the cluster's live monitors, each with its measured topics, which may be none yet."""
    statement = (
        select(monitor.c.consumer_group, lag_target.c.topic)
        .outerjoin(monitor_target, monitor_target.c.monitor_id == monitor.c.id)
        .outerjoin(lag_target, lag_target.c.id == monitor_target.c.target_id)
        .where(monitor.c.cluster_id == cluster_id, monitor.c.deleted_at.is_(None))
        .distinct()
        .order_by(monitor.c.consumer_group, lag_target.c.topic)
    )
    found: dict[str, tuple[str, ...]] = {}
    for row in await session.fetch_all(statement):
        topics = found.setdefault(row["consumer_group"], ())
        found[row["consumer_group"]] = topics if row["topic"] is None else (*topics, row["topic"])
    return found


async def find_measured_targets(
    session: TenantSession, cluster_id: int, group: str, *, topics: Sequence[str], isolation: str, limitation: str
) -> dict[int, str]:
    """Targets that measure exactly this already, whichever monitors they are of: target id -> topic."""
    statement = select(lag_target.c.id, lag_target.c.topic).where(
        lag_target.c.cluster_id == cluster_id,
        lag_target.c.consumer_group == group,
        lag_target.c.topic.in_(list(topics)),
        lag_target.c.isolation_level == isolation,
        lag_target.c.partition_limitation == limitation,
    )
    return {int(row["id"]): str(row["topic"]) for row in await session.fetch_all(statement)}


@dataclass(slots=True)
class ReencryptionProgress:
    """Progress of a run.

    Attributes:
        total: clusters with stored secrets, counted at the beginning.
        reencrypted: clusters whose secrets this run has encrypted again.
        current: clusters whose secrets the first key had encrypted before.
        unreadable: `tenant/cluster` of secrets that no configured key decrypts; they are not changed.
    """

    total: int = 0
    reencrypted: int = 0
    current: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def processed(self) -> int:
        """How many clusters are processed."""
        return self.reencrypted + self.current + len(self.unreadable)


async def reencrypt_all(
    database: RegistryDatabase, keyring: Keyring, progress: Callable[[ReencryptionProgress], None] = lambda done: None
) -> ReencryptionProgress:
    """Encrypt again, with the first key, what an older key has encrypted.

    Each batch is a transaction of its own with its audit row, and secrets of the first key are skipped: the run may be
    interrupted, repeated, and run twice at once. `progress` is called once before the first batch, and after each. The
    keyring has all keys that any secret was encrypted with.

    Raises:
        SettingsInvalid: there is no key.
        StoreUnavailable: the store does not answer; batches until then are committed.
    """
    keyring.encrypt({})
    done = ReencryptionProgress()
    async with database.platform(REENCRYPTION_ACTOR) as session:
        counting = select(func.count()).select_from(cluster).where(cluster.c.secrets.is_not(None))
        done.total = int((await session.execute(counting)).scalar_one())
    progress(done)
    last = 0
    while True:
        # Every tenant's rows: this is the platform's own task, and no caller gets them.
        async with database.platform(REENCRYPTION_ACTOR) as session:
            rows = await _lock_batch(session, last)
            await _reencrypt_batch(session, rows, keyring, done)
        if not rows:
            return done
        last = int(rows[-1]["id"])
        progress(done)


async def _lock_batch(session: RegistrySession, last: int) -> list[Row]:
    statement = (
        select(cluster.c.id, cluster.c.name, cluster.c.secrets, tenant.c.name.label("tenant"))
        .join(tenant, tenant.c.id == cluster.c.tenant_id)
        .where(cluster.c.secrets.is_not(None), cluster.c.id > last)
        .order_by(cluster.c.id)
        .limit(_REENCRYPTION_BATCH)
        # Secrets that are stored meanwhile must not be overwritten by older ones.
        .with_for_update(of=cluster)
    )
    return await session.fetch_all(statement)


async def _reencrypt_batch(
    session: RegistrySession, rows: list[Row], keyring: Keyring, done: ReencryptionProgress
) -> None:
    changed = []
    for row in rows:
        name = f"{row['tenant']}/{row['name']}"
        if keyring.uses_first_key(row["secrets"]):
            done.current += 1
            continue
        try:
            reencrypted = keyring.reencrypt(row["secrets"])
        except SecretsUnreadable:
            done.unreadable.append(name)
            continue
        # The version stays: the secrets are the same, and the scraper need not reconnect.
        await session.execute(update(cluster).where(cluster.c.id == row["id"]).values(secrets=reencrypted))
        changed.append(name)
    if changed:
        await audit.record(session, "secrets.rotate", "secrets", None, {"clusters": changed})
    done.reencrypted += len(changed)
