"""Explained survivors are mutants that exist; `make mutants` compares the rest."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.contract.token_mutations import STATEMENTS, explained, mutants

pytestmark = pytest.mark.contract


def test_every_explained_mutant_exists() -> None:
    made = {str(mutant) for statement in STATEMENTS for mutant in mutants(statement)}
    quoted = {line for line in explained() if re.match(r"(judge|part)_\w+  ", line)}
    assert len(quoted) > 50
    assert quoted - made == set()


def test_every_token_of_a_statement_is_replaced_once_at_a_time() -> None:
    for statement in STATEMENTS:
        made = list(mutants(statement))
        assert len({mutant.text for mutant in made}) == len(made) > 0


def test_a_slot_is_replaced_by_another_of_its_group() -> None:
    gate = [str(mutant) for mutant in mutants("part_gate")]
    assert [name for name in gate if name.startswith("part_gate  :note.NO_TOPIC -> :note.NO_COMMITS at ")]
    assert [name for name in gate if name.startswith("part_gate  :limit.MEMBERS_MAX_AGE_MS -> 180001 at ")]
    flags = [str(mutant) for mutant in mutants("part_stuck") if "  :flag.LOST -> " in str(mutant)]
    assert {name.split()[3] for name in flags} == {":flag.UNCOMMITTED", ":flag.RESET"}


def test_every_mutant_has_a_name_of_its_own() -> None:
    made = Counter(str(mutant) for statement in STATEMENTS for mutant in mutants(statement))
    assert [name for name, times in made.items() if times > 1] == []
