"""Two tenants that name everything alike, and what only one of them holds: marks that must never reach the other."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import psycopg
from psycopg import sql

from tests.support.stored_rounds import write

CLUSTERS = ("main", "spare")
MONITORS = ("orders", "logs", "frozen")
NAMESPACES = ("prod", "jobs")
#: A key's last use is written by reading; what a replica told is written by asking.
_NOT_COMPARED = {"api_key": {"last_used_at"}, "monitor": {"last_asked_at"}}


@dataclass(frozen=True)
class Names:
    """The names that a request is filled with.

    Attributes:
        only: of a cluster and of a monitor that no other tenant has.
        prefix: of a key.
    """

    tenant: str
    only: str
    prefix: str

    def into(self, text: str) -> str:
        """The text with these names in their places."""
        return text.replace("{tenant}", self.tenant).replace("{only}", self.only).replace("{prefix}", self.prefix)


#: Of nobody.
MISSING = Names("t-000000000000", "only-000000000000", "000000000000")


@dataclass
class IsolatedTenant:
    """One of the two.

    Attributes:
        marks: texts that stand in this tenant's rows, and nowhere else.
        instance: KEDA's, whose namespaces are bound to this tenant.
        keys: role -> header; `revoked` was one.
        prefix: of a key that may be revoked and rotated.
        cursors: that it was given.
    """

    api: httpx.AsyncClient
    name: str
    lag: int
    word: str
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    prefix: str = ""
    cursors: list[str] = field(default_factory=list)

    @property
    def mark(self) -> str:
        """The mark that is a name as well."""
        return f"mark{self.word}"

    @property
    def marks(self) -> tuple[str, ...]:
        return self.mark, str(self.lag)

    @property
    def only(self) -> str:
        return f"only-{self.word}"

    @property
    def instance(self) -> str:
        return f"spiffe://{self.word}/keda"

    @property
    def names(self) -> Names:
        return Names(self.name, self.only, self.prefix)

    @classmethod
    async def made(cls, api: httpx.AsyncClient, url: str, lag: int) -> IsolatedTenant:
        """A tenant with a row in each table that it can have one in."""
        word = uuid.uuid4().hex[:12]
        made = cls(api, f"t-{word}", lag, word)
        await made._ask("PUT", "", {"displayName": made.mark, "autoRegister": True, "maxMonitors": 100_000})
        await made.refill()
        await made._ask("DELETE", "/freeze")  # Else KEDA would get nothing but what was.
        for namespace in NAMESPACES:
            await made._ask("POST", "/bindings", {"instance": made.instance, "namespace": namespace})
        for role in ("tenant-admin", "tenant-viewer", "revoked"):
            key = await made._key("ci", "tenant-admin" if role == "revoked" else role)
            made.keys[role] = {"Authorization": f"Bearer {key['key']}"}
        await made._ask("DELETE", f"/keys/{key['prefix']}")
        for topic in MONITORS:
            write(url, made.name, topic, [(seconds, (lag, 0)) for seconds in range(300, 0, -10)])
        _write_states(url, made.name, made.mark)
        return made

    async def refill(self) -> None:
        """Make again what the tenant's own requests may have changed or removed."""
        for name in (*CLUSTERS, self.only):
            await self._ask(
                "PUT",
                f"/clusters/{name}",
                {
                    "bootstrapServers": [f"{self.mark}.invalid:9092"],
                    "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": self.mark},
                    "secrets": {"password": f"secret-{self.mark}"},
                },
            )
            await self._ask("DELETE", f"/clusters/{name}/freeze", wanted={204, 404})
        for name in (*MONITORS, self.only):
            topic = "orders" if name == self.only else name
            policy = {"lagThreshold": 10, "sustainSeconds": 60, "samplingInterval": 10, "allowIdleConsumers": True}
            given = {"cluster": "main", "consumerGroup": "readers", "topics": [topic], "policy": policy}
            await self._ask("PUT", f"/monitors/{name}", given)
            await self._ask("DELETE", f"/monitors/{name}/freeze", wanted={204, 404})
        for frozen in ("", "/clusters/spare", "/monitors/frozen"):
            await self._ask("PUT", f"{frozen}/freeze", {"reason": self.mark, "forSeconds": 86_400})
        self.prefix = (await self._key(self.mark, "tenant-viewer"))["prefix"]

    async def _key(self, name: str, role: str) -> dict[str, Any]:
        made: dict[str, Any] = (await self._ask("POST", "/keys", {"name": name, "role": role})).json()
        return made

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, wanted: set[int] | None = None
    ) -> httpx.Response:
        answer = await self.api.request(method, f"/v1/tenants/{self.name}{path}", json=body)
        assert answer.status_code in (wanted or {200, 201, 204}), f"{method} {path}: {answer.text}"
        return answer


def _write_states(url: str, tenant: str, mark: str) -> None:
    """What the scraper says of the tenant's clusters, targets and monitors."""
    with psycopg.connect(url) as connection:
        for statement in (
            "insert into cluster_state select c.id, c.tenant_id, 'unreachable', %s, now(), now() from cluster c",
            "insert into target_state select c.id, c.tenant_id, 'unreachable', %s, now(), now() from lag_target c",
            "insert into monitor_scope (monitor_id, tenant_id, monitor_version, matched, code, message, since, seen_at)"
            " select c.id, c.tenant_id, 1, 0, 'unreachable', %s, now(), now() from monitor c",
        ):
            connection.execute(f"{statement} join tenant t on t.id = c.tenant_id where t.name = %s", (mark, tenant))  # type: ignore[call-overload]


def fingerprint(url: str, tenant: str, but: tuple[str, ...] = ()) -> dict[str, str]:
    """Per table a digest of all of the tenant's rows."""
    found = {}
    with psycopg.connect(url) as connection:
        number = number_of(connection, tenant)
        for table, columns in _tables(connection).items():
            if table in but:
                continue
            kept = sql.SQL(", ").join(map(sql.Identifier, sorted(columns - _NOT_COMPARED.get(table, set()))))
            column = "id" if table == "tenant" else "tenant_id"
            rows = connection.execute(
                sql.SQL("select {}::text from (select {} from {} where {} = %s) as r order by 1").format(
                    sql.Identifier("r"), kept, sql.Identifier(table), sql.Identifier(column)
                ),
                (number,),
            ).fetchall()
            found[table] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return found


def number_of(connection: psycopg.Connection[Any], tenant: str) -> int:
    """The tenant's number, which no URL shows."""
    found = connection.execute("select id from tenant where name = %s", (tenant,)).fetchone()
    assert found is not None
    return int(found[0])


def _tables(connection: psycopg.Connection[Any]) -> dict[str, set[str]]:
    rows = connection.execute(
        "select c.relname, array_agg(a.attname::text) from pg_class c join pg_attribute a on a.attrelid = c.oid "
        "where c.relnamespace = current_schema()::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 "
        "and not a.attisdropped group by 1"
    ).fetchall()
    return {name: set(columns) for name, columns in rows if name == "tenant" or "tenant_id" in columns}


def tables_of(url: str) -> dict[str, list[str]]:
    """Every table that holds tenants' rows, with its columns."""
    with psycopg.connect(url) as connection:
        return {name: sorted(columns) for name, columns in _tables(connection).items()}
