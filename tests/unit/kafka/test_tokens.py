"""Tokens: renewed before they end, handed over without waiting, and no tenant holds up another."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from confluent_kafka.admin import AdminClient

from lagscale.errors import TokenUnavailable
from lagscale.kafka import msk
from lagscale.kafka.msk import MskIam
from lagscale.kafka.tokens import (
    MAX_FETCHES,
    MAX_FETCHES_PER_TENANT,
    Token,
    TokenCache,
    TokenSource,
    build_token_fetcher,
    parse_extensions,
)

LIFE = 300.0


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def counted(clock: Clock, life: float = LIFE) -> Callable[[], Token]:
    """Makes `token-1`, `token-2`, ..."""
    made: list[int] = []

    def make() -> Token:
        made.append(1)
        return Token(f"token-{len(made)}", clock.now + life, "me", {"x": "y"})

    return make


def failing() -> Token:
    raise TokenUnavailable("HTTP 401")


def value(source: TokenSource) -> str | None:
    token = source.token()
    return None if token is None else token.value


def turn(tokens: TokenCache) -> int:
    """What the thread does at each look."""
    taken = tokens.take_due()
    for source in taken:
        tokens.fetch(source)
    return len(taken)


def test_the_first_token_is_awaited_by_nobody_and_then_kept(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    source = tokens.source(1, "v1", "shop", counted(clock))
    assert value(source) is None
    with pytest.raises(TokenUnavailable, match="not available yet"):
        source.provide_token()
    assert turn(tokens) == 1
    assert value(source) == "token-1"
    assert source.provide_token() == ("token-1", clock.now + LIFE, "me", {"x": "y"})
    assert turn(tokens) == 0
    assert tokens.source(1, "v1", "shop", failing) is source


def test_it_is_renewed_before_the_client_asks_for_the_next(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    source = tokens.source(1, "v1", "shop", counted(clock))
    turn(tokens)
    assert source.generation == 1
    clock.now += 0.49 * LIFE
    assert turn(tokens) == 0
    clock.now += 0.02 * LIFE
    assert turn(tokens) == 1
    assert source.generation == 2
    # The client asks at 80 %, and has the next one.
    clock.now += 0.29 * LIFE
    assert source.provide_token()[0] == "token-2"


def test_a_failed_renewal_keeps_the_token_while_it_is_good_and_then_says_why(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    answers: list[Callable[[], Token]] = [counted(clock)]

    def make() -> Token:
        return answers[-1]()

    source = tokens.source(1, "v1", "shop", make)
    turn(tokens)
    answers.append(failing)
    clock.now += 0.8 * LIFE
    assert turn(tokens) == 1
    assert value(source) == "token-1"
    clock.now += 0.2 * LIFE
    for ask in (source.token, source.provide_token):
        with pytest.raises(TokenUnavailable, match="HTTP 401"):
            ask()
    answers.append(counted(clock))
    clock.now += 60
    turn(tokens)
    assert value(source) == "token-1"


def test_what_fails_is_asked_less_and_less_often(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    tokens.source(1, "v1", "shop", failing)
    asked = 0
    for _ in range(600):
        asked += turn(tokens)
        clock.now += 1
    # 2, 4, 8, 16, 32 seconds, then every minute.
    assert 12 <= asked <= 16


def test_a_failure_of_any_kind_tells_nothing_of_what_was_sent(clock: Clock) -> None:
    def make() -> Token:
        raise RuntimeError("canary")

    source = TokenSource(make, "shop", clock)
    source.renew()
    with pytest.raises(TokenUnavailable) as caught:
        source.token()
    assert "RuntimeError" in caught.value.message
    assert "canary" not in caught.value.message


def test_other_settings_have_another_source(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    first = tokens.source(1, "v1", "shop", counted(clock))
    second = tokens.source(1, "v2", "shop", counted(clock))
    assert second is not first
    assert turn(tokens) == 1
    assert value(second) == "token-1"


def test_what_nobody_asks_for_is_renewed_no_more_though_its_client_asks(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    source = tokens.source(1, "v1", "shop", counted(clock))
    turned = 0
    for _ in range(40):
        turned += turn(tokens)
        clock.now += 210
        if clock.now - source.used_at <= 7200:
            source.provide_token()
    # Two hours of a token that is renewed at each of these looks, though it lives for longer.
    assert turned == 35
    with pytest.raises(TokenUnavailable):
        source.provide_token()


def test_one_tenants_hanging_endpoints_take_its_own_share_only(clock: Clock) -> None:
    tokens = TokenCache(clock, threads=False)
    for number in range(50):
        tokens.source(number, "v1", "hanging", counted(clock))
    taken = tokens.take_due()
    assert len(taken) == MAX_FETCHES_PER_TENANT
    clock.now += 1
    well = tokens.source(100, "v1", "shop", counted(clock))
    # What was taken is still under way, and the other tenant's turn comes all the same.
    assert tokens.take_due() == [well]
    assert tokens.take_due() == []
    others = [tokens.source(200 + n, "v1", f"tenant-{n}", counted(clock)) for n in range(20)]
    more = tokens.take_due()
    assert len(more) + len(taken) + 1 == MAX_FETCHES
    assert set(more) <= set(others)


def test_the_thread_fetches_and_ends() -> None:
    tokens = TokenCache()
    done: list[Token] = []
    source = tokens.source(1, "v1", "shop", lambda: done.append(Token("t", time.time() + 60)) or done[-1])
    until = time.monotonic() + 10
    while source.token() is None:
        assert time.monotonic() < until, "no token came"
        tokens._wake.wait(0.01)
    thread = tokens._thread
    assert thread is not None
    tokens.close()
    thread.join(10)
    assert not thread.is_alive()


def test_a_token_does_not_show() -> None:
    assert "canary" not in repr(Token("canary", 1.0))
    assert "canary" not in repr(MskIam("eu-west-1", "canary", "canary", "canary"))


def test_the_clients_callback_gets_the_token_without_waiting(clock: Clock) -> None:
    source = TokenSource(lambda: Token("some.signed.token", time.time() + 900, "me", {"logicalCluster": "x"}), "shop")
    source.renew()
    asked: list[str] = []

    def provide_token(config: str | None) -> Any:
        asked.append("")
        return source.provide_token(config)

    began = time.monotonic()
    admin = AdminClient(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": provide_token}
    )  # fmt: skip
    assert admin is not None
    assert asked == [""]
    assert time.monotonic() - began < 5


# MSK: no AWS is asked; what is signed is looked at.


def signed(token: Token) -> dict[str, list[str]]:
    padded = token.value + "=" * (-len(token.value) % 4)
    url = urlsplit(base64.urlsafe_b64decode(padded).decode())
    assert (url.scheme, url.netloc) == ("https", "kafka.eu-west-1.amazonaws.com")
    return parse_qs(url.query)


MSK = {"protocol": "SASL_SSL", "mechanism": "OAUTHBEARER", "token_provider": "aws_msk_iam", "aws_region": "eu-west-1"}
KEYS = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "canary-key"}


def test_a_token_for_msk_is_a_signed_address_of_its_region() -> None:
    make = build_token_fetcher(MSK, {**KEYS, "aws_session_token": "session"})
    assert make is not None
    began = time.time()
    token = make()
    said = signed(token)
    assert said["Action"] == ["kafka-cluster:Connect"]
    assert said["X-Amz-Algorithm"] == ["AWS4-HMAC-SHA256"]
    assert said["X-Amz-Credential"][0].startswith("AKIAEXAMPLE/")
    assert said["X-Amz-Credential"][0].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert said["X-Amz-Security-Token"] == ["session"]
    assert len(said["X-Amz-Signature"][0]) == 64
    assert "canary" not in str(said)
    # A quarter of an hour, in whole seconds.
    assert began + 899 <= token.expires_at <= time.time() + 900


def test_a_token_for_msk_is_renewed_and_handed_over(clock: Clock) -> None:
    clock.now = time.time()
    make = build_token_fetcher(MSK, KEYS)
    assert make is not None
    tokens = TokenCache(clock, threads=False)
    source = tokens.source(1, "v1", "shop", make)
    turn(tokens)
    value, expires_at, principal, more = source.provide_token()
    assert (signed(Token(value, expires_at))["X-Amz-Expires"], principal, more) == (["900"], "", {})
    clock.now += 640
    assert turn(tokens) == 1
    assert source.provide_token()[1] >= expires_at
    # The client takes what the signer makes: its letters, and its end.
    admin = AdminClient(
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", "oauth_cb": source.provide_token}
    )
    assert admin is not None


def test_without_keys_the_pods_role_is_never_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # The pod has a role; nobody lent it.
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPOD")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    for hidden in ({}, {"aws_access_key_id": "A"}, {"aws_secret_access_key": "s"}):
        make = build_token_fetcher(MSK, hidden)
        assert make is not None
        with pytest.raises(TokenUnavailable, match="awsAccessKeyID and awsSecretAccessKey are missing"):
            make()


def test_the_pods_role_is_used_where_it_was_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAPOD")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
    make = build_token_fetcher(MSK | {"aws_pod_role": True}, {})
    assert make is not None
    assert signed(make())["X-Amz-Credential"][0].startswith("AKIAPOD/")


def test_a_pod_without_a_role_and_an_image_without_the_signer_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Signer:
        """As the library behaves where nobody gives keys."""

        @staticmethod
        def generate_auth_token(region: str) -> tuple[str, int]:
            raise AttributeError(region)

    with pytest.raises(TokenUnavailable, match="no keys for the pod"):
        MskIam("eu-west-1", pod_role=True)._sign(Signer)
    monkeypatch.setitem(__import__("sys").modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(TokenUnavailable, match="extra `msk`"):
        MskIam("eu-west-1", "a", "b").fetch()
    assert msk.__doc__ is not None


def test_other_kinds_need_no_token() -> None:
    assert build_token_fetcher({}, {}) is None
    assert build_token_fetcher({"protocol": "SASL_SSL", "mechanism": "PLAIN"}, {}) is None


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", {}),
        ("logicalCluster=lkc-1,identityPoolId=pool-x", {"logicalCluster": "lkc-1", "identityPoolId": "pool-x"}),
        ("a=b=c, d=", {"a": "b=c", "d": ""}),
    ],
)
def test_extensions_are_read_as_keda_writes_them(text: str, read: dict[str, str]) -> None:
    assert parse_extensions(text) == read
