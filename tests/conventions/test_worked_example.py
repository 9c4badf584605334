"""The worked example of docs/persistence.md is judged by the reference as the page says."""

from __future__ import annotations

import re
from pathlib import Path

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Sample
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.contract import Verdict
from lagscale.domain.verdict.evaluate import judge

PAGE = Path(__file__).parents[2] / "docs" / "persistence.md"
#: What the page says of the policy, above the table.
POLICY = parse_policy({"lagThreshold": "500", "sustainSeconds": "60", "samplingInterval": "15"})
PRODUCED_A_SECOND = 100


def rows() -> list[tuple[int, int | None, str, int]]:
    """(milliseconds of the day, lag or None, verdict, value) of each line of the table."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        match = re.match(r"\| (\d+):(\d\d):(\d\d) \| ([\d,]+|\*missing\*) \|.*?\| \**(\w+)\**[^|]*\| ([\d,]+)\D", line)
        if match:
            hours, minutes, seconds = (int(part) for part in match.group(1, 2, 3))
            lag = None if "missing" in match[4] else int(match[4].replace(",", ""))
            at_ms = ((hours * 60 + minutes) * 60 + seconds) * 1000
            found.append((at_ms, lag, match[5], int(match[6].replace(",", ""))))
    return found


def round_of(at_ms: int, lag: int) -> TargetRound:
    return TargetRound(
        at_ms=at_ms,
        incarnation=0,
        samples=(Sample(lag, at_ms // 1000 * PRODUCED_A_SECOND),),
        members=1,
        members_age_ms=0,
    )


def test_the_table_is_judged_as_it_says() -> None:
    table = rows()
    assert len(table) == 10
    begin = table[0][0]
    history = [round_of(at, 0) for at in range(begin - 600_000, begin, 15_000)]
    for at_ms, lag, verdict, value in table:
        if lag is not None:
            history.append(round_of(at_ms, lag))
        judgment = judge({1: history}, POLICY, now_ms=at_ms)
        assert (judgment.verdict, judgment.value) == (Verdict(verdict), float(value)), f"at {at_ms}"


def test_a_start_in_the_middle_is_unknown_until_it_lasted() -> None:
    begin = next(at for at, lag, _, _ in rows() if lag == 700)
    history = []
    for at_ms, lag, verdict, _ in (row for row in rows() if row[0] >= begin):
        if lag is None:
            continue
        history.append(round_of(at_ms, lag))
        judgment = judge({1: history}, POLICY, now_ms=at_ms)
        if verdict == "sustained":
            assert judgment.verdict is Verdict.SUSTAINED
            return
        assert judgment.verdict is Verdict.UNKNOWN
    raise AssertionError("the table has no sustained line")
