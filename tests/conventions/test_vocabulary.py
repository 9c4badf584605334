"""Log events, metrics and settings are one vocabulary over all services."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from tests.conventions.pages import settings
from tests.conventions.services import DEPLOYED

LEVELS = {"debug", "info", "warning", "error", "exception", "critical"}
EVENT = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)+")
#: One condition, one event: other words for it -> the event.
SYNONYMS: Mapping[str, str] = {
    r"^(scraper|scaler|api|cli)_(start|stop|end)": "service_started, service_stopped",
    r"^(store|database)_(silent|away|down|lost|gone|failed)$": "store_unavailable",
    r"^(store|database)_(up|back|answers|again)$": "store_recovered",
    r"^scratch_": "local_cache_*",
    r"_(told|seen|kept|wanted|looked)(_|$)": "the field's word",
}
#: Fields of a log line that say why -> `reason` is the one.
REASON_FIELDS = {"because", "why", "cause", "told", "text"}
#: Settings that several services share, and so carry none's name.
SHARED = "all"


def log_calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in LEVELS
            and isinstance(node.func.value, ast.Name | ast.Attribute)
            and ast.unparse(node.func.value).rsplit(".", 1)[-1] in {"log", "_log", "logger"}
        ):
            yield node


def events(product: Mapping[str, ast.Module]) -> dict[str, str]:
    """`path:line` -> the event's name."""
    return {
        f"{path}:{call.lineno}": call.args[0].value
        for path, tree in product.items()
        for call in log_calls(tree)
        if call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)
    }


def test_log_events_are_constant_names(product: Mapping[str, ast.Module]) -> None:
    named = events(product)
    assert len(named) > 50
    assert {place: event for place, event in named.items() if not EVENT.fullmatch(event)} == {}


def test_one_condition_has_one_event(product: Mapping[str, ast.Module]) -> None:
    wrong = {
        place: f"{event} ({better})"
        for place, event in events(product).items()
        for synonym, better in SYNONYMS.items()
        if re.search(synonym, event)
    }
    assert wrong == {}


def test_every_service_says_that_it_started_and_stopped(product: Mapping[str, ast.Module]) -> None:
    named = events(product)
    for event in ("service_started", "service_stopped"):
        services = {place.split("/")[1] for place, name in named.items() if name == event}
        assert set(DEPLOYED) <= services, event


def test_a_cause_is_logged_as_reason(product: Mapping[str, ast.Module]) -> None:
    wrong = {
        f"{path}:{call.lineno}": keyword.arg
        for path, tree in product.items()
        for call in log_calls(tree)
        for keyword in call.keywords
        if keyword.arg in REASON_FIELDS
    }
    assert wrong == {}


def test_settings_carry_their_service() -> None:
    wrong = [
        setting.name
        for setting in settings()
        if setting.name.startswith("LAGSCALE_")
        and setting.service not in {SHARED, "cli"}
        and not setting.name.startswith(f"LAGSCALE_{setting.service.upper()}_")
    ]
    assert wrong == []
