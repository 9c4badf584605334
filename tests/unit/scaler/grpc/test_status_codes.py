"""Every error of the family has a gRPC code, and a defect tells nothing of itself."""

from __future__ import annotations

from collections.abc import Iterator

import grpc

from lagscale.errors import HistoryTooShort, LagscaleError
from services.scaler.grpc.status_codes import CODES, find_code, render_status_text


def family(root: type[LagscaleError] = LagscaleError) -> Iterator[type[LagscaleError]]:
    """The family itself; another service's own children never reach this edge."""
    if root.__module__ == LagscaleError.__module__:
        yield root
    for child in root.__subclasses__():
        yield from family(child)


def test_every_error_has_a_code() -> None:
    assert set(family()) == set(CODES)


def test_a_defect_is_internal_and_its_text_stays_in_the_log() -> None:
    defect = ValueError("postgresql://user:secret@10.0.0.1")
    assert find_code(defect) is grpc.StatusCode.INTERNAL
    assert "secret" not in render_status_text(defect)


def test_a_text_fits_into_an_event() -> None:
    assert len(render_status_text(HistoryTooShort("x" * 5000))) < 1000
