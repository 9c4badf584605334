"""What a guard records: refused addresses, by resolved address and by name."""

from __future__ import annotations

from lagscale.kafka.addresses import ANY_ADDRESS, AddressRules
from lagscale.kafka.resolver_guard import ResolverGuard


def test_a_guard_remembers_what_it_refused() -> None:
    guard = ResolverGuard(AddressRules.parse("10.0.0.0/8"))
    assert guard.admits("kafka", 9092, ["10.0.0.1"])
    assert guard.refused() == []
    assert not guard.admits("kafka", 9092, ["10.0.0.1", "192.168.0.1"])
    assert guard.refused() == ["kafka:9092"]
    assert guard.filter_servers([("192.168.0.2", 1), ("10.0.0.2", 1), ("name", 1)]) == [("10.0.0.2", 1), ("name", 1)]
    assert guard.refused() == ["192.168.0.2:1", "kafka:9092"]
    assert guard.refused(seconds=-1) == []


def test_a_guard_without_limits_admits_everything() -> None:
    guard = ResolverGuard(ANY_ADDRESS)
    assert guard.admits("kafka", 9092, ["127.0.0.1", "169.254.169.254"])
    assert guard.filter_servers([("127.0.0.1", 1)]) == [("127.0.0.1", 1)]
    assert guard.refused() == []
