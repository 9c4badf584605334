"""Two tenants that name everything alike, and what only one of them holds: marks that must never reach the other."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import httpx
import psycopg
from psycopg import sql

from tests.integration.api.rounds import write

CLUSTERS = ("main", "spare")
MONITORS = ("orders", "logs")
#: A key's last use is written by reading; what a replica told is written by asking.
_NOT_COMPARED = {"api_key": {"last_used_at"}, "monitor": {"last_asked_at"}}


@dataclass
class Walled:
    """One of the two.

    Attributes:
        marks: texts that stand in this tenant's rows, and nowhere else.
        keys: role -> header; `revoked` was one.
        prefixes: of its keys.
        cursors: that it was given.
    """

    api: httpx.AsyncClient
    name: str
    lag: int
    marks: tuple[str, ...]
    namespace: str
    keys: dict[str, dict[str, str]] = field(default_factory=dict)
    prefixes: list[str] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)

    @classmethod
    async def made(cls, api: httpx.AsyncClient, url: str, lag: int) -> Walled:
        """A tenant with clusters, monitors, a binding, keys and samples."""
        word = uuid.uuid4().hex[:12]
        mark = f"mark{word}"
        made = cls(api, f"t-{word}", lag, (mark, str(lag)), f"ns-{word}")
        answer = await api.put(f"/v1/tenants/{made.name}", json={"displayName": mark})
        assert answer.status_code == 201, answer.text
        await made.refill()
        answer = await api.post(f"/v1/tenants/{made.name}/bindings", json={"namespace": made.namespace})
        assert answer.status_code in {200, 201}, answer.text
        for role in ("tenant-admin", "tenant-viewer", "revoked"):
            body = {"name": mark, "role": "tenant-admin" if role == "revoked" else role}
            answer = await api.post(f"/v1/tenants/{made.name}/keys", json=body)
            assert answer.status_code == 201, answer.text
            made.keys[role] = {"Authorization": f"Bearer {answer.json()['key']}"}
            made.prefixes.append(answer.json()["prefix"])
        await api.delete(f"/v1/tenants/{made.name}/keys/{made.prefixes[-1]}")
        for topic in MONITORS:
            write(url, made.name, topic, [(seconds, (lag, 0)) for seconds in range(300, 0, -10)])
        return made

    async def refill(self) -> None:
        """Make again what the tenant's own requests may have changed or removed."""
        mark = self.marks[0]
        for name in CLUSTERS:
            await self._put(
                f"clusters/{name}",
                {
                    "bootstrapServers": [f"{mark}.invalid:9092"],
                    "security": {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": mark},
                    "secrets": {"password": f"secret-{mark}"},
                },
            )
        for name in MONITORS:
            policy = {"lagThreshold": 10, "sustainSeconds": 60, "samplingInterval": 10, "allowIdleConsumers": True}
            await self._put(
                f"monitors/{name}",
                {"cluster": "main", "consumerGroup": "readers", "topics": [name], "policy": policy},
            )

    async def _put(self, path: str, body: Mapping[str, Any]) -> None:
        answer = await self.api.put(f"/v1/tenants/{self.name}/{path}", json=body)
        assert answer.status_code in {200, 201}, f"{path}: {answer.text}"


def fingerprint(url: str, tenant: str) -> dict[str, str]:
    """Per table a digest of all of the tenant's rows."""
    found = {}
    with psycopg.connect(url) as connection:
        (number,) = connection.execute("select id from tenant where name = %s", (tenant,)).fetchone() or (None,)
        assert number is not None
        for table, columns in _tables(connection).items():
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


def strange(random: Random) -> str:
    """A name that is none."""
    return random.choice(("none", "0", "%27or%271", "a" * 70, "..", "ORDERS", "main%00", "1", "*", "%C3%A4"))
