"""Loads the named statements of the hot path from the `sql/` folders of this room; every adapter may call it.

The first comment of a file says what it does and then its contract, which loading checks:

    -- needs: a(stuck_after, stuck_time), samples(target, lag)    what stands above a part, and which columns of it
    -- gives: cte stuck_partitions(target, part)                  of a part: whole CTEs, or one lateral join
    -- slots: flag.LOST, flag.UNCOMMITTED                         constants that Python fills in by name

A line `-- include part_x` stands for that part. Parameters are the driver's `%(name)s`; a file with neither parts,
slots nor parameters opens in psql as it is, and `python -m lagscale.store.queries NAME` prints any other one for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final

from lagscale.domain.lag.rounds import MEMBERS_MAX_AGE_MS, Note
from lagscale.domain.lag.samples import Flag
from lagscale.domain.state_codes import StateCode
from lagscale.domain.verdict.value import RECOVERY_MIN_SAMPLES
from lagscale.store.samples.columns import ROUND_COLUMNS, ROW_COLUMNS


class Limit(IntEnum):
    """Numbers that statements share with Python."""

    MEMBERS_MAX_AGE_MS = MEMBERS_MAX_AGE_MS
    RECOVERY_MIN_SAMPLES = RECOVERY_MIN_SAMPLES
    #: A row stamped further in the database's future is refused.
    FUTURE_TOLERANCE_MS = 1_000
    #: An unchanged state is written again when it was last seen so long ago.
    STATE_REFRESH_SECONDS = 30


#: Group -> name -> what stands in the statement for `:group.NAME`.
CONSTANTS: Final[Mapping[str, Mapping[str, str]]] = {
    **{
        group: {str(member.name): str(member.value) for member in members}
        for group, members in (("flag", Flag), ("note", Note), ("limit", Limit))
    },
    "code": {code.name: f"'{code}'" for code in StateCode},
    "columns": {"ROW": ", ".join(ROW_COLUMNS), "ROUND": ", ".join(ROUND_COLUMNS)},
}

_INCLUDE = re.compile(r"^-- include (part_\w+)$", re.MULTILINE)
_CLAUSE = re.compile(r"^-- (needs|gives|slots): (.+)\n", re.MULTILINE)
_KIND = re.compile(r"^(cte|lateral) ")
_NAME = re.compile(r"%\(\w+\)s|([\w.]+)(?:\(([\w, ]*)\))?")
#: Comments and texts are passed over; a cast has two colons.
_SLOT = re.compile(r"--[^\n]*|'[^']*'|(?<!:):(?P<group>[a-z]+)\.(?P<name>[A-Z_]+)")
_PARAMETER = re.compile(r"%(?:\((\w+)\))?s")
#: A whole part of each kind, with `()` for all that stands in parentheses; the comma is the including statement's.
_CTE = r"\w+ as (?:materialized )?\(\)"
_SHAPE = {
    "cte": re.compile(rf"\s*{_CTE}(?:\s*,\s*{_CTE})*\s*"),
    "lateral": re.compile(r"\s*(?:cross|left) join lateral \(\) as \w+(?: on true)?\s*"),
}

Columns = Mapping[str, tuple[str, ...]]


class ContractError(ValueError):
    """A statement does not keep what its header says, or a part is included where something that it needs is missing."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What the header of a file says. Names -> the columns that are named; `kind` is `cte` or `lateral`, of parts."""

    needs: Columns
    gives: Columns
    kind: str
    slots: frozenset[str]


@cache
def load(name: str) -> str:
    """The text of `<subject>/sql/<name>.sql` with its parts and constants in place.

    Raises:
        FileNotFoundError: there is no such statement.
        ContractError: it does not keep its contract.
    """
    return compose(name, read)


@cache
def statements() -> dict[str, Traversable]:
    """Every statement's file by its name, parts included; names are unique over all folders."""
    folders = [folder.joinpath("sql") for folder in files("lagscale.store").iterdir() if folder.is_dir()]
    paths = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    found = {path.name.removesuffix(".sql"): path for path in paths}
    _require(len(found) == len(paths), "*", "two folders have a statement of one name")
    return found


def read(name: str) -> str:
    """A file's own text.

    Raises:
        FileNotFoundError: there is no such statement.
    """
    path = statements().get(name)
    if path is None:
        raise FileNotFoundError(f"no statement is named {name}")
    return path.read_text(encoding="utf-8")


def compose(name: str, read_text: Callable[[str], str], *, check: bool = True) -> str:
    """A statement of files that `read_text` gives by name; without `check` contracts may be broken.

    Raises:
        ContractError: as `load`.
    """
    own = read_text(name)
    contract, body = read_contract(own), _CLAUSE.sub("", own)
    if check:
        _check_slots(name, contract, body)
    text, end = "", 0
    for include in _INCLUDE.finditer(body):
        text, end = text + fill(name, body[end : include.start()]), include.end()
        if check:
            promise = read_contract(read_text(include[1]))
            missing = [need for need in promise.needs if need not in contract.needs and not _defines(text, need)]
            _require(not missing, name, f"{include[1]} needs {_join(missing)}, which is not defined above it")
            # The list of a select stands above its lateral joins.
            user = body[end:] if promise.kind == "cte" else body
            unused = [one for one in promise.gives if one not in contract.gives and not _mentions(user, one)]
            _require(not unused, name, f"{_join(unused)} of {include[1]} is not used")
        text += compose(include[1], read_text, check=check)
    text += fill(name, body[end:])
    if check and name.startswith("part_"):
        _check_part(name, contract, _strip(body), _strip(text))
    return text


def read_contract(text: str) -> Contract:
    """The contract in a file's header."""
    clauses: dict[str, list[str]] = {"needs": [], "gives": [], "slots": []}
    for clause, names in _CLAUSE.findall(text):
        clauses[clause].append(names)
    kinds = {found[1] for names in clauses["gives"] if (found := _KIND.match(names))}
    return Contract(
        needs=_parse_names(clauses["needs"]),
        gives=_parse_names(_KIND.sub("", names) for names in clauses["gives"]),
        kind=kinds.pop() if len(kinds) == 1 else "",
        slots=frozenset(_parse_names(clauses["slots"])),
    )


def fill(name: str, text: str) -> str:
    """The text with constants in the place of its slots.

    Raises:
        ContractError: there is no such constant.
    """

    def constant(found: re.Match[str]) -> str:
        if found["group"] is None:
            return found[0]
        value = CONSTANTS.get(found["group"], {}).get(found["name"])
        _require(value is not None, name, f"no constant is named {found[0]}: {_line_of(text, found.start())}")
        return str(value)

    return _SLOT.sub(constant, text)


def number_parameters(text: str) -> str:
    """The statement with `$1` in the place of its parameters, as the server prepares it."""
    names: list[str | None] = []

    def number(found: re.Match[str]) -> str:
        # A parameter without a name is one of its own.
        if found[1] is None or found[1] not in names:
            names.append(found[1])
            return f"${len(names)}"
        return f"${names.index(found[1]) + 1}"

    return _PARAMETER.sub(number, text).replace("%%", "%")


def to_arrays(items: Sequence[object], **attributes: str) -> dict[str, Any]:
    """Parameter -> the values of that attribute of all items, in order, for `unnest`."""
    return {parameter: [getattr(item, name) for item in items] for parameter, name in attributes.items()}


def _check_slots(name: str, contract: Contract, body: str) -> None:
    used = {f"{found['group']}.{found['name']}" for found in _SLOT.finditer(body) if found["group"]}
    _require(used == contract.slots, name, f"its header says other slots than {_join(sorted(used)) or 'none'}")


def _check_part(name: str, contract: Contract, body: str, text: str) -> None:
    _require(bool(contract.gives and contract.kind), name, "a part says what it gives: whole CTEs, or one lateral join")
    whole = _SHAPE[contract.kind].fullmatch(_outline(text))
    _require(whole is not None, name, f"its text is no whole {contract.kind}")
    for one, columns in contract.gives.items():
        _require(_defines(text, one), name, f"it gives {one}, which it does not define")
        lost = [column for column in columns if not _mentions(text, column)]
        _require(not lost, name, f"it gives {one} without {_join(lost)}")
    for one, columns in contract.needs.items():
        _require(_mentions(body, one) or one in body, name, f"it needs {one}, which it does not use")
        others = set(re.findall(rf"\b{one}\.(\w+)", body)) - {*columns}
        unused = [column for column in columns if not re.search(rf"\.{column}\b", body)]
        _require(not others and not unused, name, f"of {one} it needs other columns: {_join([*others, *unused])}")


def _outline(text: str) -> str:
    """The text without quoted texts and without what stands in parentheses."""
    text, before = re.sub(r"'[^']*'", "", text), ""
    while text != before:
        text, before = re.sub(r"\([^()]*\)", "\0", text), text
    return text.replace("\0", "()")


def _defines(text: str, name: str) -> bool:
    if name.startswith("%"):
        return True
    return re.search(rf"\b{name} as (?:materialized )?\(|\bas {name}\b", _strip(text)) is not None


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", _strip(text)) is not None


def _strip(text: str) -> str:
    return re.sub(r"--[^\n]*\n?", "", text)


def _parse_names(clauses: Iterable[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name in (name for clause in clauses for name in _NAME.finditer(clause)):
        found[name[1] or name[0]] = (*found.get(name[1] or name[0], ()), *re.findall(r"\w+", name[2] or ""))
    return found


def _require(condition: bool, name: str, message: str) -> None:
    if not condition:
        raise ContractError(f"{name}.sql: {message}")


def _line_of(text: str, at: int) -> str:
    return text[text.rfind("\n", 0, at) + 1 :].split("\n", 1)[0].strip()


def _join(names: Iterable[str]) -> str:
    return ", ".join(names)


if __name__ == "__main__":
    sys.stdout.write(number_parameters(load(sys.argv[1])))
