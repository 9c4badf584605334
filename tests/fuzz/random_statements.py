"""Random statements as the role of the API could run them: what shows, changes, adds or removes rows."""

from __future__ import annotations

from random import Random

from psycopg import sql

_SHAPES = (
    "select {owner} from {table} where {condition}",
    "select {owner} from {table} where {condition} order by {column}",
    "select a.{owner} from {table} as a cross join {table} as b where a.{owner} <> b.{owner}",
    "with r as (select * from {table}) select {owner} from r where {condition}",
    "update {table} set {column} = {column} where {condition} returning {owner}",
    "update {table} set {owner} = {theirs} where {condition} returning {owner}",
    "delete from {table} where {condition} returning {owner}",
    "insert into {table} select * from {table} where {condition} returning {owner}",
    "select {owner} from {table} where {condition} for update",
)
_CONDITIONS = (
    "true",
    "{owner} = {theirs}",
    "{owner} in ({theirs}, {mine})",
    "{column} is not null or {column} is null",
    "exists (select from monitor as m where m.tenant_id = {theirs})",
)


def random_statement(random: Random, tables: dict[str, list[str]], mine: int, theirs: int) -> sql.Composed:
    """A statement on one of the tables that returns whose rows it reached."""
    table = random.choice(list(tables))
    parts = {
        "owner": sql.Identifier("id" if table == "tenant" else "tenant_id"),
        "table": sql.Identifier(table),
        "column": sql.Identifier(random.choice(tables[table])),
        "mine": sql.Literal(mine),
        "theirs": sql.Literal(theirs),
    }
    condition = _filled(random.choice(_CONDITIONS), parts)
    return _filled(random.choice(_SHAPES), {**parts, "condition": condition})


def _filled(shape: str, parts: dict[str, sql.Composable]) -> sql.Composed:
    return sql.SQL(shape).format(**{name: part for name, part in parts.items() if f"{{{name}}}" in shape})  # type: ignore[arg-type]
