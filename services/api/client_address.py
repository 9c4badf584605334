"""The client's address of each request: the peer's, or what trusted proxies say. Audit and limits ask for it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from lagscale.store.registry.origin import use_origin


class ClientAddressMiddleware:
    """Binds the client's address to the request.

    Args:
        app: what serves the request.
        trusted: addresses and networks of proxies whose `X-Forwarded-For` counts. Read from the right, it is the
            first address that none of them has. Without any, the header is what anybody may write, and is not read.
    """

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        self._wrapped_app = app
        # Annotated for the server's own kinds of the same protocol.
        self._app: ASGIApp = self._call_with_address
        if trusted:
            self._app = ProxyHeadersMiddleware(self._call_with_address, list(trusted))  # type: ignore[arg-type, assignment]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (address := _find_client_address(scope)) is not None:
            # In one spelling, or an IPv4 proxy is not known again on a socket of IPv6.
            scope["client"] = (address, scope["client"][1])
        await self._app(scope, receive, send)

    async def _call_with_address(self, scope: Scope, receive: Receive, send: Send) -> None:
        with use_origin(_find_client_address(scope)):
            await self._wrapped_app(scope, receive, send)


def _find_client_address(scope: Scope) -> str | None:
    client = scope.get("client")
    try:
        address = None if not client else ipaddress.ip_address(client[0].partition("%")[0])
    except ValueError:
        # A proxy that hides the address, or a peer that is no address: nothing that it wrote is kept.
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return None if address is None else str(mapped or address)
