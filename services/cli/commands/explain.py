"""`lagscale explain`: the API's explanation of a moment as a page for a terminal. Pure but for the console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lagscale.clock import to_datetime, to_ms
from services.cli.commands.plot import PlotFrame, PlotPoint, draw_plot, format_short, join_cells

_COLOURS = {"sustained": "bold red", "calm": "bold green", "unknown": "bold yellow"}
#: For so long a decision speaks when no other follows.
_DECISION_VALID_MS = 360_000
_REPLICAS = 4
_LISTED = 8
_WIDEST = 120
_REASONS = {
    "sustained": "lag has lasted",
    "backlog": "a backlog waits",
    "progress": "the group commits",
    "scale_down": "it was, within scaleDownStabilization",
}
#: What was told -> its character under the plot, its style and its meaning.
_DECISION_STYLES: Mapping[str, tuple[str, str, str]] = {
    "scaled": ("█", "red", "active, value above 0"),
    "active": ("▄", "green", "active, value 0"),
    "inactive": ("▁", "dim", "inactive"),
    "held": ("h", "yellow", "held"),
    "frozen": ("f", "cyan", "frozen"),
    "error": ("!", "bold red", "error"),
}

JsonObject = Mapping[str, Any]


def print_explanation(explanation: JsonObject, name: str, console: Console) -> None:
    """Print an explanation: the sentence, the rules, lag with its threshold, and what was told under it.

    Args:
        explanation: the API's answer.
        name: TENANT/MONITOR.
        console: gives the width.
    """
    width = min(console.width, _WIDEST)
    parts: list[RenderableType] = [_render_header(explanation, name), Text(explanation["sentence"], style="bold")]
    parts += [Text(note, style="yellow") for note in explanation["notes"]]
    if explanation.get("frozen") is not None:
        parts.append(_render_freeze(explanation["frozen"]))
    evaluation = explanation["evaluation"]
    if evaluation is not None:
        parts += [_render_title("How the value came about"), _render_rules(evaluation)]
        parts += list(_render_evidence(evaluation))
    parts += list(_render_lag(explanation, width))
    parts += [_render_title("What was told"), *_render_decisions(explanation)]
    console.print(Group(*parts), width=width, highlight=False)


def _render_header(explanation: JsonObject, name: str) -> Text:
    evaluation = explanation["evaluation"]
    verdict = "no samples kept" if evaluation is None else f"{evaluation['verdict']} ({evaluation['reason']})"
    style = "dim" if evaluation is None else _COLOURS.get(evaluation["verdict"], "")
    at = _parse_time(explanation["at"])
    ago = (_parse_time(explanation["now"]) - at).total_seconds()
    policy = f"policy version {explanation['registration']['version']}"
    at_text = f"at {at:%Y-%m-%d %H:%M:%S} UTC" + (f", {_format_duration(ago)} ago" if ago >= 1 else "")
    return Text.assemble((name, "bold"), f" {at_text}, {policy}: ", (verdict, style))


def _render_freeze(frozen: JsonObject) -> Text:
    answer = frozen["answer"]
    answer_text = (
        "an error"
        if answer is None
        else f"{_format_number(answer['value'])}, {'active' if answer['active'] else 'inactive'}"
    )
    known_at = "" if answer is None else f", known at {_parse_time(answer['knownAt']):%Y-%m-%d %H:%M:%S}"
    since = f"since {_parse_time(frozen['since']):%Y-%m-%d %H:%M:%S} UTC"
    return Text(f"frozen   {since}: KEDA gets {answer_text}{known_at}", style="cyan")


def _render_rules(evaluation: JsonObject) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rule", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("why")
    if evaluation["verdict"] != "unknown":
        lag = f"{evaluation['partitions']} partitions, {evaluation['lagging']} with lag, members {_format_optional(evaluation['members'])}"
        table.add_row("total lag", _format_number(evaluation["total"]), lag)
    if evaluation["verdict"] == "calm":
        table.add_row("calm", "0", "No lag has lasted, so nothing is asked for.")
    for step in evaluation["steps"]:
        suffix = (
            " (this limit holds)"
            if step["rule"] == evaluation["decidingRule"] and evaluation["verdict"] == "sustained"
            else ""
        )
        table.add_row(
            step["rule"].replace("_", " "), _format_number(step["after"]), step["text"].rstrip(".") + suffix + "."
        )
    answer = evaluation["answer"]
    reason_text = f": {_REASONS[evaluation['because']]}" if evaluation["because"] in _REASONS else ""
    if answer is None:
        table.add_row(Text("answer", style="bold"), "error", evaluation["answerSentence"])
    else:
        activity = ("active" if answer["active"] else "inactive") + reason_text
        table.add_row(Text("answer", style="bold"), Text(_format_number(answer["value"]), style="bold"), activity)
    return table


def _render_evidence(evaluation: JsonObject) -> Iterator[RenderableType]:
    for island in evaluation["islands"][:_LISTED]:
        what = "total" if island["partition"] is None else f"{island['topic']}/{island['partition']}"
        at_least = "" if island["bounded"] else "at least "
        begin = f"{_parse_time(island['since']):%H:%M:%S}"
        yield Text(
            f"island   {what}: above for {at_least}{_format_duration(island['durationSeconds'])} since {begin}, lag {_format_number(island['lag'])}"
        )
    if len(evaluation["islands"]) > _LISTED:
        yield Text(f"         and {len(evaluation['islands']) - _LISTED} more", style="dim")
    for missing in evaluation["missing"][:_LISTED]:
        what = missing["topic"] if missing["partition"] is None else f"{missing['topic']}/{missing['partition']}"
        since = "no sample yet"
        if missing["since"] is not None:
            since = f"none since {_parse_time(missing['since']):%H:%M:%S} ({_format_duration(missing['ageSeconds'])}), lag {_format_number(missing['lag'])} then"
        yield Text(f"missing  {what}: {since}", style="yellow")
    if evaluation["missingCount"] > _LISTED:
        yield Text(f"         and {evaluation['missingCount'] - _LISTED} more", style="yellow")
    for stuck in evaluation["stuck"][:_LISTED]:
        yield Text(
            f"stuck    {stuck['topic']}/{stuck['partition']}: members, lag, and a commit that stands still", style="red"
        )
    if evaluation["timeLag"] is not None:
        upper_bound = evaluation["timeLag"]["atMost"]
        upper = "longer than anything stored" if upper_bound is None else f"at most {_format_duration(upper_bound)}"
        wait = f"{_format_duration(evaluation['timeLag']['seconds'])} (at least {_format_duration(evaluation['timeLag']['atLeast'])}, {upper})"
        yield Text(f"waiting  the oldest unread message: {wait}")
    if evaluation["ageSeconds"] is not None:
        limit = f"stale after {_format_duration(evaluation['staleAfterSeconds'])}"
        yield Text(f"newest   round {_format_duration(evaluation['ageSeconds'])} old, {limit}", style="dim")


def _render_lag(explanation: JsonObject, width: int) -> Iterator[RenderableType]:
    """The plot, its axis of time, and what was told under it."""
    end = _to_milliseconds(explanation["at"])
    policy = explanation["registration"]["policy"]
    points = [_build_point(one, of_all_partitions=explanation["usesTotalLag"]) for one in explanation["lag"]]
    decisions = [*explanation["decisions"], *explanation["answers"]]
    begin = min([point.at_ms for point in points] + [end - int(policy["maxGapSeconds"] * 1000)])
    frame = PlotFrame(begin, max(end, begin + 1), int(policy["maxGapSeconds"] * 1000))
    what = "total lag" if explanation["usesTotalLag"] else "lag of the partition that lags most"
    threshold = "" if explanation["threshold"] is None else f", threshold {_format_number(explanation['threshold'])}"
    yield _render_title(f"Until then: {what}{threshold}")
    if not points:
        yield Text("no sample in the time that the verdict looks at", style="dim")
        return
    lines = draw_plot(points, explanation["threshold"], frame, width)
    yield from lines
    margin = lines[0].plain.index("┤")
    columns = width - margin - 1
    left, right = f"{to_datetime(begin):%H:%M:%S}", f"{to_datetime(end):%H:%M:%S} UTC"
    yield Text(f"{'':{margin}}└{left}{'':{max(1, columns - len(left) - len(right))}}{right}", style="dim")
    replicas = sorted({one["replica"] for one in decisions if one.get("overrides") is None})
    for replica in replicas[:_REPLICAS]:
        replica_decisions = [one for one in decisions if one["replica"] == replica and one.get("overrides") is None]
        yield _render_strip(replica_decisions, frame, margin, columns)
    if replicas:
        yield _render_legend(decisions, replicas, margin)


def _render_strip(rows: Sequence[JsonObject], frame: PlotFrame, margin: int, width: int) -> Text:
    """What one replica told, column by column; empty where it wrote nothing down."""
    ordered = sorted(
        ((_to_milliseconds(one["answeredAt"]), _classify_decision(one)) for one in rows), key=lambda one: one[0]
    )
    cells = []
    for column in range(width):
        until = frame.until(column, width)
        current = [kind for decided_ms, kind in ordered if until - _DECISION_VALID_MS <= decided_ms <= until]
        cells.append(_DECISION_STYLES[current[-1]][:2] if current else (" ", ""))
    return Text.assemble((f"{'told':>{margin}} " if margin >= 4 else f"{'':{margin}} ", "dim"), *join_cells(cells))


def _render_legend(decisions: Sequence[JsonObject], replicas: Sequence[str], margin: int) -> RenderableType:
    outcomes = {_classify_decision(one) for one in decisions}
    legend = Text("told: ", style="dim")
    legend.append(
        ", ".join(f"{mark} {meaning}" for kind, (mark, _, meaning) in _DECISION_STYLES.items() if kind in outcomes),
        "dim",
    )
    if len(replicas) > 1:
        shown = ", ".join(replicas[:_REPLICAS])
        more = len(replicas) - _REPLICAS
        legend.append(f"; a line each: {shown}" + (f" ({more} more not drawn)" if more > 0 else ""), "dim")
    return Padding(legend, (0, 0, 0, margin + 1))


def _render_decisions(explanation: JsonObject) -> Iterator[RenderableType]:
    rows = list(explanation["answers"])
    if not rows:
        before = explanation["previousAnswer"]
        if before is None:
            yield Text("nothing on record", style="dim")
            return
        yield Text("nothing on record for this moment; the last before:", style="dim")
        rows = [before]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("replica", "told", "saw round", "answer", "policy"):
        table.add_column(column, overflow="fold")
    at = _parse_time(explanation["at"])
    for row in rows:
        ago = _format_duration((at - _parse_time(row["answeredAt"])).total_seconds())
        saw = "-" if row["newestRoundAt"] is None else f"{_parse_time(row['newestRoundAt']):%H:%M:%S}"
        table.add_row(row["replica"], f"{ago} before", saw, _format_answer(row), _format_policy(row))
    yield table
    for row in rows:
        if row.get("difference"):
            yield Text.assemble((f"{row['replica']}: ", "bold"), (row["difference"], "yellow"))
    if explanation["evaluation"] is not None and any(row.get("agrees") is False for row in rows):
        yield Text(f"The samples say: {explanation['evaluation']['answerSentence']}", style="dim")


def _format_answer(row: JsonObject) -> Text:
    kind = _classify_decision(row)
    if kind == "error":
        return Text(f"error {row['code']} ({row['reason']})", style="bold red")
    activity = "active" if row["active"] else "inactive"
    suffix = ", held" if kind == "held" else ""
    return Text(
        f"{_format_number(row['value'])}, {activity}{suffix} ({row['reason']})", style=_DECISION_STYLES[kind][1]
    )


def _format_policy(row: JsonObject) -> str:
    version = "-" if row["version"] is None else f"version {row['version']}"
    overrides = row["overrides"] or {}
    return version + "".join(f", {key} {text}" for key, text in sorted(overrides.items()))


def _classify_decision(row: JsonObject) -> str:
    if row["code"] != "OK" or row["value"] is None:
        return "error"
    if row["lastKnown"]:
        return "frozen" if row["reason"] == "frozen" else "held"
    if not row["active"]:
        return "inactive"
    return "scaled" if row["value"] > 0 else "active"


def _build_point(one: JsonObject, *, of_all_partitions: bool) -> PlotPoint:
    lag = one["total"] if of_all_partitions else one["greatest"]
    return PlotPoint(_to_milliseconds(one["at"]), lag, lag if of_all_partitions else one["least"])


def _render_title(text: str) -> RenderableType:
    return Padding(Rule(Text(text), align="left", style="dim"), (1, 0, 0, 0))


def _parse_time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _to_milliseconds(text: str) -> int:
    return to_ms(_parse_time(text))


def _format_number(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".") if value < 1e9 else format_short(value)


def _format_optional(value: object) -> str:
    return "not known" if value is None else str(value)


def _format_duration(seconds: float) -> str:
    """A span as people say it: 4.2 s, 130 s, 12 min, 3.5 h."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
