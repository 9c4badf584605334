"""The OpenAPI document of the API, without an API: for tests of what reads it."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from services.api.app import ApiParts, create_app

_NONE: dict[str, Any] = dict.fromkeys(field.name for field in fields(ApiParts))
#: Routes do not use a part before the first request that needs it.
MISSING_PARTS = ApiParts(**_NONE | {"trusted_proxies": (), "docs": False})


@cache
def api_document() -> dict[str, Any]:
    """As `/openapi.json` serves it."""
    return create_app(MISSING_PARTS).openapi()
