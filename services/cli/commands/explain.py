"""`lagscale explain`: the API's explanation of a moment as a page for a terminal. Pure but for the console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from services.cli.commands.plot import Frame, Point, joined, plot, short

_COLOURS = {"sustained": "bold red", "calm": "bold green", "unknown": "bold yellow"}
#: For so long a decision speaks when no other follows.
_SPEAKS_MS = 360_000
_REPLICAS = 4
_LISTED = 8
_WIDEST = 120
_BECAUSE = {
    "sustained": "lag has lasted",
    "backlog": "a backlog waits",
    "work": "the group is at work",
    "scale_down": "it was, within scaleDownStabilization",
}
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
#: What was told -> its character under the plot, its style and its meaning.
_TOLD: Mapping[str, tuple[str, str, str]] = {
    "scaled": ("█", "red", "active, value above 0"),
    "active": ("▄", "green", "active, value 0"),
    "inactive": ("▁", "dim", "inactive"),
    "held": ("h", "yellow", "held"),
    "frozen": ("f", "cyan", "frozen"),
    "error": ("!", "bold red", "error"),
}

Found = Mapping[str, Any]


def show(found: Found, name: str, console: Console) -> None:
    """Print an explanation: the sentence, the rules, lag with its threshold, and what was told under it.

    Args:
        found: the API's answer.
        name: TENANT/MONITOR.
        console: gives the width.
    """
    width = min(console.width, _WIDEST)
    parts: list[RenderableType] = [_head(found, name), Text(found["sentence"], style="bold")]
    parts += [Text(note, style="yellow") for note in found["notes"]]
    if found.get("frozen") is not None:
        parts.append(_frozen(found["frozen"]))
    said = found["samplesSay"]
    if said is not None:
        parts += [_title("How the value came about"), _rules(said)]
        parts += list(_evidence(said))
    parts += list(_course(found, width))
    parts += [_title("What was told"), *_told(found)]
    console.print(Group(*parts), width=width, highlight=False)


def _head(found: Found, name: str) -> Text:
    said = found["samplesSay"]
    verdict = "no samples kept" if said is None else f"{said['verdict']} ({said['reason']})"
    style = "dim" if said is None else _COLOURS.get(said["verdict"], "")
    at = _time(found["at"])
    ago = (_time(found["now"]) - at).total_seconds()
    policy = f"policy version {found['registration']['version']}"
    moment = f"at {at:%Y-%m-%d %H:%M:%S} UTC" + (f", {_duration(ago)} ago" if ago >= 1 else "")
    return Text.assemble((name, "bold"), f" {moment}, {policy}: ", (verdict, style))


def _frozen(frozen: Found) -> Text:
    answer = frozen["answer"]
    said = (
        "an error" if answer is None else f"{_number(answer['value'])}, {'active' if answer['active'] else 'inactive'}"
    )
    known = "" if answer is None else f", known at {_time(answer['heldSince']):%Y-%m-%d %H:%M:%S}"
    since = f"since {_time(frozen['since']):%Y-%m-%d %H:%M:%S} UTC"
    return Text(f"frozen   {since}: KEDA gets {said}{known}", style="cyan")


def _rules(said: Found) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("rule", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("why")
    if said["verdict"] != "unknown":
        lag = f"{said['partitions']} partitions, {said['lagging']} with lag, members {_known(said['members'])}"
        table.add_row("total lag", _number(said["total"]), lag)
    if said["verdict"] == "calm":
        table.add_row("calm", "0", "No lag has lasted, so nothing is asked for.")
    for step in said["steps"]:
        held = " (this limit holds)" if step["rule"] == said["limit"] and said["verdict"] == "sustained" else ""
        table.add_row(step["rule"].replace("_", " "), _number(step["after"]), step["text"].rstrip(".") + held + ".")
    answer = said["answer"]
    because = f": {_BECAUSE[said['because']]}" if said["because"] in _BECAUSE else ""
    if answer is None:
        table.add_row(Text("answer", style="bold"), "error", said["answerSentence"])
    else:
        state = ("active" if answer["active"] else "inactive") + because
        table.add_row(Text("answer", style="bold"), Text(_number(answer["value"]), style="bold"), state)
    return table


def _evidence(said: Found) -> Iterator[RenderableType]:
    for island in said["islands"][:_LISTED]:
        what = "total" if island["partition"] is None else f"{island['topic']}/{island['partition']}"
        at_least = "" if island["bounded"] else "at least "
        begin = f"{_time(island['since']):%H:%M:%S}"
        yield Text(
            f"island   {what}: above for {at_least}{_duration(island['spanSeconds'])} since {begin}, lag {_number(island['lag'])}"
        )
    if len(said["islands"]) > _LISTED:
        yield Text(f"         and {len(said['islands']) - _LISTED} more", style="dim")
    for missing in said["missing"][:_LISTED]:
        what = missing["topic"] if missing["partition"] is None else f"{missing['topic']}/{missing['partition']}"
        since = "no sample yet"
        if missing["since"] is not None:
            since = f"none since {_time(missing['since']):%H:%M:%S} ({_duration(missing['ageSeconds'])}), lag {_number(missing['lag'])} then"
        yield Text(f"missing  {what}: {since}", style="yellow")
    if said["missingCount"] > _LISTED:
        yield Text(f"         and {said['missingCount'] - _LISTED} more", style="yellow")
    for stuck in said["stuck"][:_LISTED]:
        yield Text(
            f"stuck    {stuck['topic']}/{stuck['partition']}: members, lag, and a commit that stands still", style="red"
        )
    if said["timeLag"] is not None:
        most = said["timeLag"]["atMost"]
        upper = "longer than anything stored" if most is None else f"at most {_duration(most)}"
        wait = f"{_duration(said['timeLag']['seconds'])} (at least {_duration(said['timeLag']['atLeast'])}, {upper})"
        yield Text(f"waiting  the oldest unread message: {wait}")
    if said["ageSeconds"] is not None:
        limit = f"stale after {_duration(said['staleAfterSeconds'])}"
        yield Text(f"newest   round {_duration(said['ageSeconds'])} old, {limit}", style="dim")


def _course(found: Found, width: int) -> Iterator[RenderableType]:
    """The plot, its axis of time, and what was told under it."""
    end = _ms(found["at"])
    policy = found["registration"]["policy"]
    points = [_point(one, of_total=found["ofTotal"]) for one in found["lag"]]
    told = [*found["decisions"], *found["wasTold"]]
    begin = min([point.at_ms for point in points] + [end - int(policy["maxGapSeconds"] * 1000)])
    frame = Frame(begin, max(end, begin + 1), int(policy["maxGapSeconds"] * 1000))
    what = "total lag" if found["ofTotal"] else "lag of the partition that lags most"
    threshold = "" if found["threshold"] is None else f", threshold {_number(found['threshold'])}"
    yield _title(f"Until then: {what}{threshold}")
    if not points:
        yield Text("no sample in the time that the verdict looks at", style="dim")
        return
    lines = plot(points, found["threshold"], frame, width)
    yield from lines
    margin = lines[0].plain.index("┤")
    columns = width - margin - 1
    left, right = f"{_of(begin):%H:%M:%S}", f"{_of(end):%H:%M:%S} UTC"
    yield Text(f"{'':{margin}}└{left}{'':{max(1, columns - len(left) - len(right))}}{right}", style="dim")
    replicas = sorted({one["replica"] for one in told if one.get("overrides") is None})
    for replica in replicas[:_REPLICAS]:
        mine = [one for one in told if one["replica"] == replica and one.get("overrides") is None]
        yield _strip(mine, frame, margin, columns)
    if replicas:
        yield _legend(told, replicas, margin)


def _strip(rows: Sequence[Found], frame: Frame, margin: int, width: int) -> Text:
    """What one replica told, column by column; empty where it wrote nothing down."""
    ordered = sorted(((_ms(one["toldAt"]), _kind(one)) for one in rows), key=lambda one: one[0])
    cells = []
    for column in range(width):
        until = frame.until(column, width)
        said = [kind for told_ms, kind in ordered if until - _SPEAKS_MS <= told_ms <= until]
        cells.append(_TOLD[said[-1]][:2] if said else (" ", ""))
    return Text.assemble((f"{'told':>{margin}} " if margin >= 4 else f"{'':{margin}} ", "dim"), *joined(cells))


def _legend(told: Sequence[Found], replicas: Sequence[str], margin: int) -> RenderableType:
    kinds = {_kind(one) for one in told}
    legend = Text("told: ", style="dim")
    legend.append(", ".join(f"{mark} {meaning}" for kind, (mark, _, meaning) in _TOLD.items() if kind in kinds), "dim")
    if len(replicas) > 1:
        shown = ", ".join(replicas[:_REPLICAS])
        more = len(replicas) - _REPLICAS
        legend.append(f"; a line each: {shown}" + (f" ({more} more not drawn)" if more > 0 else ""), "dim")
    return Padding(legend, (0, 0, 0, margin + 1))


def _told(found: Found) -> Iterator[RenderableType]:
    rows = list(found["wasTold"])
    if not rows:
        before = found["toldBefore"]
        if before is None:
            yield Text("nothing on record", style="dim")
            return
        yield Text("nothing on record for this moment; the last before:", style="dim")
        rows = [before]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("replica", "told", "saw round", "answer", "policy"):
        table.add_column(column, overflow="fold")
    at = _time(found["at"])
    for row in rows:
        ago = _duration((at - _time(row["toldAt"])).total_seconds())
        saw = "-" if row["snapshotAt"] is None else f"{_time(row['snapshotAt']):%H:%M:%S}"
        table.add_row(row["replica"], f"{ago} before", saw, _answer(row), _policy(row))
    yield table
    for row in rows:
        if row.get("differs"):
            yield Text.assemble((f"{row['replica']}: ", "bold"), (row["differs"], "yellow"))
    if found["samplesSay"] is not None and any(row.get("agrees") is False for row in rows):
        yield Text(f"The samples say: {found['samplesSay']['answerSentence']}", style="dim")


def _answer(row: Found) -> Text:
    kind = _kind(row)
    if kind == "error":
        return Text(f"error {row['code']} ({row['reason']})", style="bold red")
    state = "active" if row["active"] else "inactive"
    held = ", held" if kind == "held" else ""
    return Text(f"{_number(row['value'])}, {state}{held} ({row['reason']})", style=_TOLD[kind][1])


def _policy(row: Found) -> str:
    version = "-" if row["version"] is None else f"version {row['version']}"
    overrides = row["overrides"] or {}
    return version + "".join(f", {key} {text}" for key, text in sorted(overrides.items()))


def _kind(row: Found) -> str:
    if row["code"] != "OK" or row["value"] is None:
        return "error"
    if row["held"]:
        return "frozen" if row["reason"] == "frozen" else "held"
    if not row["active"]:
        return "inactive"
    return "scaled" if row["value"] > 0 else "active"


def _point(one: Found, *, of_total: bool) -> Point:
    lag = one["total"] if of_total else one["greatest"]
    return Point(_ms(one["at"]), lag, lag if of_total else one["least"])


def _title(text: str) -> RenderableType:
    return Padding(Rule(Text(text), align="left", style="dim"), (1, 0, 0, 0))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _ms(text: str) -> int:
    return (_time(text) - _BEGIN) // timedelta(milliseconds=1)


def _of(at_ms: int) -> datetime:
    return _BEGIN + timedelta(milliseconds=at_ms)


def _number(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".") if value < 1e9 else short(value)


def _known(value: object) -> str:
    return "not known" if value is None else str(value)


def _duration(seconds: float) -> str:
    """A span as people say it: 4.2 s, 130 s, 12 min, 3.5 h."""
    if seconds < 10:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
