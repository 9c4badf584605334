"""Groups are put together as Kafka's own hash does."""

from __future__ import annotations

import pytest

from services.scraper.kafka.coordinators import find_offsets_partition, pick_group_per_partition


@pytest.mark.parametrize(
    ("group", "hashed"),
    # What java.lang.String.hashCode gives; the last one is Java's least number, of which Kafka takes 0.
    [("", 0), ("a", 97), ("hello", 99_162_322), ("Straße", -1_808_122_922), ("polygenelubricants", 0)],
)
def test_the_slot_is_javas_hash_modulo_50(group: str, hashed: int) -> None:
    assert find_offsets_partition(group) == abs(hashed) % 50


def test_a_letter_beyond_16_bits_counts_as_its_two_halves() -> None:
    assert find_offsets_partition("\U0001f600") == (31 * 0xD83D + 0xDE00) % 50


def test_one_group_stands_for_all_of_its_slot() -> None:
    groups = [f"g-{number}" for number in range(500)]
    first = pick_group_per_partition(groups)
    assert set(first) == {find_offsets_partition(group) for group in groups}
    assert all(find_offsets_partition(group) == slot for slot, group in first.items())
