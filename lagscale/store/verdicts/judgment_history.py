"""Cached judgments of past sample times, from which stabilized and last-known answers are computed. For `judge`.

Samples do not change, so neither do judgments of the past; the cache can be lost at any time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from lagscale.domain.verdict.contract import Judgment

#: Sample times younger than this are judged again: a late row may still change them.
_LATE_ROWS_MS: Final = 120_000
#: Sample times judged in one statement.
_MAX_CHUNK: Final = 256


@dataclass(frozen=True, slots=True)
class JudgmentSource:
    """One monitor's sample times, newest first, and its judgments at them, each with only the samples until then.

    `first_chunk` is how many the first statement judges.
    """

    times: Callable[[int, int], Awaitable[list[int]]]
    judge: Callable[[Sequence[int]], Awaitable[list[Judgment]]]
    first_chunk: int = 256


@dataclass(frozen=True, slots=True)
class JudgmentHistory:
    """The determined judgments, newest first, of all sample times from `since_ms` to `upto_ms`."""

    since_ms: int
    upto_ms: int
    determined: tuple[Judgment, ...]


EMPTY_HISTORY: Final = JudgmentHistory(0, 0, ())


async def extend_history(
    source: JudgmentSource,
    history: JudgmentHistory,
    until_ms: int,
    needed_since: Callable[[int | None], int],
    retain_ms: int,
) -> JudgmentHistory:
    """Judge the sample times up to a time that are not cached, newest first, as far back as is needed.

    `needed_since` says how far back is needed, by the newest determined time as soon as there is one; never further
    back with one than without. `retain_ms` is how far behind `until_ms` to cache more than is needed now.
    """
    settled = min(history.upto_ms - _LATE_ROWS_MS, until_ms)
    newest_ms, determined = await _judge_new(
        source, (max(settled + 1, needed_since(None)), until_ms), needed_since, None
    )
    last = _find_newest_ms(determined)
    if history is EMPTY_HISTORY or needed_since(last) > settled:
        since = needed_since(last)
    else:
        determined += [judgment for judgment in history.determined if (judgment.at_ms or 0) <= settled]
        # The cached span may lie wholly within the span just judged.
        last, since = _find_newest_ms(determined), min(history.since_ms, settled + 1)
        if needed_since(last) < since:
            _, older = await _judge_new(source, (needed_since(last), since - 1), needed_since, last)
            determined += older
            since = needed_since(_find_newest_ms(determined))
    since = max(since, min(needed_since(_find_newest_ms(determined)), until_ms - retain_ms))
    return JudgmentHistory(
        since, max(newest_ms, history.upto_ms), tuple(one for one in determined if (one.at_ms or 0) >= since)
    )


async def _judge_new(
    source: JudgmentSource, span: tuple[int, int], needed_since: Callable[[int | None], int], last_ms: int | None
) -> tuple[int, list[Judgment]]:
    """The newest sample time of a span, and its determined judgments as far back as needed; newest first."""
    left = await source.times(*span)
    newest_ms = left[0] if left else 0
    determined: list[Judgment] = []
    size = source.first_chunk
    while chunk := [at for at in left[:size] if at >= needed_since(last_ms)]:
        determined += [judgment for judgment in await source.judge(chunk) if judgment.value is not None]
        last_ms = _find_newest_ms(determined) if last_ms is None else last_ms
        left, size = left[size:], min(2 * size, _MAX_CHUNK)
    return newest_ms, determined


def _find_newest_ms(determined: Sequence[Judgment]) -> int | None:
    return determined[0].at_ms if determined else None
