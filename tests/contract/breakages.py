"""Ways to break the verdict's SQL, each a plausible slip: what is replaced in which statement, and by what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Breakage:
    """One slip. `old` is a piece of the statement's text that occurs exactly once."""

    name: str
    statement: str
    old: str
    new: str


def _full(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "judge_full", old, new)


def _fast(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "judge_fast", old, new)


def _gate(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "part_gate", old, new)


BREAKAGES = (
    _full("strictness: a sample at the threshold goes on", "or s.before_lag <= a.lag_threshold\n", "or s.before_lag < a.lag_threshold\n"),
    _full("strictness: the newest lag at the threshold", "where c.lag > a.lag_threshold\n", "where c.lag >= a.lag_threshold\n"),
    _full("strictness: a total at the level", "n.total > n.level as above", "n.total >= n.level as above"),
    _full("sustain: longer than, not as long as", "k.fresh and k.span >= a.sustain_time", "k.fresh and k.span > a.sustain_time"),
    _full("freshness: stale islands scale", "bool_or(k.fresh and k.span", "bool_or(k.span"),
    _full("freshness: the exact age is stale", ">= a.now_at - a.stale_time as fresh,\n            case", "> a.now_at - a.stale_time as fresh,\n            case"),
    _full("freshness: a stale total decides", "coalesce(l.fresh and l.above and l.span", "coalesce(l.above and l.span"),
    _full("gap: the exact distance is one", "s.ts - s.before_ts > a.gap_time", "s.ts - s.before_ts >= a.gap_time"),
    _full("gap: never one", "s.ts - s.before_ts > a.gap_time", "false"),
    _full("bound: reaching the threshold bridges", "s.lag - (s.ending - s.before_ending) <= a.lag_threshold", "s.lag - (s.ending - s.before_ending) < a.lag_threshold"),
    _full("bound: production is forgotten", "s.lag - (s.ending - s.before_ending) <= a.lag_threshold", "s.lag <= a.lag_threshold"),
    _full("bound: nothing disturbs it", "and (s.disturbed or s.lag", "and (s.lag"),
    _full(
        "bound: rewinds are overlooked",
        "or o.position < lag(o.position) over neighbours\n                or o.flag & 1 <> lag(o.flag) over neighbours & 1\n                or o.flag & 12 <> 0",
        "or o.flag & 1 <> lag(o.flag) over neighbours & 1\n                or o.flag & 4 <> 0",
    ),
    _full("bound: resets are overlooked", "or o.flag & 12 <> 0", "or o.flag & 8 <> 0"),
    _full("bound: a first commit is overlooked", "or o.flag & 1 <> lag(o.flag) over neighbours & 1\n", "\n"),
    _full("bound of totals: production is forgotten", "greatest(v.lag - (newer.ending - older.ending), 0)", "v.lag"),
    _full("bound of totals: none below 0 is raised", "greatest(v.lag - (newer.ending - older.ending), 0)", "v.lag - (newer.ending - older.ending)"),
    _full("holes: carried samples are of now", "n.ts - coalesce(case when p.lag is null then p.carried_age else 0 end, 0) * interval '1 millisecond' as ts", "n.ts as ts"),
    _full("trailing: the first island of the lookback", "c.ts - max(s.ts) as span", "c.ts - min(s.ts) as span"),
    _full("boundedness: calm before a gap", "(s.before_lag <= a.lag_threshold and s.ts - s.before_ts <= a.gap_time)", "(s.before_lag <= a.lag_threshold)"),
    _full("boundedness: births are overlooked", "s.flag & 80 <> 0", "s.flag & 64 <> 0"),
    _full("boundedness: open islands are calm", "bool_or(not k.bounded and k.span < a.sustain_time) as open", "false as open"),
    _full("boundedness of totals: calm before a gap", "(k.before_total <= k.level and k.at - k.before_at <= a.gap_time)", "(k.before_total <= k.level)"),
    _full("boundedness of totals: births are overlooked", "k.all_born or (", "("),
    _full("resets: no new island", "or s.flag & 64 <> 0", ""),
    _full("births: samples before them count", "(o.birth is null or o.ts >= o.birth) and (u.at is null or o.ts > u.at)", "true"),
    _full("scope: partitions outside the limitation", "where coalesce(p.flag, 0) & 32 = 0", "where true"),
    _full("scope: an absent topic hides the others", "when f.absent_targets = f.targets then", "when f.absent_targets > 0 then"),
    _full("totals: lower bounds pass for sums", "where t.exact or v.total > l.level", "where true"),
    _full("totals: lower bounds never count", "where t.exact or v.total > l.level", "where t.exact"),
    _full("totals: a stale partition counts", "coalesce(g.sample_ts >= g.at - a.gap_time, false) as counted", "g.sample_ts is not null as counted"),
    _full("uncommitted: latest reads from the start", "case when coalesce(r.flag, 0) & 1 <> 0 and not a.earliest then 0 else r.stored end as lag", "r.stored as lag"),
    _full("window: nothing before the lookback", "w.ts < i.at - a.lookback_time", "false"),
    _full("cap: part of a replica", "ceil(v.partitions / a.per_replica::float8)", "floor(v.partitions / a.per_replica::float8)"),
    _full("cap: idle consumers are not asked about", "when a.allow_idle then v.total::float8", "when false then v.total::float8"),
    _full("floor: the value falls with missing partitions", "case when v.incomplete then ceil(", "case when false then ceil("),
    _full("floor: members need not be known", "when f.lasted and f.incomplete and f.members is null then 'members_unknown'", ""),
    _full("missing: calm without a sample", "when f.missing > 0 then 'missing'", ""),
    _full("members: a reading of 180 s is too old", "n.members_age <= 180000", "n.members_age < 180000"),
    _full("work: the edge of its time", "> (select max(m.ts) from newest as m) - a.work_time", ">= (select max(m.ts) from newest as m) - a.work_time"),
    _full("claim: inactive without knowing", "f.works or (f.known and f.backlog_told)", "f.works or f.backlog_told"),
    _full("claim: inactive with open backlog", "f.works or (f.known and f.backlog_told)", "f.works or f.known"),
    _full("claim: known from the edge on", "<= (select max(m.ts) from newest as m) - a.work_time", "< (select max(m.ts) from newest as m) - a.work_time"),
    _full("backlog: waits with members too", "(i.members is distinct from 0 or b.span >= a.activation_time)", "(b.span >= a.activation_time)"),
    _full("waking: members are there", "coalesce(i.members = 0 and b.fresh", "coalesce(b.fresh"),
    _fast("fast, strictness", "bool_and(k.lag > a.lag_threshold)", "bool_and(k.lag >= a.lag_threshold)"),
    _fast("fast, gap: none is seen", "<= a.gap_time, a.sustain = 0)", "is not null, a.sustain = 0)"),
    _fast("fast, resets and births: no new island", "and not coalesce(bool_or(k.begins) filter (where k.ts > k.anchor), false)", ""),
    _fast("fast, holes: an incomplete round proves calm", "and bool_and(k.complete) filter (where k.ts >= k.anchor)", ""),
    _fast("fast, sustain: short islands by the exact time", "> max(k.ts) - a.sustain_time", ">= max(k.ts) - a.sustain_time"),
    _gate("gate, strictness", "case when a.by_total then c.total else c.greatest_lag end > a.lag_threshold as hot", "case when a.by_total then c.total else c.greatest_lag end > a.lag_threshold + 1 as hot"),
    _gate("gate, freshness: holes are overlooked", "c.oldest >= a.now_at - a.stale_time and", ""),
    _gate("gate, missing: never sampled is calm", "c.whole and c.never = 0 and", "c.whole and"),
    _gate("gate, scope: rounds of different times", "min(n.ts) = max(n.ts) and", ""),
    _gate("gate, work: the edge of its time", "c.moved_at > c.at - a.work_time", "c.moved_at >= c.at - a.work_time"),
    _gate("gate, claim: one known target is enough", "when count(n.known_age) = count(*) then max(", "when true then max("),
)  # fmt: skip
