"""The database's judgments beside the reference's, for many random histories at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from lagscale.domain.lag.rounds import TargetRound
from lagscale.domain.verdict.contract import Answer, Island, Judgment, Verdict, VerdictRequest
from lagscale.domain.verdict.evaluate import find_last_known, judge, judge_at
from tests.contract.database import TENANT, Stored
from tests.contract.random_histories import Instant, RandomHistory


@dataclass(frozen=True)
class Difference:
    """The reference's answer, and a different one of a way through the store."""

    history: RandomHistory
    instant: Instant
    way: str
    reference: Judgment | Answer | None
    store: Judgment | Answer | None

    def __str__(self) -> str:
        begin = min((row.round.at_ms for rows in self.history.rows.values() for row in rows), default=0)
        differ = [
            f"  {name}: {getattr(self.reference, name, None)} <> {getattr(self.store, name, None)}"
            for name in Judgment.__dataclass_fields__
            if getattr(self.reference, name, None) != getattr(self.store, name, None)
        ]
        rounds = [
            f"  {target} at {(row.round.at_ms - begin) / 1000:g}: {_format_round(row.round)}"
            for target, rows in self.history.rows.items()
            for row in sorted(rows, key=lambda row: row.round.at_ms)
        ]
        upto = "" if self.instant.upto_ms is None else f" up to {(self.instant.upto_ms - begin) / 1000:g}"
        asked = f"  asked at {(self.instant.now_ms - begin) / 1000:g}{upto}, t = 0 is {begin}"
        lines = [f"{self.way}: reference <> store", *differ, f"  reference {self.reference}", asked]
        return "\n".join([*lines, f"  {self.history.policy}", *rounds])


def _format_round(this: TargetRound) -> str:
    samples = ["-" if s is None else f"{s.lag}/{s.end}{'' if not s.flags else s.flags!s}" for s in this.samples]
    return (
        f"[{' '.join(samples)}] id {this.incarnation} {this.notes!s} members {this.members} age {this.members_age_ms}"
    )


@dataclass(frozen=True)
class Asked:
    """One request of a stored history, with the reference's answers before and after stabilization."""

    history: RandomHistory
    instant: Instant
    request: VerdictRequest
    reference: Judgment
    answer: Judgment
    ids: Mapping[int, int]


def references(history: RandomHistory) -> list[Judgment]:
    """The reference's answer at each instant."""
    targets = history.targets()
    return [judge(targets, history.policy, now_ms=i.now_ms, upto_ms=i.upto_ms) for i in history.instants]


def prepare(samples: Stored, histories: Sequence[RandomHistory]) -> list[Asked]:
    """Store histories and judge them by the reference."""
    ids = samples.put([history.rows for history in histories])
    return [
        Asked(history, instant, request, _before(history, instant, answer), answer, names)
        for history, names in zip(histories, ids, strict=True)
        for instant, request, answer in zip(
            history.instants, history.requests(TENANT, names), references(history), strict=True
        )
    ]


def _before(history: RandomHistory, instant: Instant, answer: Judgment) -> Judgment:
    if not history.policy.stabilization_ms:
        return answer
    return judge_at(history.targets(), history.policy, instant.now_ms, instant.upto_ms)


async def find_wrong_judgments(samples: Stored, asked: Sequence[Asked], ways: Sequence[str]) -> list[Difference]:
    """Judgments that differ from the reference's; islands are compared where every sample is read."""
    found: list[Difference] = []
    for way in ways:
        judged = await samples.judge([one.request for one in asked], way)
        for one, answer in zip(asked, judged, strict=True):
            plain = _by_own_names(answer, one.ids)
            wanted = one.reference if way == "judge_full" else _without_evidence(one.reference, plain)
            if plain != wanted:
                found.append(Difference(one.history, one.instant, way, wanted, plain))
    return found


def _without_evidence(reference: Judgment, told: Judgment) -> Judgment:
    """Without what the newest rows do not show: the island, and lagging or stuck partitions where they change no value."""
    if told.verdict is Verdict.SUSTAINED:
        return replace(reference, island=told.island)
    return replace(
        reference,
        island=told.island,
        lagging=told.lagging,
        stuck=told.stuck,
        stuck_lag=told.stuck_lag,
        time_lag=told.time_lag,
    )


async def find_wrong_last_known(samples: Stored, asked: Sequence[Asked]) -> list[Difference]:
    """Last-known answers that differ from the reference's while lag is unknown; once for each history."""
    found: list[Difference] = []
    unknown = {id(one.history): one for one in asked if one.reference.verdict is Verdict.UNKNOWN}
    for one in unknown.values():
        policy, instant = one.history.policy, one.instant
        told = find_last_known(one.history.targets(), policy, now_ms=instant.now_ms, upto_ms=instant.upto_ms)
        held = await samples.verdicts.find_last_known(one.request, one.reference)
        if held != told:
            found.append(Difference(one.history, instant, "hold", told, held))
    return found


async def find_wrong_stabilized(samples: Stored, asked: Sequence[Asked]) -> list[Difference]:
    """Stabilized answers that differ from the reference's."""
    found: list[Difference] = []
    windowed = [one for one in asked if one.history.policy.stabilization_ms]
    judged = await samples.verdicts.judge([one.request for one in windowed])
    for one, answer in zip(windowed, judged, strict=True):
        plain = _by_own_names(answer, one.ids)
        wanted = _without_evidence(one.answer, plain)
        if plain != wanted:
            found.append(Difference(one.history, one.instant, "stabilize", wanted, plain))
    return found


async def differences(samples: Stored, histories: Sequence[RandomHistory]) -> list[Difference]:
    """Judge all histories in few round trips, in every way, and compare."""
    asked = prepare(samples, histories)
    found = await find_wrong_judgments(samples, asked, samples.WAYS)
    return found + await find_wrong_stabilized(samples, asked) + await find_wrong_last_known(samples, asked)


async def must_agree(samples: Stored, histories: Sequence[RandomHistory]) -> None:
    """Fail with the first difference, without whatever it does not need."""
    samples.clear()
    found = await differences(samples, histories)
    if found:
        pytest.fail(str(await _smallest(samples, found[0])))


async def _smallest(samples: Stored, found: Difference) -> Difference:
    """Leave out what the difference does not need."""
    while True:
        for smaller in found.history.smaller(found.instant):
            samples.clear()
            still = [one for one in await differences(samples, [smaller]) if one.way == found.way]
            if still:
                found = still[0]
                break
        else:
            return found


def _by_own_names(judged: Judgment, ids: Mapping[int, int]) -> Judgment:
    names = {target: topic for topic, target in ids.items()}
    island = judged.island
    if island is not None and island.target_id is not None:
        island = Island(
            names[island.target_id], island.partition, island.lag, island.since_ms, island.span_ms, island.start_known
        )
    stuck = tuple((names[target], partition) for target, partition in judged.stuck)
    return replace(judged, island=island, stuck=stuck, absent=tuple(names[target] for target in judged.absent))
