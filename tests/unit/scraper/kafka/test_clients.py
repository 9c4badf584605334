"""Clients that need a token are opened beside the poll, and swapped for the next token without a gap."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest

from devstack.server import wait_until
from services.scraper.kafka import clients as module
from services.scraper.kafka.clients import Clients


class Client:
    """Stands in for `KafkaCluster`: opened when the test lets it."""

    let = threading.Event()

    def __init__(self, config: Mapping[str, Any], lifetime_seconds: float, rules: object) -> None:
        Client.let.wait(10)
        if config.get("bad"):
            raise ValueError("refused")
        self.config, self.lifetime_seconds, self.needs_replacement, self.busy_until = (
            config,
            lifetime_seconds,
            False,
            0.0,
        )

    def close(self) -> None:
        pass


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Clients:
    monkeypatch.setattr(module, "KafkaCluster", Client)
    Client.let = threading.Event()
    Client.let.set()
    return Clients()


def opened(made: Clients, version: str, token: int, **config: Any) -> Any:
    found: list[Any] = []

    def is_there() -> bool:
        found.append(made.get(1, version, lambda: config, token=token))
        return found[-1] is not None

    wait_until(is_there, 10, "the client was opened")
    return found[-1]


def test_without_a_token_a_client_is_there_at_once(made: Clients) -> None:
    assert made.get(1, "v", dict) is made.get(1, "v", dict)


def test_with_a_token_nobody_waits_for_it(made: Clients) -> None:
    Client.let.clear()
    assert made.get(1, "v", dict, token=1) is None
    assert made.get(1, "v", dict, token=1) is None
    # Another cluster is not held up.
    Client.let.set()
    assert made.get(2, "v", dict) is not None
    assert opened(made, "v", 1) is opened(made, "v", 1)


def test_the_client_of_the_token_before_serves_until_the_next_is_there(made: Clients) -> None:
    first = opened(made, "v", 1)
    Client.let.clear()
    assert made.get(1, "v", dict, token=2) is first
    assert made.get(1, "v", dict, token=2) is first
    Client.let.set()
    wait_until(lambda: made.get(1, "v", dict, token=2) is not first, 10, "the next client took over")
    # The first one may have requests under way: it is kept, but not used.
    assert first in [old.client for old in made._retired]


def test_other_settings_never_use_the_client_of_the_old_ones(made: Clients) -> None:
    first = opened(made, "v1", 1)
    Client.let.clear()
    assert made.get(1, "v2", dict, token=1) is None
    Client.let.set()
    assert opened(made, "v2", 1) is not first
    assert first in [old.client for old in made._retired]


def test_a_next_client_that_cannot_be_opened_leaves_the_one_that_there_is(made: Clients) -> None:
    first = opened(made, "v", 1)
    bad = {"bad": True}
    made.get(1, "v", lambda: bad, token=2)
    for asked in list(made._opener._pending.values()):
        assert asked.exception(10) is not None
    assert made.get(1, "v", lambda: bad, token=2) is first
    assert opened(made, "v", 2) is first


def test_what_the_client_refuses_is_refused_and_tried_again_later(made: Clients) -> None:
    with pytest.raises(ValueError, match="refused"):
        opened(made, "v", 1, bad=True)
    assert opened(made, "v", 1) is not None


def test_clients_that_are_being_opened_count(monkeypatch: pytest.MonkeyPatch, made: Clients) -> None:
    few = Clients(4)
    Client.let.clear()
    assert [few.get(cluster, "v", dict, tenant_id=cluster, token=1) for cluster in range(6)] == [None] * 6
    assert len(few) == 4
    assert few.get(7, "v", dict, tenant_id=7) is None
    Client.let.set()
    wait_until(lambda: few.get(0, "v", dict, tenant_id=0, token=1) is not None, 10, "the client was opened")
    assert len(few) == 4


def test_no_more_than_half_are_opened_for_those_who_never_answered(made: Clients) -> None:
    few = Clients(8)
    Client.let.clear()
    theirs = [few.get(cluster, "v", dict, tenant_id=1, responsive=False, token=1) for cluster in range(20)]
    assert theirs == [None] * 20
    assert len(few) == 4
    Client.let.set()
    assert few.get(100, "v", dict, tenant_id=2) is not None
