"""Explains a moment: what the samples say of it, what KEDA was told, and why the two differ."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lagscale.domain.explain.decision_diff import Record, Said, Why, agrees, reasons
from lagscale.domain.policy.policy import Metric, PersistenceScope
from lagscale.domain.verdict.contract import Ask, Verdict, told
from lagscale.domain.verdict.freezes import Freeze
from lagscale.domain.verdict.partial import by_a_part
from lagscale.domain.wording.answers import About, told_sentence, why_sentence
from lagscale.store.registry import freezes
from lagscale.store.registry.session import RegistryDatabase, Scope
from lagscale.store.samples.columns import instant
from services.api.explain import schemas as out
from services.api.explain.points_in_time import Moment, remembered
from services.api.explain.serializers import decision_of, lag_of_time, notes_of, picture, registration_of, said_of
from services.api.freezes.freezing import Kept, frozen_answer, frozen_of
from services.api.verdicts.evidence import Verdicts
from services.api.verdicts.schemas import FrozenOut

_GONE = "The samples of that time are no longer kept."


class Explanations:
    """Explains moments of one tenant's monitors, each looked for behind the tenant's wall first."""

    def __init__(self, database: RegistryDatabase, verdicts: Verdicts) -> None:
        """Take the registry, and the verdicts in the scaler's role, as `Evidence` does."""
        self._database = database
        self._verdicts = verdicts

    async def explain(self, scope: Scope, tenant: str, name: str, at_ms: int | None) -> out.ExplanationOut:
        """Explain a moment, milliseconds since 1970; None is now.

        Raises:
            NotFound: the tenant has and had no such monitor.
            InvalidInput: the moment lies in the future, before the monitor, or nothing of it is kept.
            StoreUnavailable: the store does not answer.
        """
        async with self._database.tenant(scope, tenant) as work:
            moment = await remembered(work, name, at_ms)
            tenant_id = work.tenant_id
            present = await freezes.covering(work, moment.monitor, instant(moment.at_ms))
            kept = await freezes.answer(work, present, moment.monitor["id"]) if present else None
        said, saying = None, None
        if moment.has_samples:
            ask = Ask(tenant_id, tuple(sorted(moment.topics)), moment.policy, moment.at_ms, moment.at_ms)
            said = await self._say(ask, moment.partial_at(moment.at_ms), evidence=True)
            # Arithmetic over many samples; other requests go on meanwhile.
            saying = said_of(moment, said, await asyncio.to_thread(picture, moment))
        frozen = await self._frozen(moment, tenant_id, present, kept) if present else None
        was_told = [await self._compared(moment, record, said, tenant_id) for record in moment.told]
        freeze = "" if frozen is None else f"{frozen.sentence} "
        text = _GONE if saying is None else saying.sentence
        differing = [one for one in was_told if one.differs]
        named = f"{differing[0].replica}: " if len(was_told) > 1 and differing else ""
        differs = f" {named}{differing[0].differs}" if differing else ""
        return out.ExplanationOut(
            monitor=name,
            at=instant(moment.at_ms),
            now=instant(moment.now_ms),
            sentence=f"{text} {freeze}{told_sentence(moment.told, moment.before, moment.at_ms)}{differs}",
            registration=registration_of(moment),
            frozen=frozen,
            samples_say=saying,
            was_told=was_told,
            told_before=None if moment.before is None else decision_of(moment.before),
            decisions=[decision_of(record) for record in moment.decisions],
            notes=notes_of(moment, saying),
            lag=lag_of_time(moment),
            threshold=moment.policy.lag_threshold if moment.policy.metric is Metric.LAG else None,
            of_total=moment.policy.persistence_scope is PersistenceScope.TOTAL,
        )

    async def _say(self, ask: Ask, partial: str, *, evidence: bool) -> Said:
        """By the code that answers KEDA, with the samples until then."""
        (judgement,) = await self._verdicts.judge([ask], evidence=evidence)
        if partial:
            judgement = by_a_part(judgement, ask.policy)
        unknown = judgement.verdict is Verdict.UNKNOWN and not partial
        hold = await self._verdicts.hold(ask, judgement) if unknown else None
        return Said(judgement, told(judgement, ask.policy, hold))

    async def _frozen(self, moment: Moment, tenant_id: int, present: Sequence[Freeze], kept: Kept) -> FrozenOut:
        """What a monitor under these freezes answers."""
        if moment.partial_at(moment.at_ms):
            return frozen_of(present, None)
        ask = Ask(tenant_id, tuple(sorted(moment.topics)), moment.policy)
        return frozen_of(present, await frozen_answer(self._verdicts, ask, present, kept))

    async def _compared(self, moment: Moment, record: Record, said: Said | None, tenant_id: int) -> out.ToldThen:
        """A record, and why the samples say something else."""
        facts = decision_of(record).model_dump()
        if said is None or agrees(record, said.told):
            return out.ToldThen(**facts, agrees=None if said is None else True)
        version, topics = moment.version_known(record), moment.topics_at(record.told_ms)
        same = moment.policy_of(version) == moment.policy and topics == moment.topics
        then = None
        if moment.kept_ms is None or record.told_ms >= moment.kept_ms:
            policy = moment.policy_of(version, record.overrides)
            asked = Ask(tenant_id, tuple(sorted(topics)), policy, record.told_ms, record.told_ms)
            then = await self._say(asked, moment.partial_at(record.told_ms), evidence=False)
        whys: list[Why] = reasons(record, said, then, same_policy=same)
        differs = why_sentence(whys, record, About(moment.at_ms, moment.version.version))
        return out.ToldThen(**facts, agrees=False, why=[why.value for why in whys], differs=differs)
