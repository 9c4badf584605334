"""A moment explained: what the samples say of it, and what was told, which nothing changes afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from devstack.database import Database
from lagscale.errors import StoreUnavailable
from lagscale.store.connection import open_pool
from tests.integration.api.conftest import Shop
from tests.integration.api.replica import Replica, backdate, newest, past, rows_of, write_at
from tests.support.stored_rounds import write

pytestmark = pytest.mark.integration

POLICY = {"lagThreshold": 100, "sustainSeconds": 30, "samplingInterval": 10, "workSeconds": 0}
LASTING = [(51, (0, 0)), (41, (150, 0)), (31, (160, 0)), (21, (180, 0)), (11, (200, 0)), (1, (900, 7))]


def iso(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()


@pytest.fixture
async def replica(shop: Shop, shared_url: str) -> AsyncIterator[Replica]:
    pool = open_pool(shared_url, "lagscale_scaler", 1, application="test-replica")
    await pool.open(wait=True)
    yield Replica(shared_url, shop, pool)
    await pool.close()


async def explained(shop: Shop, at: int | str | None = None, monitor: str = "orders") -> dict[str, Any]:
    params = {} if at is None else {"at": str(at)}
    answer = await shop.api.get(f"{shop.path}/monitors/{monitor}/explain", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def as_answered(found: dict[str, Any]) -> tuple[Any, Any]:
    """What is shown as told, without what is said about it."""
    about = {"agrees", "reasons", "difference"}
    newest = [{name: value for name, value in one.items() if name not in about} for one in found["answers"]]
    return newest, found["decisions"]


async def test_a_moment_is_explained_from_total_to_answer(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING, members=2)
    at = await replica.record_answer()
    found = await explained(shop, at)
    said = found["evaluation"]
    assert (said["verdict"], said["value"], said["active"], said["activityReason"]) == (
        "sustained",
        200.0,
        True,
        "sustained",
    )
    assert [(step["rule"], step["before"], step["after"]) for step in said["steps"]] == [("replica_cap", 907.0, 200.0)]
    assert said["decidingRule"] == "replica_cap"
    text = said["steps"][0]["text"]
    assert text.startswith("Capped by the number of partitions. The HPA changes nothing within its tolerance, 10 %")
    (island,) = said["islands"]
    assert (island["topic"], island["partition"], island["durationSeconds"], island["startKnown"]) == (
        "orders",
        0,
        40.0,
        True,
    )
    assert (said["missing"], said["samplesComplete"], said["answer"]["value"]) == ([], True, 200.0)
    (row,) = found["answers"]
    assert (row["replica"], row["value"], row["active"], row["agrees"], row["reasons"]) == (
        "replica-1",
        200.0,
        True,
        True,
        [],
    )
    assert (row["registrationVersion"], row["reason"], row["grpcCode"]) == (1, "lasted", "OK")
    assert row["newestRoundAt"] == said["newestRoundAt"]
    assert found["sentence"].endswith("Answer to KEDA: value 200, active.")
    assert found["lag"][-1]["total"] == 907
    assert [point["maxPartitionLag"] for point in found["lag"]] == [0, 150, 160, 180, 200, 900]
    assert (found["threshold"], found["usesTotalLag"], found["notes"]) == (100, False, [])


async def test_the_past_is_judged_with_the_samples_until_then(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    backdate(shared_url, shop, seconds=3600)
    found = await explained(shop, await newest(shared_url, shop) - 20_000)
    said = found["evaluation"]
    assert (said["verdict"], said["reason"], said["islands"][0]["durationSeconds"]) == ("calm", "not_yet", 20.0)
    assert found["answers"] == []
    assert "No answer to KEDA is recorded" in found["sentence"]


async def test_missing_partitions_and_topics_are_listed_with_since_when(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", topics=["orders", "refunds"], policy=POLICY)
    write(shared_url, shop.name, "orders", [(71, (5, 6, 7)), (61, (5, None, 7)), (1, (5, None, None))])
    said = (await explained(shop))["evaluation"]
    assert (said["verdict"], said["reason"], said["missingCount"]) == ("unknown", "no_data", 3)
    listed = [(one["topic"], one["partition"], one["lag"]) for one in said["missing"]]
    assert listed == [("refunds", None, None), ("orders", 1, 6), ("orders", 2, 7)]
    assert 70 <= said["missing"][1]["ageSeconds"] < 90
    assert said["missing"][0]["since"] is None


async def test_a_held_answer_is_the_last_step(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY | {"staleAfterSeconds": 30})
    write(shared_url, shop.name, "orders", [(140, (0,)), (130, (150,)), (120, (160,)), (110, (170,)), (100, (180,))])
    found = await explained(shop, await replica.record_answer())
    said, (row,) = found["evaluation"], found["answers"]
    assert (said["verdict"], said["reason"], said["answer"]["lastKnown"]) == ("unknown", "stale", True)
    assert [(step["rule"], step["before"], step["after"]) for step in said["steps"]] == [("last_known", None, 100.0)]
    assert said["ageSeconds"] > 99
    assert (row["lastKnown"], row["agrees"]) == (True, True)
    assert "Answer to KEDA: last-known answer: value 100, active." in found["sentence"]


async def test_editing_the_policy_changes_nothing_that_was_told(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    at = await replica.record_answer()
    before = await explained(shop, at)
    await shop.monitor("orders", policy=POLICY | {"lagThreshold": 5000})
    after = await explained(shop, at)
    assert as_answered(after) == as_answered(before)
    assert after["evaluation"] == before["evaluation"]
    assert (after["registration"]["version"], after["threshold"]) == (1, 100)
    assert after["registration"]["validUntil"] is not None
    assert any("The policy was changed later" in note for note in after["notes"])
    # Until the replica is asked again, what it told is the answer of the policy before.
    present = await explained(shop)
    (row,) = present["answers"]
    assert (present["threshold"], present["evaluation"]["verdict"], row["value"]) == (5000, "calm", 200.0)
    assert (row["agrees"], row["reasons"]) == (False, ["other_policy"])
    assert "This replica had version 1 of the registration; version 2 was valid at that time." in present["sentence"]


async def test_a_late_round_changes_what_the_samples_say_and_not_what_was_told(
    shop: Shop, shared_url: str, replica: Replica
) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", [round_ for round_ in LASTING if round_[0] > 5])
    at = await replica.record_answer()
    before = await explained(shop, at)
    assert before["evaluation"]["verdict"] == "sustained"
    # Stamped before the answer, and stored after it.
    write_at(shared_url, shop, at - 5_000, (0, 0))
    after = await explained(shop, at)
    assert as_answered(after) == as_answered(before)
    assert after["evaluation"]["verdict"] == "calm"
    (row,) = after["answers"]
    assert (row["value"], row["agrees"], row["reasons"]) == (200.0, False, ["late_rounds"])
    assert "reached the store only after the answer" in after["sentence"]


async def test_a_stopped_store_changes_nothing_that_was_told(
    shop: Shop, shared_url: str, replica: Replica, database: Database
) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    at = await replica.record_answer()
    before = await explained(shop, at)
    subject = replica.subject()
    database.pause()
    try:
        # Told from memory meanwhile, and written down when the store is back.
        replica.now_ms = at + 2_000
        replica.decision_log.record_error(subject, StoreUnavailable())
        async with asyncio.timeout(60):
            await replica.decision_log.flush()
        assert (await shop.api.get(f"{shop.path}/monitors/orders/explain")).status_code == 503
    finally:
        database.resume()
    async with asyncio.timeout(60):
        while not await rows_of(shared_url, shop, since_ms=at + 1):
            await replica.decision_log.flush()
    assert as_answered(await settled(shop, at)) == as_answered(before)
    later = await settled(shop, await past(shared_url, at + 2_500))
    (row,) = later["answers"]
    assert (row["grpcCode"], row["reason"], row["reasons"]) == (
        "UNAVAILABLE",
        "StoreUnavailable",
        ["store_unavailable"],
    )
    assert later["evaluation"]["answer"] is not None


async def test_a_deleted_monitor_is_still_explained(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    at = await replica.record_answer()
    before = await explained(shop, at)
    assert (await shop.api.delete(f"{shop.path}/monitors/orders")).status_code == 204
    after = await explained(shop, at)
    assert as_answered(after) == as_answered(before)
    assert after["evaluation"] == before["evaluation"]
    assert after["registration"]["topics"] == ["orders"]
    assert any("was deleted at" in note for note in after["notes"])
    # The name is free, and its next owner's moments are its own.
    await shop.monitor("orders", topics=["other"], policy=POLICY)
    assert as_answered(await explained(shop, at)) == as_answered(before)
    present = await explained(shop)
    assert (present["registration"]["topics"], present["answers"], present["notes"]) == (["other"], [], [])
    with psycopg.connect(shared_url, autocommit=True) as connection:
        # Targets that old are removed where nothing needs them.
        connection.execute(
            "update lag_target set created_at = now() - interval '60 days' "
            "where tenant_id = (select id from tenant where name = %s)",
            (shop.name,),
        )
        connection.execute("select tidy_registry(clock_timestamp())")
    assert as_answered(await explained(shop, at)) == as_answered(before)
    assert (await explained(shop, at))["evaluation"] == before["evaluation"]


async def test_topics_of_the_time_are_judged(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    at = await replica.record_answer()
    await shop.monitor("orders", topics=["refunds"], policy=POLICY)
    assert (await explained(shop, at))["evaluation"]["verdict"] == "sustained"
    present = await explained(shop)
    assert (present["evaluation"]["reason"], present["registration"]["topics"]) == ("no_data", ["refunds"])


async def test_replicas_that_tell_different_things_are_told_apart(
    shop: Shop, shared_url: str, replica: Replica
) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    backdate(shared_url, shop, seconds=600)
    newest_ms = await newest(shared_url, shop)
    second = Replica(shared_url, shop, replica.pool, "replica-2")
    await replica.record_answer(newest_ms)
    await second.record_answer(newest_ms - 30_000)
    third = replica.subject(overrides={"lagThreshold": "5000"})
    await replica.record_answer(newest_ms, third)
    found = await explained(shop, newest_ms + 500)
    first, own, other = sorted(found["answers"], key=lambda one: (one["replica"], one["overrides"] is not None))
    assert (first["agrees"], own["reasons"], other["reasons"]) == (True, ["overrides"], ["newer_rounds"])
    assert own["overrides"] == {"lagThreshold": "5000"}
    assert "Replicas answered KEDA differently" in found["sentence"]


async def test_what_is_too_old_to_say_something_is_told_as_older(shop: Shop, shared_url: str, replica: Replica) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    backdate(shared_url, shop, seconds=1000)
    decided_ms = await replica.record_answer(await newest(shared_url, shop))
    found = await explained(shop, decided_ms + 361_000)
    assert (found["answers"], found["previousAnswer"]["value"]) == ([], 200.0)
    assert "the previous one, 361 s earlier: value 200, active." in found["sentence"]
    assert (await explained(shop, decided_ms + 360_000))["answers"] != []


async def test_samples_that_are_no_longer_kept_are_not_taken_for_none(
    shop: Shop, shared_url: str, replica: Replica, keeping: Callable[[int], None]
) -> None:
    await shop.monitor("orders", policy=POLICY)
    write(shared_url, shop.name, "orders", LASTING)
    backdate(shared_url, shop, seconds=3600)
    at = await replica.record_answer(await newest(shared_url, shop))
    keeping(at + 1)
    gone = await explained(shop, at)
    assert (gone["evaluation"], gone["answers"][0]["value"], gone["answers"][0]["agrees"]) == (None, 200.0, None)
    assert gone["sentence"].startswith("The samples of that time are no longer retained.")
    keeping(at - 1_000)
    partly = await explained(shop, at)
    assert partly["evaluation"]["samplesComplete"] is False
    assert any("may have been deleted" in note for note in partly["notes"])


async def test_times_are_read_in_both_forms(shop: Shop, shared_url: str) -> None:
    await shop.monitor("orders", policy=POLICY)
    backdate(shared_url, shop, seconds=600)
    at = await past(shared_url, 0) - 60_000
    in_kolkata = datetime.fromtimestamp(at / 1000, UTC).astimezone(datetime.strptime("+0530", "%z").tzinfo)
    forms = (at, iso(at), iso(at).replace("+00:00", "Z"), in_kolkata.isoformat())
    assert len({(await explained(shop, form))["at"] for form in forms}) == 1
    # A plus sign that nobody encoded.
    answer = await shop.api.get(f"{shop.path}/monitors/orders/explain?at={in_kolkata.isoformat()}")
    assert answer.json()["at"] == (await explained(shop, at))["at"]


@pytest.mark.parametrize(
    ("at", "wanted"),
    [
        ("yesterday", "must be a time with its zone"),
        ("2030-01-31T12:00:00", "must be a time with its zone"),
        ("", "must be a time with its zone"),
        ("-5", "must be a time with its zone"),
        ("9999999999999999", "must be a time with its zone"),
        ("9999-01-01T00:00:00Z", "must be a time with its zone"),
        ("4000000000000", "is in the future"),
        ("1700000000", "retention of decisions (14 days)"),
        ("before", "is before the monitor was registered; give "),
    ],
)
async def test_a_fault_of_the_moment_names_at(shop: Shop, shared_url: str, at: str, wanted: str) -> None:
    await shop.monitor("orders")
    given = str(await past(shared_url, 0) - 60_000) if at == "before" else at
    answer = await shop.api.get(f"{shop.path}/monitors/orders/explain", params={"at": given})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    (fault,) = answer.json()["errors"]
    assert fault["field"] == "at"
    assert wanted in fault["text"]


async def settled(shop: Shop, at: int) -> dict[str, Any]:
    """The explanation as soon as the store is back for everybody."""
    async with asyncio.timeout(60):
        while (await shop.api.get(f"{shop.path}/monitors/orders/explain?at={at}")).status_code == 503:
            continue
    return await explained(shop, at)


@pytest.fixture
def keeping(shared_url: str) -> Iterator[Callable[[int | None], None]]:
    """Says from when on samples are kept. That is every tenant's, so it is put back."""

    def since(at_ms: int | None) -> None:
        with psycopg.connect(shared_url) as connection:
            connection.execute("update samples_kept set kept_since = to_timestamp(%s / 1000.0)", (at_ms,))

    yield since
    since(None)
