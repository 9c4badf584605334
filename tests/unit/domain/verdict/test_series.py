"""What is known of the group's members at the newest round."""

from __future__ import annotations

import pytest

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.lag.samples import Sample
from lagscale.domain.policy.parsing import parse_policy
from lagscale.domain.verdict.series import build_series

POLICY = parse_policy({})


def at(seconds: int, members: int | None = None, age: int = 0) -> TargetRound:
    return TargetRound(
        seconds * 1000, 1, (Sample(0, 10),), members=members, members_age_ms=None if members is None else age * 1000
    )


def members(**targets: list[TargetRound]) -> int | None:
    seen = build_series(dict(enumerate(targets.values())), POLICY, None)
    assert seen is not None
    return seen.members()


def test_a_reading_counts_for_180_seconds() -> None:
    assert members(a=[at(1000, 3), at(1180)]) == 3
    assert members(a=[at(1000, 3), at(1181)]) is None


def test_the_age_of_the_reading_counts_along() -> None:
    assert members(a=[at(1000, 3, age=60), at(1120)]) == 3
    assert members(a=[at(1000, 3, age=60), at(1121)]) is None


@pytest.mark.parametrize("first", [True, False])
def test_of_several_targets_the_youngest_reading_counts(first: bool) -> None:
    older, younger = [at(1000, 3), at(1060)], [at(1030, 5), at(1060)]
    assert members(a=older if first else younger, b=younger if first else older) == 5


def test_only_a_round_at_the_newest_time_knows() -> None:
    assert members(a=[at(1000, 3)], b=[at(1010)]) is None


def test_a_newer_reading_of_nobody_counts() -> None:
    assert members(a=[at(1000, 3), at(1060, 0)]) == 0
