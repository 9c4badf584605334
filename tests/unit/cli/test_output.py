"""Numbers as the commands print them."""

from __future__ import annotations

import pytest

from services.cli.output import format_short


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (950, "950"), (1_200, "1.2k"), (4_990, "5k"), (35_000_000, "35M"), (2e12, "2T")]
)
def test_numbers_beside_the_axis_are_short(number: float, text: str) -> None:
    assert format_short(number) == text
