"""Which freezes a monitor is under, when they end, and what is said of them."""

from __future__ import annotations

import pytest

from lagscale.domain.verdict.freezes import Freeze, Freezes, select_active

BEGIN = 1_700_000_000_000


def brake(name: str, *, since: int = 0, until: int = 100, reason: str = "a move", **of: object) -> Freeze:
    facts: dict[str, object] = {"tenant_id": 1, "cluster": None, "monitor_id": None, **of}
    return Freeze(
        name, facts["tenant_id"], facts["cluster"], facts["monitor_id"], BEGIN + since, BEGIN + until, reason  # type: ignore[arg-type]
    )  # fmt: skip


EVERY = Freezes(
    [brake("tenant"), brake("cluster", cluster="main"), brake("monitor", monitor_id=7), brake("theirs", tenant_id=2)]
)


@pytest.mark.parametrize(
    ("monitor", "names"),
    [
        ((1, "main", 7), {"tenant", "cluster", "monitor"}),
        ((1, "main", 8), {"tenant", "cluster"}),
        ((1, "spare", 7), {"tenant", "monitor"}),
        ((1, "main", None), {"tenant", "cluster"}),
        ((2, "main", 7), {"theirs"}),
        ((3, "main", 7), set()),
    ],
)
def test_a_monitor_is_under_its_own_its_clusters_and_its_tenants(
    monitor: tuple[int, str, int | None], names: set[str]
) -> None:
    assert {one.freeze_id for one in EVERY.of(*monitor)} == names
    assert EVERY
    assert not Freezes([])
    assert Freezes([]).of(*monitor) == ()


def test_the_end_is_no_longer_frozen_and_without_a_clock_all_hold() -> None:
    late, early = brake("b", since=5), brake("a", until=50)
    assert [one.freeze_id for one in select_active([late, early], BEGIN)] == ["a", "b"]
    assert select_active([late, early], BEGIN + 50) == (late,)
    assert select_active([late, early], BEGIN + 100) == ()
    assert select_active([late, early], None) == (early, late)


def test_equal_beginnings_have_one_order_in_all_replicas() -> None:
    one, other = brake("a"), brake("b")
    assert select_active([one, other], BEGIN) == select_active([other, one], BEGIN) == (one, other)
