"""How much a request may send. The framework has a limit of its own, whose answer is no problem but bare text."""

from __future__ import annotations

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class BodyLimitMiddleware:
    """Refuses bodies of more than `max_bytes` bytes as soon as they are read, whatever length they claim to have."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        content_length = Headers(scope=scope).get("Content-Length", "")
        too_large = content_length.isdecimal() and int(content_length) > self._max_bytes
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            # Raised within the application, whose handlers make it the problem that it is.
            if too_large:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._max_bytes:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self._app(scope, receive_limited, send)
