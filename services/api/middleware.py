"""How much a request may send. The framework has a limit of its own, whose answer is no problem but bare text."""

from __future__ import annotations

from http import HTTPStatus

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class LimitedBody:
    """Refuses bodies of more than `most` bytes as soon as they are read, whatever length they claim to have."""

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        claimed = Headers(scope=scope).get("Content-Length", "")
        too_large = claimed.isdecimal() and int(claimed) > self._most
        came = 0

        async def limited() -> Message:
            nonlocal came
            # Raised within the application, whose handlers make it the problem that it is.
            if too_large:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            message = await receive()
            came += len(message.get("body", b""))
            if came > self._most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return message

        await self._app(scope, limited, send)
