"""The pipeline's options travel through Spark as texts."""

from __future__ import annotations

from lagscale.kafka.addresses import AddressRules
from services.scraper.engine.options import EngineOptions


def test_options_are_the_same_after_the_way_through_spark() -> None:
    rules = AddressRules.parse("10.0.0.0/8:9092,kafka.example,[2001:db8::/32]:1", private_refused=True)
    options = EngineOptions("postgresql://u@h/d", "keys", 5000, 2, "holder", "nobody/hears", 5.0, 100, rules.text)
    # Spark compares names without case.
    arrived = EngineOptions.read({name.upper(): text for name, text in options.texts().items()})
    assert arrived == options
    assert AddressRules.from_text(arrived.addresses) == rules
