"""Groups are put together as Kafka's own hash does."""

from __future__ import annotations

import pytest

from services.scraper.kafka.coordinators import first_of_each_slot, slot_of


@pytest.mark.parametrize(
    ("group", "hashed"),
    # What java.lang.String.hashCode gives; the last one is Java's least number, of which Kafka takes 0.
    [("", 0), ("a", 97), ("hello", 99_162_322), ("Straße", -1_808_122_922), ("polygenelubricants", 0)],
)
def test_the_slot_is_javas_hash_modulo_50(group: str, hashed: int) -> None:
    assert slot_of(group) == abs(hashed) % 50


def test_a_letter_beyond_16_bits_counts_as_its_two_halves() -> None:
    assert slot_of("\U0001f600") == (31 * 0xD83D + 0xDE00) % 50


def test_one_group_stands_for_all_of_its_slot() -> None:
    groups = [f"g-{number}" for number in range(500)]
    first = first_of_each_slot(groups)
    assert set(first) == {slot_of(group) for group in groups}
    assert all(slot_of(group) == slot for slot, group in first.items())
