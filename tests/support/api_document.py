"""The OpenAPI document of the API, without an API: for tests of what reads it."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

from services.api.app import ApiParts, create_app


@cache
def api_document() -> dict[str, Any]:
    """As `/openapi.json` serves it. Routes do not ask for the parts before the first request."""
    parts: dict[str, Any] = dict.fromkeys(field.name for field in fields(ApiParts))
    return create_app(ApiParts(**parts)).openapi()
