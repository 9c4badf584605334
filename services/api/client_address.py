"""The client's address of each request: the peer's, or what trusted proxies say. Audit and limits ask for it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from lagscale.store.registry.origin import coming_from


class CameFrom:
    """Binds the client's address to the request.

    Args:
        app: what serves the request.
        trusted: addresses and networks of proxies whose `X-Forwarded-For` counts. Read from the right, it is the
            first address that none of them has. Without any, the header is what anybody may write, and is not read.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        self._inner = app
        # Annotated for the server's own kinds of the same protocol.
        self._app: ASGIApp = ProxyHeadersMiddleware(self._bound, list(trusted)) if trusted else self._bound  # type: ignore[arg-type, assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (found := _address(scope)) is not None:
            # In one spelling, or an IPv4 proxy is not known again on a socket of IPv6.
            scope["client"] = (found, scope["client"][1])
        await self._app(scope, receive, send)

    async def _bound(self, scope: Scope, receive: Receive, send: Send) -> None:
        with coming_from(_address(scope)):
            await self._inner(scope, receive, send)


def _address(scope: Scope) -> str | None:
    client = scope.get("client")
    try:
        found = None if not client else ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        # A proxy that hides the address, or a peer that is no address: nothing that it wrote is kept.
        return None
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return None if found is None else str(mapped or found)
