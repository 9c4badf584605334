"""What is written of surviving mutants is about mutants that there are; `make mutants` compares the rest."""

from __future__ import annotations

import re

import pytest

from tests.contract.token_mutations import STATEMENTS, explained, mutants

pytestmark = pytest.mark.contract


def test_every_explained_mutant_exists() -> None:
    made = {str(mutant) for statement in STATEMENTS for mutant in mutants(statement)}
    quoted = re.findall(r"^((?:judge|part)_\w+  .+)$", explained(), re.MULTILINE)
    assert len(quoted) > 50
    assert [one for one in quoted if one not in made] == []


def test_every_token_of_a_statement_is_replaced_once_at_a_time() -> None:
    for statement in STATEMENTS:
        made = list(mutants(statement))
        assert len({mutant.text for mutant in made}) == len(made) > 0
