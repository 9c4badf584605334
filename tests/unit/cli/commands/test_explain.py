"""The page of a point in time: sentence first, rules, lag with its threshold, and decisions; readable at 80 columns."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from rich.console import Console

from services.cli.client import ApiClient
from services.cli.commands.explain import print_explanation
from services.cli.settings import CliSettings
from tests.support.command_line import run_main

SENTENCE = "Partition 2 of orders has been above 500 for 130 s. Answer to KEDA: value 1,500, active."
ROW: dict[str, Any] = {
    "replica": "scaler-1", "answeredAt": "2030-01-01T00:04:00Z", "newestRoundAt": "2030-01-01T00:03:58Z",
    "verdict": "sustained", "value": 1500.0, "active": True, "lastKnown": False, "reason": "lasted", "grpcCode": "OK",
    "registrationVersion": 3, "overrides": None,
}  # fmt: skip
REFUSED = {**ROW, "value": None, "active": None, "verdict": "unknown", "reason": "stale", "grpcCode": "UNAVAILABLE"}
SAID: dict[str, Any] = {
    "verdict": "sustained", "reason": "lasted", "activityReason": "sustained", "total": 5000, "partitions": 3, "lagging": 2,
    "members": 2, "decidingRule": "replica_cap", "ageSeconds": 4.2, "staleAfterSeconds": 30.0, "recovering": False, "timeLag": None,
    "answer": {"value": 1500.0, "active": True, "lastKnown": False}, "answerSentence": "KEDA gets value 1,500, active.",
    "steps": [{"rule": "replica_cap", "before": 5000.0, "after": 1500.0, "text": "Capped by the partitions."}],
    "islands": [{"topic": "orders", "partition": 2, "lag": 4000, "since": "2030-01-01T00:01:50Z", "durationSeconds": 130.0,
                 "startKnown": False}],
    "missing": [{"topic": "orders", "partition": 1, "since": "2030-01-01T00:02:00Z", "ageSeconds": 120.0, "lag": 7},
                {"topic": "refunds", "partition": None, "since": None, "ageSeconds": None, "lag": None}],
    "missingCount": 30, "stuck": [{"topic": "orders", "partition": 0}],
}  # fmt: skip
FOUND: dict[str, Any] = {
    "monitor": "orders", "at": "2030-01-01T00:04:00Z", "now": "2030-01-01T01:04:00Z", "sentence": SENTENCE,
    "registration": {"version": 3, "policy": {"maxGapSeconds": 25.0}}, "evaluation": SAID,
    "answers": [{**ROW, "agrees": True, "rule": [], "difference": None}], "previousAnswer": None,
    "decisions": [ROW, {**REFUSED, "answeredAt": "2030-01-01T00:02:00Z"}], "notes": ["The monitor was deleted."],
    "lag": [{"at": f"2030-01-01T00:0{minute}:00Z", "total": 1000 * minute, "maxPartitionLag": 900 * minute,
             "maxPartitionLagLow": 900 * minute} for minute in range(5)],
    "threshold": 500, "usesTotalLag": False,
}  # fmt: skip


def page(width: int = 80, **facts: Any) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w", encoding="utf-8"))  # noqa: SIM115
    with console.file:
        print_explanation({**FOUND, **facts}, "shop/orders", console)
    return console.export_text()


@pytest.mark.parametrize("width", [80, 100, 200])
def test_the_page_has_everything_and_fits(width: int) -> None:
    shown = page(width)
    assert max(map(len, shown.splitlines())) <= min(width, 120)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    order = [
        next(number for number, line in enumerate(lines) if line.startswith(begin))
        for begin in ("shop/orders at 2030-01-01 00:04:00 UTC", "Partition 2 of orders", "Evaluation", "total lag",
                      "replica cap", "answer", "island orders/2: above for at least 130 s", "missing orders/1",
                      "missing refunds: no sample yet", "and 22 more", "stuck orders/0", "Lag until then", "KEDA",
                      "Recorded decisions", "scaler-1")
    ]  # fmt: skip
    assert order == sorted(order)
    assert "deciding limit" in " ".join(lines)
    assert "The monitor was deleted." in lines


def test_what_was_told_is_drawn_under_the_plot() -> None:
    strip = next(line for line in page().splitlines() if line.startswith(" KEDA "))
    assert strip[6:].strip() == "!" * strip.count("!") + "█" * strip.count("█")
    assert strip.count("!") > strip.count("█") > 0


def test_a_moment_without_samples_and_answers_says_so() -> None:
    shown = page(evaluation=None, answers=[], decisions=[], lag=[])
    for text in ("no samples", "no samples in the evaluated", "no recorded decisions"):
        assert text in shown
    assert "the previous one" in page(answers=[], previousAnswer=ROW)


def test_why_an_answer_differs_stands_beside_what_the_samples_say() -> None:
    differing = {**REFUSED, "agrees": False, "rule": ["store_unavailable"], "difference": "The store did not answer."}
    shown = page(answers=[differing])
    assert "scaler-1: The store did not answer." in shown
    assert "Evaluation: KEDA gets value 1,500, active." in shown
    assert "error UNAVAILABLE (stale)" in shown


@pytest.mark.parametrize(("most", "text"), [(30.0, "at most 30 s"), (None, "older than the stored samples")])
def test_a_time_lag_is_shown_with_its_bounds(most: float | None, text: str) -> None:
    said = {**SAID, "timeLag": {"seconds": 21.2, "atLeast": 15.0, "atMost": most}}
    shown = " ".join(page(evaluation=said).split())
    assert f"the oldest unread message: 21 s (at least 15 s, {text})" in shown


def test_an_unknown_verdict_shows_its_error() -> None:
    said = {**SAID, "verdict": "unknown", "reason": "stale", "steps": [], "decidingRule": None, "answer": None,
            "answerSentence": "KEDA gets an error.", "activityReason": None}  # fmt: skip
    shown = page(evaluation=said)
    assert "KEDA gets an error." in shown
    assert "total lag" not in shown


def test_a_threshold_that_counts_no_messages_is_not_drawn() -> None:
    shown = page(threshold=None)
    assert "╌" not in shown
    assert "threshold" not in shown


@pytest.mark.parametrize(("at", "wanted"), [([], ""), (["--at", "2030-01-01T00:00:00+01:00"], "at=2030-01-01T00%3A00%3A00%2B01%3A00")])  # fmt: skip
def test_the_moment_is_asked_of_the_api(
    at: list[str], wanted: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json=FOUND)

    def client(settings: CliSettings, **_: object) -> ApiClient:
        return ApiClient(settings.model_copy(update={"api_key": SecretStr("key")}), httpx.MockTransport(answer))

    monkeypatch.setattr("services.cli.client.ApiClient", client)
    assert run_main(monkeypatch, "explain", "shop/orders", *at) == 0
    assert SENTENCE[:40] in capsys.readouterr().out
    assert run_main(monkeypatch, "explain", "shop/orders", *at, "--json") == 0
    assert '"monitor": "orders"' in capsys.readouterr().out
    assert asked[0].url.path == "/v1/tenants/shop/monitors/orders/explain"
    assert asked[0].url.query.decode() == wanted


def test_a_freeze_is_told_and_drawn() -> None:
    answer = {"value": 1500.0, "active": True, "lastKnown": True, "knownAt": "2030-01-01T00:00:30Z"}
    frozen = {"since": "2030-01-01T00:01:00Z", "until": "2030-01-01T02:00:00Z", "reasons": ["a move"], "answer": answer}
    row = {**ROW, "verdict": "unknown", "reason": "frozen", "lastKnown": True, "answeredAt": "2030-01-01T00:01:00Z"}
    shown = page(120, frozen=frozen, decisions=[row], answers=[row])
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    told = "KEDA gets 1,500, active, known at 2030-01-01 00:00:30"
    assert f"frozen since 2030-01-01 00:01:00 UTC: {told}" in lines
    assert "decisions: f frozen" in lines
    assert any("1,500, active (frozen)" in line for line in lines)
    nothing = page(120, frozen={**frozen, "answer": None})
    assert "KEDA gets an error" in nothing
