"""The laws of the verdict, each with a break that it catches, and how they are tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from unittest import mock

from lagscale.domain.policy.policy import Policy
from lagscale.domain.verdict.contract import Judgment
from lagscale.domain.verdict.evaluate import judge, judge_at
from lagscale.domain.verdict.stabilization import stabilize
from lagscale.store.verdicts import judge as postgres
from tests.contract import laws
from tests.contract.breakages import Breakage
from tests.contract.database import TENANT, Stored
from tests.contract.laws import Law
from tests.contract.mutations import broken
from tests.contract.random_histories import Instant, RandomHistory, random_history

_BATCH = 40


def _sql(statement: str, old: str, new: str) -> Callable[[], AbstractContextManager[object]]:
    return partial(broken, Breakage("a law's", statement, old, new))


def _windows_swapped() -> AbstractContextManager[object]:
    def swapped(known: Sequence[Judgment], policy: Policy) -> list[Judgment]:
        return stabilize(known, replace(policy, scale_up_ms=policy.scale_down_ms, scale_down_ms=policy.scale_up_ms))

    return mock.patch.object(postgres, "stabilize", swapped)


LAWS = (
    Law(
        "when everything happens later, nothing but the times changes",
        laws.shifted,
        laws.only_times_shift,
        _sql("judge_full", "c.ts - max(s.ts) as span", "c.ts - date_trunc('minute', max(s.ts)) as span"),
    ),
    Law(
        "when everything takes longer, durations of the policy included, nothing but the times changes",
        laws.slower,
        laws.only_times_stretch,
        _sql("judge_full", "s.ts - s.previous_ts > a.gap_time\n", "s.ts - s.previous_ts > interval '25 seconds'\n"),
    ),
    Law(
        "when every message counts for several, thresholds included, only lags and values are so many times higher",
        laws.heavier,
        laws.only_weights_change,
        _sql("judge_full", "or s.previous_amount <= a.level\n", "or s.previous_amount <= a.level + 1\n"),
    ),
    Law(
        "a topic measured as two targets is judged as one",
        laws.split,
        laws.same,
        _sql("part_gate", "max(greatest(n.max_lag", "min(greatest(n.max_lag"),
    ),
    Law(
        "a calm partition beside it changes no verdict, and lowers no value",
        laws.joined_by_calm,
        laws.keeps_verdict_beside_calm,
        _sql("part_gate", "max(greatest(n.max_lag", "min(greatest(n.max_lag"),
    ),
    Law(
        "a lower threshold never un-sustains, nor lowers the value",
        laws.lower_threshold,
        laws.stays_sustained,
        _sql("judge_full", "bool_or(k.fresh and k.span >= a.sustain_time)", "bool_and(k.fresh and k.span >= a.sustain_time)"),
    ),
    Law(
        "a longer sustain time never sustains",
        laws.longer_sustain,
        laws.never_sustains,
        _sql("judge_full", "bool_or(k.fresh and k.span >= a.sustain_time)", "bool_or(k.fresh and k.span <= a.sustain_time)"),
    ),
    Law(
        "what is known stays so when samples stay fresh for longer",
        laws.staler,
        laws.keeps_what_is_known,
        _sql("judge_full", "bool_or(k.fresh and k.span", "bool_or(not k.fresh and k.span"),
    ),
    Law(
        "with time alone a verdict stays or becomes unknown",
        laws.later,
        laws.stays_or_becomes_unknown,
        _sql("judge_full", "when f.missing > 0 then 'missing'", "when false then 'missing'"),
    ),
    Law(
        "rounds before the lookback change nothing but whether inactivity can be told",
        laws.older_rounds,
        laws.same_but_activity_may_be_told,
        _sql("judge_full", "order by w.ts desc\n                limit 1", "order by w.ts desc\n                limit 9"),
    ),
    Law(
        "a longer scaleUpStabilization never raises the answer",
        laws.more_up,
        laws.never_raises,
        _windows_swapped,
        stabilized=True,
    ),
    Law(
        "a longer scaleDownStabilization never lowers the answer, and keeps what is active",
        laws.more_down,
        laws.never_lowers,
        _windows_swapped,
        stabilized=True,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Broken:
    """A history for which a law does not hold."""

    seed: int
    way: str
    policies: tuple[Policy, Policy]
    instants: tuple[Instant, Instant]
    before: Judgment
    after: Judgment

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.way}\n{self.before}\n{self.after}\n{self.policies}\n{self.instants}"


def pairs(law: Law, seeds: Sequence[int]) -> Iterator[tuple[int, RandomHistory, RandomHistory]]:
    """The histories of which the law says something, before and after the change."""
    for seed in seeds:
        random = Random(seed)
        pair = law.pair(random_history(random), random)
        if pair is not None:
            yield seed, *pair


def first_broken_in_memory(law: Law, seeds: Sequence[int]) -> Broken | None:
    """The first history for which the law does not hold in the reference."""
    for seed, old, new in pairs(law, seeds):
        for n, (before, after) in enumerate(zip(_judged(old, law), _judged(new, law), strict=True)):
            if not law.holds(before, after, old.policy):
                instants = (old.instants[n], new.instants[n])
                return Broken(seed, "reference", (old.policy, new.policy), instants, before, after)
    return None


def _judged(history: RandomHistory, law: Law) -> list[Judgment]:
    targets, policy = history.targets(), history.policy
    if law.stabilized:
        return [judge(targets, policy, now_ms=i.now_ms, upto_ms=i.upto_ms) for i in history.instants]
    return [judge_at(targets, policy, i.now_ms, i.upto_ms) for i in history.instants]


async def first_broken(law: Law, samples: Stored, seeds: Sequence[int]) -> Broken | None:
    """The first history for which the law does not hold in the database, in any way through it."""
    for first in range(0, len(seeds), _BATCH):
        batch = list(pairs(law, seeds[first : first + _BATCH]))
        ids = samples.put([history.rows for _, *both in batch for history in both])
        named = [
            (seed, before, after, before.requests(TENANT, ids[2 * n]), after.requests(TENANT, ids[2 * n + 1]))
            for n, (seed, before, after) in enumerate(batch)
        ]
        befores = [request for *_, requests, _ in named for request in requests]
        afters = [request for *_, requests in named for request in requests]
        asked = [(one, n) for one in named for n in range(len(one[1].instants))]
        for way in ("stabilize",) if law.stabilized else samples.WAYS:
            found = []
            for requests in (befores, afters):
                found.append(
                    await (samples.verdicts.judge(requests) if law.stabilized else samples.judge(requests, way))
                )
            for ((seed, old, new, *_), n), before, after in zip(asked, *found, strict=True):
                if not law.holds(before, after, old.policy):
                    instants = (old.instants[n], new.instants[n])
                    return Broken(seed, way, (old.policy, new.policy), instants, before, after)
    return None
