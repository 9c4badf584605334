"""The pictures of docs/persistence.md: drawn from the code, all of them shown, and saying what the page says of them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lagscale.domain.verdict.contract import Verdict
from tests.conventions.pictures import POLICY, SCENES, judged, picture

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "persistence.md").read_text(encoding="utf-8")


def said(name: str) -> list[tuple[int, str, float | None]]:
    """(seconds, verdict, value) at the end of each stretch in which neither changes."""
    answers = [(at, judgment.verdict.value, judgment.value) for at, judgment in judged(SCENES[name])]
    following = [*answers[1:], (0, "", None)]
    return [one for one, after in zip(answers, following, strict=True) if one[1:] != after[1:]]


def test_every_picture_is_a_scene_and_is_shown() -> None:
    # That they are what the code draws is compared with the other rendered pages.
    shown = set(re.findall(r"!\[[^\]]{40,}\]\(pictures/([\w-]+)\.svg\)", PAGE))
    committed = {path.stem for path in (DOCS / "pictures").iterdir()}
    assert shown == committed == set(SCENES)


@pytest.mark.parametrize("name", SCENES)
def test_a_picture_is_well_formed_and_always_the_same(name: str) -> None:
    text = picture(name)
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert text == picture(name)


@pytest.mark.parametrize(
    "key", ["lagThreshold", "sustainSeconds", "samplingInterval", "maxGapSeconds", "staleAfterSeconds"]
)
def test_the_page_names_the_policy_of_the_pictures(key: str) -> None:
    assert re.search(rf"`{key}` (is\s+)?{POLICY[key]}\b", PAGE)


def test_a_spike_is_calm_throughout() -> None:
    assert {judgment.verdict for _, judgment in judged(SCENES["spike"])} == {Verdict.CALM}


def test_the_same_lags_are_one_island_or_two_by_what_was_produced() -> None:
    assert [(at, verdict) for at, verdict, _ in said("gap-bridged")] == [
        (60, "calm"),
        (90, "unknown"),
        (195, "sustained"),
    ]
    assert [(at, verdict) for at, verdict, _ in said("gap-not-bridged")] == [
        (60, "calm"),
        (150, "unknown"),
        (195, "sustained"),
    ]


def test_stabilized_values_are_those_of_the_page() -> None:
    assert [(at, value) for at, _, value in said("stabilized") if value] == [(120, 200), (150, 600), (270, 600)]


def test_recovering_asks_for_no_more_than_the_members() -> None:
    told = {at: judgment.value for at, judgment in judged(SCENES["recovering"])}
    assert [told[at] for at in (135, 150, 165, 180, 195)] == [550, 400, 400, 400, 350]


def test_a_stuck_partition_is_left_out_stays_active_and_comes_back_with_its_island() -> None:
    answers = dict(judged(SCENES["stuck"]))
    assert [answers[at].verdict.value for at in (105, 120, 180, 195)] == ["sustained", "calm", "calm", "sustained"]
    assert [bool(answers[at].stuck) for at in (105, 120, 180, 195)] == [False, True, True, False]
    assert all(answers[at].active for at in (120, 180))
