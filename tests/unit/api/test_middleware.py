"""From where a request came: the peer, or what trusted proxies say, and nothing else."""

from __future__ import annotations

import pytest
from starlette.types import Message, Receive, Scope, Send

from services.api.middleware import ClientAddressMiddleware, find_client_address

PROXIES = ("10.0.0.0/8", "192.0.2.1", "2001:db8::/32")


async def seen(peer: str | None, *forwarded: str, trusted: tuple[str, ...] = PROXIES) -> str | None:
    found: list[str | None] = []

    async def app(scope: Scope, _receive: Receive, _send: Send) -> None:
        found.append(find_client_address(scope))

    async def receive() -> Message:
        raise AssertionError

    async def send(_message: Message) -> None:
        raise AssertionError

    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    scope = {"type": "http", "headers": headers, "client": None if peer is None else (peer, 4711)}
    await ClientAddressMiddleware(app, trusted)(scope, receive, send)
    return found[0]


@pytest.mark.parametrize(
    ("peer", "forwarded", "wanted"),
    [
        ("203.0.113.9", (), "203.0.113.9"),
        # A header that no trusted proxy sent is what anybody may write.
        ("203.0.113.9", ("198.51.100.1",), "203.0.113.9"),
        ("10.1.2.3", (), "10.1.2.3"),
        ("10.1.2.3", ("203.0.113.9",), "203.0.113.9"),
        # The client wrote the left part itself.
        ("10.1.2.3", ("198.51.100.1, 203.0.113.9",), "203.0.113.9"),
        ("10.1.2.3", ("198.51.100.1", "203.0.113.9, 192.0.2.1"), "203.0.113.9"),
        ("2001:db8::5", ("2001:0DB8:ffff::1, 2a00::0001",), "2a00::1"),
        ("10.1.2.3", ("203.0.113.9:5566",), "203.0.113.9"),
        ("10.1.2.3", ("lsk_abc_secret",), None),
        ("10.1.2.3", ("unknown",), None),
        # An IPv4 client on a socket of IPv6, and a link.
        ("::ffff:10.1.2.3", ("203.0.113.9",), "203.0.113.9"),
        ("::ffff:203.0.113.9", (), "203.0.113.9"),
        ("fe80::1%eth0", (), "fe80::1"),
        (None, ("203.0.113.9",), None),
    ],
)
async def test_the_client_is_the_last_that_no_proxy_of_ours_is(
    peer: str | None, forwarded: tuple[str, ...], wanted: str | None
) -> None:
    assert await seen(peer, *forwarded) == wanted


async def test_without_proxies_the_header_is_not_read() -> None:
    for peer in ("127.0.0.1", "10.1.2.3"):
        assert await seen(peer, "203.0.113.9", trusted=()) == peer
