"""All numbered histories in one list."""

from __future__ import annotations

from tests.contract import (
    table_activity,
    table_edges,
    table_hold,
    table_islands,
    table_offsets,
    table_scenarios,
    table_scope,
    table_stuck,
    table_time,
    table_topics,
    table_value,
    table_waits,
)

CASES = (
    table_islands.CASES
    + table_offsets.CASES
    + table_topics.CASES
    + table_scope.CASES
    + table_activity.CASES
    + table_hold.CASES
    + table_value.CASES
    + table_stuck.CASES
    + table_scenarios.CASES
    + table_time.CASES
    + table_waits.CASES
    + table_edges.CASES
)
