"""Renders the pages that repeat what the code says: settings, metrics, trigger metadata; and the pictures.

`python -m tests.conventions.pages` writes them into docs/; the house tests compare.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from lagscale.domain.policy.keys import KEYS
from lagscale.settings import RENAMED, ServiceSettings, SingleMonitorSettings
from services.api.problem_types import FRAMEWORK_PROBLEM_TYPES, PROBLEM_TYPES
from services.scaler.triggers import metadata
from tests.conventions.pictures import SCENES, picture
from tests.conventions.services import DEPLOYED, SCRIPTS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TITLES = {
    "all": "All services",
    **{service: service.capitalize() for service in DEPLOYED},
    "api": "API",
    "cli": "Command line",
    "devstack": "Development",
    "tests": "Development",
}
#: Variables that no settings class reads.
DEVELOPMENT: Mapping[str, str] = {
    "LAGSCALE_DEVSTACK_KAFKA_BOOTSTRAP": "`host:port` of a running broker to use instead of starting one in `make up`, "
    "`make demo` and the tests.",
}
METRIC_KINDS = {"Counter", "Gauge", "Histogram", "Summary", "Info"}


@dataclass(frozen=True, slots=True)
class Setting:
    """One variable as the page tells it."""

    name: str
    service: str
    description: str
    default: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as the page tells it; `labels` in the order of the code."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]


def settings_classes() -> Iterator[tuple[str, type[BaseSettings]]]:
    """(service, class) of everything that reads variables; `all` for what the services share."""
    yield "all", ServiceSettings
    for service in SCRIPTS.values():
        if (ROOT / "services" / service / "settings.py").is_file():
            module = importlib.import_module(f"services.{service}.settings")
            for item in vars(module).values():
                if isinstance(item, type) and issubclass(item, BaseSettings) and item.__module__ == module.__name__:
                    yield service, item


def settings() -> list[Setting]:
    """All settings, each once."""
    found: dict[str, Setting] = {}
    for service, settings_class in settings_classes():
        for name, setting in _of(settings_class, service):
            found.setdefault(name, setting)
    for name, description in DEVELOPMENT.items():
        found.setdefault(name, Setting(name, "devstack", description, "not set"))
    return list(found.values())


def one_monitor() -> list[Setting]:
    """The variables without our prefix that describe one monitor."""
    return [setting for _, setting in _of(SingleMonitorSettings, "all")]


def _of(settings_class: type[BaseModel], service: str) -> Iterator[tuple[str, Setting]]:
    prefix = settings_class.model_config.get("env_prefix", "")
    for field_name, field in settings_class.model_fields.items():
        name = field.alias or f"{prefix}{field_name}".upper()
        yield name, Setting(name, service, field.description or "", _default(field))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    if field.default_factory is not None:
        return "a directory `lagscale` in the system's temporary directory"
    value: Any = field.default
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if value is None or value == "":
        return "not set"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def render_settings() -> str:
    """The page of all environment variables."""
    lines = [
        "# Settings",
        "",
        "Settings are environment variables, read once at startup. All errors are reported together. An unknown variable",
        "that begins with `LAGSCALE_` stops the start, and the message names the nearest known one.",
        "",
        "A variable for one service carries its name; those without are shared.",
        "",
    ]
    by_title: dict[str, list[Setting]] = {}
    for setting in settings():
        by_title.setdefault(TITLES[setting.service], []).append(setting)
    for title in dict.fromkeys(TITLES.values()):
        if title in by_title:
            lines += [f"## {title}", "", *_sections(by_title[title])]
    lines += [
        "## One monitor without registration",
        "",
        "With these set, the service that starts first registers tenant, cluster and monitor, and binds every namespace to",
        "them. Set them alike for all services. Their database login needs the role `lagscale_api`.",
        "",
        *_sections(one_monitor()),
        "## Renamed settings",
        "",
        "A former name stops the start, and the message names the new one.",
        "",
        "| former name | name |",
        "|---|---|",
        *(f"| `{old}` | `{new}` |" for old, new in RENAMED.items()),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _sections(found: list[Setting]) -> Iterator[str]:
    for setting in found:
        default = f"Default: {setting.default}." if setting.default else "Must be set."
        yield from (f"### `{setting.name}`", "", f"{setting.description} {default}", "")


def metrics() -> dict[str, list[Metric]]:
    """Service -> its metrics, read from the code without importing it."""
    found: dict[str, list[Metric]] = {}
    for service in SCRIPTS.values():
        for path in sorted((ROOT / "services" / service).rglob("*.py")):
            for metric in metrics_of(ast.parse(path.read_text(encoding="utf-8"))):
                found.setdefault(service, []).append(metric)
    return found


def metrics_of(tree: ast.Module) -> Iterator[Metric]:
    """The metrics that a module registers."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).split(".")[-1] not in METRIC_KINDS:
            continue
        given = [argument.value for argument in node.args[:2] if isinstance(argument, ast.Constant)]
        if len(given) == 2 and isinstance(given[0], str) and given[0].startswith("lagscale"):
            labels = node.args[2:3] + [keyword.value for keyword in node.keywords if keyword.arg == "labelnames"]
            names = ast.literal_eval(labels[0]) if labels else ()
            kind = ast.unparse(node.func).split(".")[-1].lower()
            # The client adds the suffix of counters when it is scraped.
            suffix = "_total" if kind == "counter" and not given[0].endswith("_total") else ""
            yield Metric(given[0] + suffix, kind, str(given[1]), tuple(names))


def render_metrics() -> str:
    """The page of all metrics."""
    lines = [
        "# Metrics",
        "",
        "Each service serves them at `/metrics` on its HTTP port, beside those of Python and of the process. A histogram",
        "adds `_bucket`, `_sum` and `_count`. Times are seconds.",
        "",
    ]
    for service, found in metrics().items():
        lines += [f"## {TITLES[service]}", ""]
        for metric in found:
            labels = f" Labels: {', '.join(f'`{label}`' for label in metric.labels)}." if metric.labels else ""
            lines += [f"### `{metric.name}`", "", f"{metric.kind.capitalize()}. {metric.help}{labels}", ""]
    return "\n".join(lines).rstrip() + "\n"


def render_errors() -> str:
    """The page of all problem types of the API."""
    lines = [
        "# Errors of the REST API",
        "",
        "Errors are `application/problem+json` (RFC 9457), regardless of `Accept`:",
        "",
        "| key | |",
        "|---|---|",
        "| `type` | problem type, a URI of the list below; it does not change |",
        "| `title` | title of the problem type |",
        "| `status` | HTTP status |",
        "| `detail` | cause of this problem |",
        "| `field` | part of the request at fault |",
        "| `remediation` | how to resolve it |",
        "| `errors` | all invalid fields, each with its `field` and a `text` that says what is required |",
        "",
        "`field` is the first field of `errors`, the name of a query parameter or header, `path` (a name in the URL, or the",
        "object that it identifies), `method`, `body`, or the limit of the tenant that is exceeded, such as `maxMonitors`. It is",
        "null if the request is not at fault.",
        "",
        "Requests that are not valid HTTP are refused with 400 and plain text.",
        "",
        "## Problem types by status",
        "",
    ]
    kinds = {kind.uri: kind for kind in (*PROBLEM_TYPES.values(), *FRAMEWORK_PROBLEM_TYPES)}
    for uri, kind in sorted(kinds.items(), key=lambda item: (item[1].status, item[0])):
        field = "" if kind.field is None else f" `field`: `{kind.field}`, unless the error names another."
        lines += [f"### `{uri}`", "", f"{kind.status}. {kind.title}{field} {kind.remediation}", ""]
    return "\n".join(lines).rstrip() + "\n"


def render_metadata() -> str:
    """The page of trigger metadata: every key."""
    lines = [
        "# Trigger metadata",
        "",
        "Values are strings; surrounding whitespace is ignored, and an empty string counts as absent. Flags are those "
        "that KEDA accepts: `1`, `t`, `T`, `TRUE`, `true`, `True`, and `0`, `f`, `F`, `FALSE`, `false`, `False`. `NAMEFromEnv` "
        "is used if `NAME` is absent. All errors are reported together. An unknown key that resembles a key on this page "
        "is an error; other unknown keys are ignored.",
        "",
        "## Monitor selection",
        "",
    ]
    for key in metadata.TRIGGER_KEYS:
        lines += [f"### `{key.name}`", "", f"{render_sentence(key.description)} Example: `{key.example}`.", ""]
    lines += ["## The policy", ""]
    for policy_key in KEYS:
        override_note = " Cannot be combined with `serviceType`." if policy_key.affects_sampling else ""
        lines += [
            f"### `{policy_key.name}`",
            "",
            f"{render_sentence(policy_key.description)} Type: {policy_key.value_type.value}; default: {policy_key.default_text}.{override_note}",
            "",
        ]
    lines += [
        "## Ignored keys",
        "",
        "KEDA's own keys are ignored, and so are keys of its `kafka` trigger that the cluster's registration defines. "
        "Their values are neither stored nor logged.",
        "",
        *(f"- `{name}`" for name in (*metadata.EXTERNAL_SCALER_KEYS, *metadata.IGNORED_KEYS)),
        "",
        f'`excludePersistentLag: "true"` is an error: it {metadata.EXCLUDE_LAG_ERROR}.',
        "",
    ]
    return "\n".join(lines)


def render_sentence(description: str) -> str:
    """A description as a sentence."""
    return f"{description[0].upper()}{description[1:]}."


#: Page -> what renders it.
PAGES: Mapping[str, Callable[[], str]] = {
    "settings.md": render_settings,
    "metrics.md": render_metrics,
    "metadata.md": render_metadata,
    "errors.md": render_errors,
    **{f"pictures/{name}.svg": partial(picture, name) for name in SCENES},
}


if __name__ == "__main__":
    for page, render in PAGES.items():
        (DOCS / page).write_text(render(), encoding="utf-8")
