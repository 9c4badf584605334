"""`/docs`: off by default; on, it needs nothing from the internet."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import httpx
import pytest

from services.api.app import create_app
from tests.support.api_document import MISSING_PARTS


def client(*, docs: bool) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(create_app(replace(MISSING_PARTS, docs=docs)))
    return httpx.AsyncClient(transport=transport, base_url="http://api")


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/static-offline-docs/swagger-ui.css"])
async def test_without_the_setting_there_are_no_pages(path: str) -> None:
    async with client(docs=False) as http:
        assert (await http.get(path)).status_code == 404
        assert (await http.get("/openapi.json")).status_code == 200


async def test_the_page_and_all_that_it_loads_is_served_by_the_api() -> None:
    async with client(docs=True) as http:
        page = await http.get("/docs")
        assert page.status_code == 200
        loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text) + re.findall(r"url: '([^']+)'", page.text)
        assert {path.rpartition(".")[2] for path in loaded} == {"css", "js", "png", "json"}
        for path in loaded:
            assert path.startswith("/"), f"{path} is elsewhere"
            found: Any = await http.get(path)
            assert (found.status_code, len(found.content) > 100) == (200, True), path
        assert "://" not in page.text
        assert (await http.get("/redoc")).status_code == 404
