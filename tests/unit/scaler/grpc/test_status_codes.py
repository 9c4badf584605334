"""Every error has a gRPC code, and the text of a defect is not sent."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from lagscale.errors import HistoryTooShort, LagscaleError
from services.scaler.grpc.status_codes import CODES, find_code, render_status_text


def family(root: type[LagscaleError] = LagscaleError) -> Iterator[type[LagscaleError]]:
    """All errors of the product; errors of other services never reach the scaler."""
    if root.__module__ == LagscaleError.__module__:
        yield root
    for child in root.__subclasses__():
        yield from family(child)


def test_every_error_has_a_code() -> None:
    assert set(family()) == set(CODES)


def test_a_defect_is_internal_and_its_text_is_logged_only() -> None:
    defect = ValueError("postgresql://user:secret@10.0.0.1")
    assert find_code(defect) is grpc.StatusCode.INTERNAL
    assert "secret" not in render_status_text(defect)


def test_a_text_fits_into_an_event() -> None:
    assert len(render_status_text(HistoryTooShort("x" * 5000))) < 1000
