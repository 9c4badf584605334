"""The sample monitor of the local stack."""

from __future__ import annotations

import pytest

from devstack.seed import build_policy
from lagscale.domain.policy.parsing import parse_policy


@pytest.mark.parametrize(("tick", "seconds"), [(0.5, 1), (1.0, 1), (2.5, 3), (5.0, 5)])
def test_its_policy_is_valid_with_every_tick(tick: float, seconds: int) -> None:
    given = {name: str(value) for name, value in build_policy(tick).items()}
    assert parse_policy(given, tick_seconds=tick).sampling_ms == seconds * 1000
