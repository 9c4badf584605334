"""The database's judgements beside the reference's, for many random histories at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lagscale.domain.markers import TargetRound
from lagscale.domain.persistence import hold, judge
from lagscale.domain.signal import Island, Judgement, Told, Verdict
from tests.contract.database import TENANT, Stored
from tests.contract.random_histories import Instant, RandomHistory


@dataclass(frozen=True)
class Difference:
    """What the reference says, and what a way through the store says instead."""

    history: RandomHistory
    instant: Instant
    way: str
    reference: Judgement | Told | None
    store: Judgement | Told | None

    def __str__(self) -> str:
        begin = min((row.round.at_ms for rows in self.history.rows.values() for row in rows), default=0)
        differ = [
            f"  {name}: {getattr(self.reference, name)} <> {getattr(self.store, name)}"
            for name in Judgement.__dataclass_fields__
            if getattr(self.reference, name, None) != getattr(self.store, name, None)
        ]
        rounds = [
            f"  {target} at {(row.round.at_ms - begin) / 1000:g}: {_told(row.round)}"
            for target, rows in self.history.rows.items()
            for row in sorted(rows, key=lambda row: row.round.at_ms)
        ]
        upto = "" if self.instant.upto_ms is None else f" up to {(self.instant.upto_ms - begin) / 1000:g}"
        asked = f"  asked at {(self.instant.now_ms - begin) / 1000:g}{upto}, t = 0 is {begin}"
        lines = [f"{self.way}: reference <> store", *differ, f"  reference {self.reference}", asked]
        return "\n".join([*lines, f"  {self.history.policy}", *rounds])


def _told(this: TargetRound) -> str:
    samples = ["-" if s is None else f"{s.lag}/{s.end}{'' if not s.flags else s.flags!s}" for s in this.samples]
    return f"[{' '.join(samples)}] id {this.epoch} {this.notes!s} members {this.members} age {this.members_age_ms}"


def references(history: RandomHistory) -> list[Judgement]:
    """The reference's judgement at each instant."""
    targets = history.targets()
    return [judge(targets, history.policy, now_ms=i.now_ms, upto_ms=i.upto_ms) for i in history.instants]


async def differences(samples: Stored, histories: Sequence[RandomHistory], *, holding: bool = True) -> list[Difference]:
    """Judge all histories in few round trips and compare."""
    ids = samples.put([history.rows for history in histories])
    asked = [
        (history, instant, ask, wanted, names)
        for history, names in zip(histories, ids, strict=True)
        for instant, ask, wanted in zip(history.instants, history.asks(TENANT, names), references(history), strict=True)
    ]
    asks = [ask for _, _, ask, _, _ in asked]
    found: list[Difference] = []
    for way, judged in [(way, await samples.judge(asks, way)) for way in samples.WAYS]:
        for (history, instant, _, wanted, names), got in zip(asked, judged, strict=True):
            plain = _by_own_names(got, names)
            if plain != (wanted if way == "judge_full" else replace(wanted, island=plain.island)):
                found.append(Difference(history, instant, way, wanted, plain))
    if holding:
        for history, instant, ask, wanted, _ in asked:
            if wanted.verdict is Verdict.UNKNOWN:
                told = hold(history.targets(), history.policy, now_ms=instant.now_ms, upto_ms=instant.upto_ms)
                held = await samples.verdicts.hold(ask, wanted)
                if held != told:
                    found.append(Difference(history, instant, "hold", told, held))
    return found


def _by_own_names(judged: Judgement, ids: Mapping[int, int]) -> Judgement:
    names = {target: topic for topic, target in ids.items()}
    island = judged.island
    if island is not None and island.target_id is not None:
        island = Island(
            names[island.target_id], island.partition, island.lag, island.since_ms, island.span_ms, island.bounded
        )
    return replace(judged, island=island, absent=tuple(names[target] for target in judged.absent))
