"""Reads a statement and tells which tables with tenants' rows it reads or changes without naming the tenant."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

_PARAMETER = re.compile(r"%(?:\(\w+\))?[sbt]")
_SCOPE = (exp.Select, exp.Update, exp.Delete, exp.Insert)


@dataclass
class _Scope:
    """One SELECT, UPDATE, DELETE or INSERT.

    Attributes:
        owners: alias of a walled table -> its column that names the tenant.
        tables: alias -> table.
    """

    node: exp.Expression
    owners: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)

    def use(self, alias: str) -> str:
        """The table with its alias."""
        return f"{self.tables[alias]} {alias}"


def unnamed(text: str, walled: Mapping[str, str], across: Collection[str] = ()) -> set[str]:
    """`table alias` of each use without a tenant.

    A use names its tenant where a condition that always holds sets its column equal to what comes from outside the
    FROM list, or to the column of a neighbor that does so; a row that is inserted, where the column is listed.

    Args:
        text: of the statement, with psycopg's placeholders.
        walled: table -> its column that names the tenant.
        across: uses that are about all tenants; what is joined to one of them has the tenant of its row.

    Raises:
        sqlglot.ParseError: it cannot be read.
    """
    found = set()
    for statement in sqlglot.parse(_PARAMETER.sub("$1", text), dialect="postgres"):
        assert isinstance(statement, exp.Expression)
        assert not isinstance(statement, exp.Command), "read as a mere string"
        for scope in _scopes(statement, walled):
            free = {alias for alias in scope.owners if scope.use(alias) in across}
            found |= {scope.use(alias) for alias in scope.owners.keys() - _named(scope, free)} | {
                scope.use(alias) for alias in free
            }
    return found


def _scopes(statement: exp.Expression, walled: Mapping[str, str]) -> Iterator[_Scope]:
    ctes = {cte.alias for cte in statement.find_all(exp.CTE)}
    scopes: dict[int, _Scope] = {}
    for node in statement.find_all(exp.Table):
        parent = node.find_ancestor(*_SCOPE)
        if parent is None or node.name not in walled or node.name in ctes:
            continue
        scope, owner = scopes.setdefault(id(parent), _Scope(parent)), walled[node.name]
        if isinstance(parent, exp.Insert) and owner in {column.name for column in parent.this.expressions}:
            continue
        alias = node.alias_or_name
        assert alias not in scope.owners, f"{alias} stands for two tables in one FROM"
        scope.owners[alias], scope.tables[alias] = owner, node.name
    yield from scopes.values()


def _named(scope: _Scope, free: set[str]) -> set[str]:
    """The aliases whose tenant is named, the free ones included."""
    named = set(free)
    equal = [pair for condition in _conditions(scope.node) for pair in _pairs(condition, scope)]
    before = -1
    while len(named) != before:
        before = len(named)
        for alias, other in equal:
            neighbors = {column.table for column in other.find_all(exp.Column)} & scope.owners.keys()
            if alias not in neighbors and neighbors <= named:
                named.add(alias)
    return named


def _pairs(condition: exp.Expression, scope: _Scope) -> Iterator[tuple[str, exp.Expression]]:
    if isinstance(condition, exp.EQ):
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            if isinstance(one, exp.Column):
                alias = one.table or (next(iter(scope.owners)) if len(scope.owners) == 1 else "")
                if scope.owners.get(alias) == one.name:
                    yield alias, other


def _conditions(node: exp.Expression) -> Iterator[exp.Expression]:
    """What must hold for every row, whatever else does."""
    where = node.args.get("where")
    held = [where.this] if where is not None else []
    for join in node.find_all(exp.Join):
        if join.find_ancestor(*_SCOPE) is node and join.args.get("on") is not None:
            held.append(join.args["on"])
    for condition in held:
        yield from condition.flatten() if isinstance(condition, exp.And) else [condition]
