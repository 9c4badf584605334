"""From where the present request came. The API's edge tells it, the audit asks; nothing between has to hand it on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Of the request and not of a use case: so no route that is added later can forget it.
_ORIGIN: ContextVar[str | None] = ContextVar("lagscale_origin", default=None)


def origin() -> str | None:
    """The client's address, None where no request asked."""
    return _ORIGIN.get()


@contextmanager
def use_origin(address: str | None) -> Iterator[None]:
    """What is changed in this block is asked for from that address."""
    token = _ORIGIN.set(address)
    try:
        yield
    finally:
        _ORIGIN.reset(token)
