"""A scaler replica that tells and writes down, and a tenant's past, as tests of explanations need them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Verdict, VerdictRequest, choose_answer
from lagscale.store.connection import Pool
from lagscale.store.registrations.answers import PostgresDecisions
from lagscale.store.verdicts.judge import PostgresVerdicts
from services.scaler.answers.decision_log import DecisionLog
from services.scaler.triggers.directory import ResolvedMonitor
from tests.integration.api.conftest import Shop
from tests.support.stored_rounds import target_of, write


@dataclass
class Replica:
    """Tells what the samples say as the scaler does, and writes it down by the scaler's own recorder."""

    url: str
    shop: Shop
    pool: Pool
    name: str = "replica-1"
    now_ms: int = 0

    def __post_init__(self) -> None:
        self.decision_log = DecisionLog(PostgresDecisions(self.pool), self.name, lambda: self.now_ms)

    def subject(self, monitor: str = "orders", overrides: dict[str, str] | None = None) -> ResolvedMonitor:
        with psycopg.connect(self.url) as connection:
            row = connection.execute(
                "select m.id, m.tenant_id, m.version, m.policy, array_agg(t.target_id) from monitor m "
                "join tenant n on n.id = m.tenant_id join monitor_target t on t.monitor_id = m.id "
                "where n.name = %s and m.name = %s group by m.id",
                (self.shop.name, monitor),
            ).fetchone()
        assert row is not None
        policy = Policy.parse({**row[3], **(overrides or {})})
        request = VerdictRequest(row[1], tuple(row[4]), policy)
        return ResolvedMonitor(
            row[1],
            self.shop.name,
            monitor,
            policy,
            row[0],
            request,
            {},
            f"{policy}",
            version=row[2],
            overrides=overrides,
        )

    async def record_answer(self, at_ms: int | None = None, subject: ResolvedMonitor | None = None) -> int:
        """Answer as of an instant, now by default; when it was told."""
        subject = self.subject() if subject is None else subject
        assert subject.request is not None
        verdicts = PostgresVerdicts(self.pool)
        request = (
            subject.request
            if at_ms is None
            else VerdictRequest(subject.tenant_id, subject.request.target_ids, subject.policy, at_ms, at_ms)
        )
        (judgment,) = await verdicts.judge([request])
        self.now_ms = judgment.now_ms
        last_known = await verdicts.find_last_known(request, judgment) if judgment.verdict is Verdict.UNKNOWN else None
        answer = choose_answer(judgment, subject.policy, last_known)
        assert answer is not None
        self.decision_log.record_answer(subject, answer, judgment)
        await self.decision_log.flush()
        return self.now_ms


async def past(url: str, at_ms: int) -> int:
    """The instant, or the database's present if that is later."""
    with psycopg.connect(url) as connection:
        row = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    return max(at_ms, row[0])


async def newest(url: str, shop: Shop) -> int:
    """The time of the newest round."""
    _, target = target_of(url, shop.name, "orders")
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select (extract(epoch from max(ts)) * 1000)::bigint from lag_sample where target_id = %s", (target,)
        ).fetchone()
    assert row is not None
    return int(row[0])


async def rows_of(url: str, shop: Shop, since_ms: int) -> list[Any]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            "select d.* from decision d join tenant t on t.id = d.tenant_id "
            "where t.name = %s and d.told_at >= to_timestamp(%s / 1000.0)",
            (shop.name, since_ms),
        ).fetchall()


def backdate(url: str, shop: Shop, seconds: int) -> None:
    """Everything of the tenant happened earlier, and its monitor was registered before its samples."""
    earlier = timedelta(seconds=seconds)
    with psycopg.connect(url) as connection:
        (tenant,) = connection.execute("select id from tenant where name = %s", (shop.name,)).fetchone() or (0,)
        for table, column, before in (
            ("monitor", "created_at", 120), ("monitor_version", "valid_from", 120),
            ("monitor_target_span", "since", 120),
        ):  # fmt: skip
            shift = sql.SQL("update {0} set {1} = {1} - %s where tenant_id = %s")
            named = shift.format(sql.Identifier(table), sql.Identifier(column))
            connection.execute(named, (earlier + timedelta(seconds=before), tenant))
        # A row does not move from one chunk to another: it is taken out, and comes in again.
        connection.execute(
            "create temp table earlier on commit drop as select * from lag_sample where tenant_id = %s", (tenant,)
        )
        connection.execute("delete from lag_sample where tenant_id = %s", (tenant,))
        connection.execute("update earlier set ts = ts - %s", (earlier,))
        connection.execute("insert into lag_sample select * from earlier")


def write_at(url: str, shop: Shop, at_ms: int, lags: tuple[int, ...]) -> None:
    """Store one round at a time."""
    with psycopg.connect(url) as connection:
        row = connection.execute("select (extract(epoch from clock_timestamp()) * 1000)::bigint").fetchone()
    assert row is not None
    write(url, shop.name, "orders", [((row[0] - at_ms) / 1000, lags)])
