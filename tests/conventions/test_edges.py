"""Each edge translates the whole family of errors by its table."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from lagscale import errors
from services.api.problem_types import PROBLEM_TYPES
from services.cli.exits import EXIT_CODES
from services.scaler.grpc.status_codes import CODES

FAMILY = {item for item in vars(errors).values() if inspect.isclass(item) and issubclass(item, errors.LagscaleError)}


@pytest.mark.parametrize("table", [PROBLEM_TYPES, EXIT_CODES, CODES], ids=["HTTP", "exit codes", "gRPC"])
def test_every_error_has_its_place_at_every_edge(table: Mapping[type[errors.LagscaleError], Any]) -> None:
    assert set(table) == FAMILY


@pytest.mark.parametrize("error", FAMILY, ids=lambda error: error.__name__)
def test_errors_tell_what_happened_by_their_docstring(error: type[errors.LagscaleError]) -> None:
    assert len((error.__doc__ or "").strip()) > 10
