"""The options of the stream travel through Spark as texts."""

from __future__ import annotations

from lagscale.kafka.addresses import AddressRules
from services.scraper.engine.options import EngineOptions
from tests.support.engine_options import build_options


def test_options_are_the_same_after_the_way_through_spark() -> None:
    rules = AddressRules.parse("10.0.0.0/8:9092,kafka.example,[2001:db8::/32]:1", private_refused=True)
    options = build_options("postgresql://u@h/d", "holder", 5000, secret_keys="keys", addresses=rules.text)
    # Spark compares names without case.
    arrived = EngineOptions.from_texts({name.upper(): text for name, text in options.to_texts().items()})
    assert arrived == options
    assert AddressRules.from_text(arrived.addresses) == rules
