"""Statements keep the contracts in their headers, and constants come from Python by name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lagscale.domain.lag.samples import Flag
from lagscale.store.queries import (
    CONSTANTS,
    ContractError,
    compose,
    load,
    number_parameters,
    read,
    read_contract,
    statements,
)

STATEMENT = """-- Counts what is lost.
-- slots: flag.LOST
with totals as (
    select a.tenant, a.gap from asks as a
),

-- include part_lost
select b.tenant from lost as b where b.flags & :flag.LOST <> 0
"""
PART = """-- The losses of each tenant.
-- needs: totals(tenant, gap)
-- gives: cte lost(tenant, flags)
-- slots: flag.LOST, limit.FUTURE_TOLERANCE_MS
lost as (
    select t.tenant, 1 as flags from totals as t
    where t.gap > :limit.FUTURE_TOLERANCE_MS and 0 & :flag.LOST = 0 and ':flag.BORN' <> ''::text  -- :flag.BORN
)
"""
FILES: Mapping[str, str] = {"counts": STATEMENT, "part_lost": PART}


def composed(files: Mapping[str, str]) -> str:
    return compose("counts", files.__getitem__)


def changed(name: str, old: str, new: str) -> Mapping[str, str]:
    assert old in FILES[name]
    return {**FILES, name: FILES[name].replace(old, new)}


def test_parts_and_slots_are_in_place() -> None:
    text = composed(FILES)
    assert "select b.tenant from lost as b where b.flags & 2 <> 0" in text
    assert "t.gap > 1000 and 0 & 2 = 0" in text
    assert "':flag.BORN' <> ''::text  -- :flag.BORN" in text, "texts, casts and comments are no slots"
    assert "-- needs:" not in text, "contracts are not sent to the server"


def test_every_file_keeps_its_contract() -> None:
    assert len([load(name) for name in statements() if not name.startswith("part_")]) > 20


def test_every_part_says_what_it_needs_and_gives() -> None:
    contracts = {name: read_contract(read(name)) for name in statements() if name.startswith("part_")}
    assert len(contracts) > 5
    assert [name for name, one in contracts.items() if not (one.needs and one.gives and one.kind)] == []


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("counts", "totals as (", "sums as (", "part_lost needs totals, which is not defined above it"),
        ("counts", "from lost as b", "from losses as b", "lost of part_lost is not used"),
        ("counts", ":flag.LOST", "2", "other slots than none"),
        ("counts", "-- slots: flag.LOST\n", "", "other slots than flag.LOST"),
        ("counts", "flag.LOST", "flag.MISLAID", "no constant is named :flag.MISLAID: select b.tenant"),
        ("counts", "flag.LOST", "bit.LOST", "no constant is named :bit.LOST"),
        ("part_lost", "-- slots: flag.LOST, ", "-- slots: ", "part_lost.sql: its header says other slots"),
        ("part_lost", "lost as (", "loss as (", "it gives lost, which it does not define"),
        ("part_lost", "-- gives: cte lost(tenant, flags)\n", "", "a part says what it gives"),
        ("part_lost", "lost(tenant, flags)", "lost(tenant, amount)", "it gives lost without amount"),
        ("part_lost", "totals(tenant, gap)", "totals(tenant, gap, at)", "of totals it needs other columns: at"),
        ("part_lost", "from totals as t", "from sums as t", "it needs totals, which it does not use"),
        ("part_lost", "\n)\n", "\n),\n", "its text is no whole cte"),
        ("part_lost", "\n)\n", "\n) select (1)\n", "its text is no whole cte"),
        ("part_lost", "lost as (\n", "", "its text is no whole cte"),
        ("part_lost", "gives: cte ", "gives: lateral ", "its text is no whole lateral"),
    ],
)  # fmt: skip
def test_a_broken_contract_is_named(name: str, old: str, new: str, message: str) -> None:
    with pytest.raises(ContractError) as wrong:
        composed(changed(name, old, new))
    assert message in str(wrong.value)
    assert str(wrong.value).startswith(("counts.sql: ", "part_lost.sql: "))


def test_columns_of_an_alias_are_those_that_it_needs() -> None:
    part = "-- needs: a(gap)\n-- gives: lateral g(gap)\ncross join lateral (select a.gap, a.tenant) as g\n"
    statement = "-- Counts.\nselect g.gap from asks as a\n-- include part_lost\n"
    with pytest.raises(ContractError, match="of a it needs other columns: tenant"):
        composed({"counts": statement, "part_lost": part})
    kept = part.replace("a(gap)", "a(gap, tenant)")
    assert "lateral (select a.gap, a.tenant) as g" in composed({"counts": statement, "part_lost": kept})


def test_without_a_check_a_statement_may_be_broken() -> None:
    files = changed("counts", "totals as (", "sums as (")
    assert "sums as (" in compose("counts", files.__getitem__, check=False)


def test_an_unknown_statement_is_missing() -> None:
    with pytest.raises(FileNotFoundError, match="no statement is named nothing"):
        load("nothing")


def test_names_of_statements_are_unique() -> None:
    assert {path.name for path in statements().values()} == {f"{name}.sql" for name in statements()}


def test_constants_are_those_of_python() -> None:
    assert CONSTANTS["flag"]["EXCLUDED"] == str(int(Flag.EXCLUDED))
    assert CONSTANTS["limit"]["FUTURE_TOLERANCE_MS"] == "1000"


def test_parameters_are_numbered_by_name() -> None:
    assert number_parameters("%(a)s::int, %(b)s::int, %(a)s::int, '%%'") == "$1::int, $2::int, $1::int, '%'"
    assert number_parameters("%s::int, %s::int") == "$1::int, $2::int"
