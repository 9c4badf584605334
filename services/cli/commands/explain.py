"""`lagscale explain`: the API's explanation of a point in time as a page for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from lagscale.clock import to_datetime
from services.cli.client import open_api
from services.cli.commands.plot import PlotFrame, PlotPoint, draw_plot, join_cells
from services.cli.output import (
    VERDICT_STYLES,
    ApiJson,
    build_monitor_path,
    format_clock,
    format_duration,
    format_number,
    format_optional,
    parse_time,
    parse_time_ms,
    print_json,
)

#: How long a decision is drawn if no other follows.
_DECISION_VALID_MS = 360_000
_MAX_REPLICAS = 4
_MAX_ROWS = 8
_MAX_WIDTH = 120
_REASONS = {
    "sustained": "lag sustained",
    "backlog": "backlog",
    "progress": "group in progress",
    "scale_down": "active within scaleDownStabilization",
}
#: Kind of a decision -> its character under the plot, its style and its meaning.
_DECISION_STYLES: Mapping[str, tuple[str, str, str]] = {
    "scaled": ("█", "red", "active, value above 0"),
    "active": ("▄", "green", "active, value 0"),
    "inactive": ("▁", "dim", "inactive"),
    "last_known": ("l", "yellow", "last known"),
    "frozen": ("f", "cyan", "frozen"),
    "error": ("!", "bold red", "error"),
}

JsonObject = Mapping[str, Any]


def show_explanation(
    monitor: Annotated[str, typer.Argument(metavar="TENANT/MONITOR", help="The monitor; may have been deleted since.")],
    at: Annotated[
        str | None,
        typer.Option(help="Point in time: 2030-01-31T12:00:00Z, or milliseconds since 1970. Default: now."),
    ] = None,
    as_json: ApiJson = False,
) -> None:
    """Explain a point in time: the evaluation of the samples, the rules that changed the value, and the answers to KEDA."""
    path = build_monitor_path(monitor)
    with open_api() as client:
        explanation = client.get(f"{path}/explain", {} if at is None else {"at": at})
    if as_json:
        print_json(explanation)
    else:
        print_explanation(explanation, monitor, Console())


def print_explanation(explanation: JsonObject, name: str, console: Console) -> None:
    """Print an explanation: the sentence, the rules, lag with its threshold, and the decisions under it."""
    width = min(console.width, _MAX_WIDTH)
    parts: list[RenderableType] = [_render_header(explanation, name), Text(explanation["sentence"], style="bold")]
    parts += [Text(note, style="yellow") for note in explanation["notes"]]
    if explanation.get("frozen") is not None:
        parts.append(_render_freeze(explanation["frozen"]))
    evaluation = explanation["evaluation"]
    if evaluation is not None:
        parts += [_render_title("Evaluation"), _render_rules(evaluation)]
        parts += list(_render_evidence(evaluation))
    parts += list(_render_lag(explanation, width))
    parts += [_render_title("Recorded decisions"), *_render_decisions(explanation)]
    console.print(Group(*parts), width=width, highlight=False)


def _render_header(explanation: JsonObject, name: str) -> Text:
    evaluation = explanation["evaluation"]
    verdict = "no samples stored" if evaluation is None else f"{evaluation['verdict']} ({evaluation['reason']})"
    style = "dim" if evaluation is None else VERDICT_STYLES.get(evaluation["verdict"], "")
    at = parse_time(explanation["at"])
    ago = (parse_time(explanation["now"]) - at).total_seconds()
    policy = f"policy version {explanation['registration']['version']}"
    at_text = f"at {at:%Y-%m-%d %H:%M:%S} UTC" + (f", {format_duration(ago)} ago" if ago >= 1 else "")
    return Text.assemble((name, "bold"), f" {at_text}, {policy}: ", (verdict, style))


def _render_freeze(frozen: JsonObject) -> Text:
    answer = frozen["answer"]
    answer_text = "an error"
    if answer is not None:
        known_at = f"known at {parse_time(answer['knownAt']):%Y-%m-%d %H:%M:%S}"
        answer_text = f"{format_number(answer['value'])}, {_format_activity(answer)}, {known_at}"
    since = f"since {parse_time(frozen['since']):%Y-%m-%d %H:%M:%S} UTC"
    return Text(f"frozen   {since}: KEDA gets {answer_text}", style="cyan")


def _format_activity(answer: JsonObject) -> str:
    return "active" if answer["active"] else "inactive"


def _render_rules(evaluation: JsonObject) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rule", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("reason")
    if evaluation["verdict"] != "unknown":
        lag = f"{evaluation['partitions']} partitions, {evaluation['lagging']} with lag, members {format_optional(evaluation['members'])}"
        table.add_row("total lag", format_number(evaluation["total"]), lag)
    if evaluation["verdict"] == "calm":
        table.add_row("calm", "0", "No sustained lag, so no replicas are requested.")
    for step in evaluation["steps"]:
        decides = step["rule"] == evaluation["decidingRule"] and evaluation["verdict"] == "sustained"
        text = step["text"].rstrip(".") + (" (deciding limit)." if decides else ".")
        table.add_row(step["rule"].replace("_", " "), format_number(step["after"]), text)
    answer = evaluation["answer"]
    reason_text = f": {_REASONS[evaluation['activityReason']]}" if evaluation["activityReason"] in _REASONS else ""
    if answer is None:
        table.add_row(Text("answer", style="bold"), "error", evaluation["answerSentence"])
    else:
        activity = _format_activity(answer) + reason_text
        table.add_row(Text("answer", style="bold"), Text(format_number(answer["value"]), style="bold"), activity)
    return table


def _render_evidence(evaluation: JsonObject) -> Iterator[RenderableType]:
    for island in evaluation["islands"][:_MAX_ROWS]:
        label = "total" if island["partition"] is None else f"{island['topic']}/{island['partition']}"
        duration = ("" if island["startKnown"] else "at least ") + format_duration(island["durationSeconds"])
        since = f"since {format_clock(island['since'])}, lag {format_number(island['lag'])}"
        yield Text(f"island   {label}: above for {duration} {since}")
    if len(evaluation["islands"]) > _MAX_ROWS:
        yield Text(f"         and {len(evaluation['islands']) - _MAX_ROWS} more", style="dim")
    for missing in evaluation["missing"][:_MAX_ROWS]:
        label = missing["topic"] if missing["partition"] is None else f"{missing['topic']}/{missing['partition']}"
        since = "no sample yet"
        if missing["since"] is not None:
            since = f"none since {format_clock(missing['since'])} ({format_duration(missing['ageSeconds'])}), lag {format_number(missing['lag'])} then"
        yield Text(f"missing  {label}: {since}", style="yellow")
    if evaluation["missingCount"] > _MAX_ROWS:
        yield Text(f"         and {evaluation['missingCount'] - _MAX_ROWS} more", style="yellow")
    for stuck in evaluation["stuck"][:_MAX_ROWS]:
        yield Text(
            f"stuck    {stuck['topic']}/{stuck['partition']}: members and lag, but no commit progress", style="red"
        )
    if evaluation["timeLag"] is not None:
        upper_bound = evaluation["timeLag"]["atMost"]
        upper = "older than the stored samples" if upper_bound is None else f"at most {format_duration(upper_bound)}"
        wait = f"{format_duration(evaluation['timeLag']['seconds'])} (at least {format_duration(evaluation['timeLag']['atLeast'])}, {upper})"
        yield Text(f"time lag the oldest unread message: {wait}")
    if evaluation["ageSeconds"] is not None:
        limit = f"stale after {format_duration(evaluation['staleAfterSeconds'])}"
        yield Text(f"newest   round {format_duration(evaluation['ageSeconds'])} old, {limit}", style="dim")


def _render_lag(explanation: JsonObject, width: int) -> Iterator[RenderableType]:
    """The plot, its time axis, and the decisions under it."""
    end = parse_time_ms(explanation["at"])
    policy = explanation["registration"]["policy"]
    points = [_build_point(one, of_all_partitions=explanation["usesTotalLag"]) for one in explanation["lag"]]
    decisions = [*explanation["decisions"], *explanation["answers"]]
    begin = min([point.at_ms for point in points] + [end - int(policy["maxGapSeconds"] * 1000)])
    frame = PlotFrame(begin, max(end, begin + 1), int(policy["maxGapSeconds"] * 1000))
    series = "total" if explanation["usesTotalLag"] else "partition with the highest lag"
    threshold = "" if explanation["threshold"] is None else f", threshold {format_number(explanation['threshold'])}"
    yield _render_title(f"Lag until then: {series}{threshold}")
    if not points:
        yield Text("no samples in the evaluated time range", style="dim")
        return
    lines = draw_plot(points, explanation["threshold"], frame, width)
    yield from lines
    margin = lines[0].plain.index("┤")
    columns = width - margin - 1
    left, right = f"{to_datetime(begin):%H:%M:%S}", f"{to_datetime(end):%H:%M:%S} UTC"
    yield Text(f"{'':{margin}}└{left}{'':{max(1, columns - len(left) - len(right))}}{right}", style="dim")
    replicas = sorted({one["replica"] for one in decisions if one.get("overrides") is None})
    for replica in replicas[:_MAX_REPLICAS]:
        replica_decisions = [one for one in decisions if one["replica"] == replica and one.get("overrides") is None]
        yield _render_strip(replica_decisions, frame, margin, columns)
    if replicas:
        yield _render_legend(decisions, replicas, margin)


def _render_strip(rows: Sequence[JsonObject], frame: PlotFrame, margin: int, width: int) -> Text:
    """The decisions of one replica, column by column; empty without a recorded one."""
    ordered = sorted(
        ((parse_time_ms(one["answeredAt"]), _classify_decision(one)) for one in rows), key=lambda one: one[0]
    )
    cells = []
    for column in range(width):
        until = frame.until(column, width)
        current = [kind for decided_ms, kind in ordered if until - _DECISION_VALID_MS <= decided_ms <= until]
        cells.append(_DECISION_STYLES[current[-1]][:2] if current else (" ", ""))
    return Text.assemble((f"{'KEDA':>{margin}} " if margin >= 4 else f"{'':{margin}} ", "dim"), *join_cells(cells))


def _render_legend(decisions: Sequence[JsonObject], replicas: Sequence[str], margin: int) -> RenderableType:
    outcomes = {_classify_decision(one) for one in decisions}
    legend = Text("decisions: ", style="dim")
    legend.append(
        ", ".join(f"{mark} {meaning}" for kind, (mark, _, meaning) in _DECISION_STYLES.items() if kind in outcomes),
        "dim",
    )
    if len(replicas) > 1:
        shown = ", ".join(replicas[:_MAX_REPLICAS])
        more = len(replicas) - _MAX_REPLICAS
        legend.append(f"; one line per replica: {shown}" + (f" ({more} more not drawn)" if more > 0 else ""), "dim")
    return Padding(legend, (0, 0, 0, margin + 1))


def _render_decisions(explanation: JsonObject) -> Iterator[RenderableType]:
    rows = list(explanation["answers"])
    if not rows:
        before = explanation["previousAnswer"]
        if before is None:
            yield Text("no recorded decisions", style="dim")
            return
        yield Text("no recorded decisions for this point in time; the previous one:", style="dim")
        rows = [before]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("replica", "decided", "snapshot", "answer", "policy"):
        table.add_column(column, overflow="fold")
    at = parse_time(explanation["at"])
    for row in rows:
        ago = format_duration((at - parse_time(row["answeredAt"])).total_seconds())
        snapshot = "-" if row["newestRoundAt"] is None else format_clock(row["newestRoundAt"])
        table.add_row(row["replica"], f"{ago} earlier", snapshot, _format_answer(row), _format_policy(row))
    yield table
    for row in rows:
        if row.get("difference"):
            yield Text.assemble((f"{row['replica']}: ", "bold"), (row["difference"], "yellow"))
    if explanation["evaluation"] is not None and any(row.get("agrees") is False for row in rows):
        yield Text(f"Evaluation: {explanation['evaluation']['answerSentence']}", style="dim")


def _format_answer(row: JsonObject) -> Text:
    kind = _classify_decision(row)
    if kind == "error":
        return Text(f"error {row['grpcCode']} ({row['reason']})", style="bold red")
    activity = _format_activity(row) + (", last known" if kind == "last_known" else "")
    return Text(f"{format_number(row['value'])}, {activity} ({row['reason']})", style=_DECISION_STYLES[kind][1])


def _format_policy(row: JsonObject) -> str:
    version = "-" if row["registrationVersion"] is None else f"version {row['registrationVersion']}"
    overrides = row["overrides"] or {}
    return version + "".join(f", {key} {text}" for key, text in sorted(overrides.items()))


def _classify_decision(row: JsonObject) -> str:
    if row["grpcCode"] != "OK" or row["value"] is None:
        return "error"
    if row["lastKnown"]:
        return "frozen" if row["reason"] == "frozen" else "last_known"
    if not row["active"]:
        return "inactive"
    return "scaled" if row["value"] > 0 else "active"


def _build_point(one: JsonObject, *, of_all_partitions: bool) -> PlotPoint:
    lag = one["total"] if of_all_partitions else one["maxPartitionLag"]
    return PlotPoint(parse_time_ms(one["at"]), lag, lag if of_all_partitions else one["maxPartitionLagLow"])


def _render_title(text: str) -> RenderableType:
    return Padding(Rule(Text(text), align="left", style="dim"), (1, 0, 0, 0))
