"""The client's address of each request: the peer's, or what trusted proxies say. The audit and rate limits use it."""

from __future__ import annotations

import ipaddress
from collections.abc import MutableMapping, Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class ClientAddressMiddleware:
    """Puts the client's address into the request's scope; `find_client_address` reads it.

    Args:
        app: what serves the request.
        trusted: addresses and networks of proxies whose `X-Forwarded-For` counts. Read from the right, it is the
            first address that none of them has. Without any, the header is what anybody may write, and is not read.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        # Annotated for the server's own kinds of the same protocol.
        self._app: ASGIApp = app
        if trusted:
            self._app = ProxyHeadersMiddleware(app, list(trusted))  # type: ignore[arg-type, assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (address := find_client_address(scope)) is not None:
            # In one spelling, or an IPv4 proxy is not known again on a socket of IPv6.
            scope["client"] = (address, scope["client"][1])
        await self._app(scope, receive, send)


def find_client_address(scope: MutableMapping[str, Any]) -> str | None:
    """The client's address in one spelling; None where the connection or a proxy does not tell it."""
    client = scope.get("client")
    try:
        address = None if not client else ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        # A proxy that hides the address, or a peer that is no address: nothing that it wrote is kept.
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return None if address is None else str(mapped or address)
