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


def _time(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "judge_time", old, new)


def _gate(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "part_gate", old, new)


def _time_lags(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "part_time_lags", old, new)


def _stuck(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "part_stuck", old, new)


def _recovering(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "part_recovering", old, new)


def _capped(name: str, old: str, new: str) -> Breakage:
    return Breakage(name, "part_capped", old, new)


BREAKAGES = (
    _full("strictness: a sample at the threshold goes on", "or s.previous_amount <= a.level\n", "or s.previous_amount < a.level\n"),
    _full("strictness: the newest lag at the threshold", "where c.amount > a.level and not", "where c.amount >= a.level and not"),
    _full("strictness: a total at the level", "n.total > n.level as above", "n.total >= n.level as above"),
    _full("sustain: longer than, not as long as", "bool_or(k.fresh and k.span >= a.sustain_time)", "bool_or(k.fresh and k.span > a.sustain_time)"),
    _full("freshness: stale islands scale", "bool_or(k.fresh and k.span", "bool_or(k.span"),
    _full("freshness: the exact age is stale", ">= a.now_at - a.stale_time as fresh,\n            case", "> a.now_at - a.stale_time as fresh,\n            case"),
    _full("freshness: a total of nothing fresh scales", "coalesce(p.total > p.stuck_lag, p.total > 0, false)\n                        or", "true or"),
    _full("freshness: a stale total decides", "coalesce(l.fresh and l.above and l.span", "coalesce(l.above and l.span"),
    _full("gap: the exact distance is one", "s.ts - s.previous_ts > a.gap_time\n", "s.ts - s.previous_ts >= a.gap_time\n"),
    _full("gap: never one", "s.ts - s.previous_ts > a.gap_time\n", "false\n"),
    _full("bound: reaching the threshold bridges", "end <= a.level", "end < a.level"),
    _full("bound: production is forgotten", "else s.lag - (s.ending - s.previous_ending)\n", "else s.lag\n"),
    _full("bound: nothing disturbs it", "s.disturbed\n                        or case", "case"),
    _full(
        "bound: rewinds are overlooked",
        "or o.position < lag(o.position) over neighbors\n                or o.flag & :flag.UNCOMMITTED <> lag(o.flag) over neighbors & :flag.UNCOMMITTED\n                or o.flag & (:flag.RESET | :flag.REWIND) <> 0",
        "or o.flag & :flag.UNCOMMITTED <> lag(o.flag) over neighbors & :flag.UNCOMMITTED\n                or o.flag & :flag.RESET <> 0",
    ),
    _full("bound: resets are overlooked", "or o.flag & (:flag.RESET | :flag.REWIND) <> 0", "or o.flag & :flag.REWIND <> 0"),
    _full("bound: a first commit is overlooked", "or o.flag & :flag.UNCOMMITTED <> lag(o.flag) over neighbors & :flag.UNCOMMITTED\n", "\n"),
    _full("bound of totals: production is forgotten", "greatest(v.lag - (newer.ending - older.ending), 0)", "v.lag"),
    _full("bound of totals: none below 0 is raised", "greatest(v.lag - (newer.ending - older.ending), 0)", "v.lag - (newer.ending - older.ending)"),
    _full("holes: carried samples are of now", "n.ts - coalesce(case when p.lag is null then p.carried_age else 0 end, 0) * interval '1 millisecond' as ts", "n.ts as ts"),
    _full("trailing: the first island of the lookback", "c.ts - max(s.ts) as span", "c.ts - min(s.ts) as span"),
    _full("boundedness: calm before a gap", "                and s.ts - s.previous_ts <= a.gap_time\n            )", "            )"),
    _full("boundedness: births are overlooked", "s.flag & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0", "s.flag & :flag.RESET_BEGINS <> 0"),
    _full("boundedness: open islands are calm", "bool_or(not k.start_known and k.span < a.sustain_time) as open", "false as open"),
    _full("boundedness of totals: calm before a gap", "(k.previous_total <= k.level and k.at - k.previous_at <= a.gap_time)", "(k.previous_total <= k.level)"),
    _full("boundedness of totals: births are overlooked", "k.all_first_seen or (", "("),
    _full("resets: no new island", "or s.flag & :flag.RESET_BEGINS <> 0", ""),
    _full("births: samples before them count", "(o.first_seen_at is null or o.ts >= o.first_seen_at) and (u.at is null or o.ts > u.at)", "true"),
    _full("scope: partitions outside the limitation", "where coalesce(p.flag, 0) & :flag.EXCLUDED = 0", "where true"),
    _full("scope: an absent topic hides the others", "when f.absent_targets = f.targets then", "when f.absent_targets > 0 then"),
    _full("totals: lower bounds pass for sums", "where t.exact or v.total > l.level", "where true"),
    _full("totals: lower bounds never count", "where t.exact or v.total > l.level", "where t.exact"),
    _full("totals: a stale partition counts", "coalesce(g.sample_ts >= g.at - a.gap_time, false) as counted", "g.sample_ts is not null as counted"),
    _full("uncommitted: latest reads from the start", "case when coalesce(r.flag, 0) & :flag.UNCOMMITTED <> 0 and not a.earliest then 0 else r.stored end as lag", "r.stored as lag"),
    _full("window: nothing before the lookback", "w.ts < i.at - a.lookback_time", "false"),
    _stuck("stuck: longer than, not as long as", "having max(k.ts) - min(k.ts) >= a.stuck_time", "having max(k.ts) - min(k.ts) > a.stuck_time"),
    _stuck("stuck: members are not asked about", "s.lag <= 0 or not s.running", "s.lag <= 0"),
    _stuck("stuck: no lag is no break", "s.lag <= 0 or not s.running", "not s.running"),
    _full("stuck: a reading of 180 s is too old", "w.members_age <= :limit.MEMBERS_MAX_AGE_MS", "w.members_age < :limit.MEMBERS_MAX_AGE_MS"),
    _stuck("stuck: the broken sample counts", "k.ts > coalesce(k.broken_at", "k.ts >= coalesce(k.broken_at"),
    _stuck("stuck: the sample that moved does not count", "k.ts >= coalesce(k.moved_at", "k.ts > coalesce(k.moved_at"),
    _stuck("stuck: commits may move", "or not (\n                            s.flag & :flag.LOST <> 0", "or false and not (\n                            s.flag & :flag.LOST <> 0"),
    _stuck("stuck: a gap is no break", "s.ts - s.previous_ts > a.gap_time\n                            and (s.disturbed", "false and (s.disturbed"),
    _stuck("stuck: nothing bridges a gap", "and (s.disturbed or s.lag - (s.ending - s.previous_ending) <= 0)", ""),
    _stuck("stuck: lost to retention is movement", "                            s.flag & :flag.LOST <> 0\n                            or s.flag & s.previous_flag", "                            s.flag & s.previous_flag"),
    _stuck("stuck: without commits is movement", "or s.flag & s.previous_flag & :flag.UNCOMMITTED <> 0\n", "\n"),
    _stuck("stuck: lost messages are overlooked", "(s.position = s.previous_position and (s.flag | s.previous_flag) & :flag.LOST = 0)", "s.position = s.previous_position"),
    _stuck("stuck: another topic id is overlooked", "s.epoch <> s.previous_epoch\n                        or", ""),
    _full("stuck: it is judged all the same", "where c.amount > a.level and not c.is_stuck", "where c.amount > a.level"),
    _full("stuck: the total counts it", "case when t.part is null then s.lag else 0 end as lag", "s.lag"),
    _full("stuck: the value counts it", "else (coalesce(p.total, 0) - coalesce(p.stuck_lag, 0))::numeric", "else coalesce(p.total, 0)::numeric"),
    _full("stuck: it lags", "where c.fresh and c.lag > 0 and not c.is_stuck", "where c.fresh and c.lag > 0"),
    _full("lagging: stale samples lag", "where c.fresh and c.lag > 0 and", "where c.lag > 0 and"),
    _time_lags("time lag: an end at the position has passed it", "order by e.offset_at desc, e.is_end\n", "order by e.offset_at desc, e.is_end desc\n"),
    _full("time lag: at least is told", "and w.upper is null as undetermined,\n            coalesce(w.lower", "and false as undetermined,\n            coalesce(w.lower"),
    _full("time lag: begins after at least", "and not coalesce(s.previous_undetermined, false)", ""),
    Breakage("time lag: read when it was stamped", "part_bounds", "greatest(p.new_age - p.answered, 0) as lower", "greatest(p.new_age, 0) as lower"),
    Breakage("time lag: the older end was read at its stamp", "part_bounds", "greatest(p.old_age - p.previous_asked, p.new", "greatest(p.old_age, p.new"),
    Breakage("time lag: a line from stamp to stamp", "part_bounds", "2 * p.new_age - p.asked - p.answered as new_twice", "2 * p.new_age as new_twice"),
    _time_lags("time lag: the last end that passed", "min(e.facts) over (", "max(e.facts) over ("),
    _time_lags("time lag: falls of the end are overlooked", "or m.ending < lag(m.ending) over", "or false and m.ending < lag(m.ending) over"),
    _time_lags("time lag: another topic id is overlooked", "or m.epoch <> lag(m.epoch) over (partition by m.target, m.part order by m.ts),", ","),
    _time_lags("time lag: what a round does not name goes on", "c.part > cardinality(h.ends) as starts_series", "false as starts_series"),
    _time_lags("time lag: the round at its edge is lost", "r.ts >= f.since and", "r.ts > f.since and"),
    _time_lags("time lag: history from too near", "where coalesce(h.ends[p.part] > p.position, true)", "where coalesce(h.ends[p.part] > p.position + 2, true)"),
    _full("time lag: no bridge over a gap", "when a.by_time then s.amount - (extract(epoch from s.ts - s.previous_ts) * 1000)::bigint", "when a.by_time then 0"),
    _full("time lag: time passes in no gap", "when a.by_time then s.amount - (extract(epoch from s.ts - s.previous_ts) * 1000)::bigint", "when a.by_time then s.amount"),
    _full("time lag: the value is the bound", "coalesce(z.estimate, 0)::numeric", "coalesce(z.lower, 0)::numeric"),
    _full("time lag: for one replica", "* greatest((coalesce(i.members, 0) + a.per_replica - 1) / a.per_replica, 1)", "* 1"),
    _full("time lag: members need not be known", "(f.incomplete or a.by_time)", "(f.incomplete)"),
    _full("time lag: of any partition", "where a.by_time and c.fresh and not c.is_stuck", "where a.by_time"),
    _recovering("draining: two samples make a line", "l.n >= :limit.RECOVERY_MIN_SAMPLES", "l.n >= 2"),
    _recovering("draining: the rise counts", "case when e.t >= e.peak_t then e.lag end as lag,\n                        case when e.t >= e.peak_t then e.t end as t", "e.lag, e.t"),
    _recovering("draining: from the first of equal peaks on", "k.lag desc nulls last, k.t desc", "k.lag desc nulls last, k.t"),
    _recovering("draining: a moment makes a line", "and l.duration * 4 >= a.sustain\n", ""),
    _recovering("draining: at the threshold is too late", "<= a.lag_threshold * l.n * l.spread as recovers", "< a.lag_threshold * l.n * l.spread as recovers"),
    _recovering("draining: now, not soon", "(l.n * a.drain - l.sum_t)", "(-l.sum_t)"),
    _recovering("draining: the edge of its samples", "case when o.ts >= i.at - a.sustain_time then o.lag", "case when o.ts > i.at - a.sustain_time then o.lag"),
    _full("draining: one of them is enough", "bool_and(d.recovers) as recovering", "bool_or(d.recovers) as recovering"),
    _recovering("draining: islands that did not last count", "and k.fresh and k.span >= a.sustain_time\n        union", "and k.fresh\n        union"),
    _full("draining: missing partitions are overlooked", "i.measured = i.targets and p.missing = 0, false)", "true, false)"),
    _full("draining: members need not be known", "coalesce(q.recovering and i.members is not null and", "coalesce(q.recovering and"),
    _full("draining: without members nothing", "greatest((v.members + a.per_replica - 1) / a.per_replica, 1) * a.target_milli", "(v.members + a.per_replica - 1) / a.per_replica * a.target_milli"),
    _capped("cap: part of a replica", "(v.partitions + a.per_replica - 1) / a.per_replica", "v.partitions / a.per_replica"),
    _capped("cap: idle consumers are not asked about", "case when not a.allow_idle then", "case when true then"),
    _capped("even split: any number", "mod(r.most, d.replicas) = 0 and", ""),
    _capped("even split: too few", "d.replicas * a.target_milli >= v.amount_milli", "(d.replicas + 1) * a.target_milli > v.amount_milli"),
    Breakage("even split: the target as a float", "part_asks", "a.target_lag::numeric * 1000 as", "(a.target_lag + 1e-10)::numeric * 1000 as"),
    _capped("even split: of partitions, not replicas", "mod(r.most, d.replicas)", "mod(v.partitions, d.replicas)"),
    _capped("lagging cap: part of a replica", "(v.lagging + a.per_replica - 1)", "v.lagging"),
    _capped("lagging cap: not asked about", "when a.limit_lagging then", "when true then"),
    _full("floor: the value falls with missing partitions", "case when v.incomplete then (v.members + a.per_replica - 1) / a.per_replica * a.target_milli end", "0"),
    _full("floor: members need not be known", "when f.is_sustained and (f.incomplete or a.by_time) and f.members is null then 'members_unknown'", ""),
    _full("missing: calm without a sample", "when f.missing > 0 then 'missing'", ""),
    _full("members: a reading of 180 s is too old", "n.members_age <= :limit.MEMBERS_MAX_AGE_MS", "n.members_age < :limit.MEMBERS_MAX_AGE_MS"),
    _full("work: the edge of its time", "> (select max(m.ts) from newest_rounds as m) - a.work_time", ">= (select max(m.ts) from newest_rounds as m) - a.work_time"),
    _full("claim: inactive without knowing", "f.progresses or (f.covered and f.backlog_determined)", "f.progresses or f.backlog_determined"),
    _full("claim: inactive with open backlog", "f.progresses or (f.covered and f.backlog_determined)", "f.progresses or f.covered"),
    _full("claim: known from the edge on", "<= (select max(m.ts) from newest_rounds as m) - a.work_time", "< (select max(m.ts) from newest_rounds as m) - a.work_time"),
    _full("backlog: waits with members too", "(i.members is distinct from 0 or b.span >= a.activation_time)", "(b.span >= a.activation_time)"),
    _full("waking: members are there", "i.members = 0 and b.fresh and", "b.fresh and"),
    _full("waking: a stale sample proves", "\n                and p.activity_total > a.activation_lag,", ","),
    _full("bound: an end that fell is overlooked", "o.ending < lag(o.ending) over neighbors\n                or o.position", "o.position"),
    _full("bound: another topic id is overlooked", "\n                or o.epoch <> lag(o.epoch) over neighbors,", ","),
    _full("bound of totals: disturbances are overlooked", "and older.disturbances = newer.disturbances", ""),
    _full("bound of totals: an unseen partition proves", "and newer.counted and older", "and older"),
    _full("window: the round at its edge is lost", "w.ts >= i.at - a.lookback_time and w.ts <= a.until", "w.ts > i.at - a.lookback_time and w.ts <= a.until"),
    _full("window: the round at its edge counts twice", "w.tenant_id = a.tenant_id and w.ts < i.at - a.lookback_time", "w.tenant_id = a.tenant_id and w.ts <= i.at - a.lookback_time"),
    _full("totals: a lower bound at the level", "where t.exact or v.total > l.level", "where t.exact or v.total >= l.level"),
    _full("totals: who is born later is missing", "bool_and(c.counted or coalesce(c.first_seen_at > c.at, false)) as exact", "bool_and(c.counted) as exact"),
    _full("totals: the exact age of a sample", "coalesce(g.sample_ts >= g.at - a.gap_time, false) as counted", "coalesce(g.sample_ts > g.at - a.gap_time, false) as counted"),
    _full("missing: a target without a round costs nothing", "i.measured < i.targets or coalesce(p.missing, 0) > 0 as incomplete", "coalesce(p.missing, 0) > 0 as incomplete"),
    _full("missing: calm with a target without a round", "when f.measured < f.targets then 'no_data'", ""),
    _full("members: of a target that is not in the newest round", "and n.ts = (select max(m.ts) from newest_rounds as m)\n                ))[1]", "\n                ))[1]"),
    _full("scope: an empty one is measured", "when f.partitions = 0 then 'nothing_to_measure'", ""),
    _full("scope: samples of before a topic was gone", "(u.at is null or o.ts > u.at)", "true"),
    _full("backlog: the exact time", "i.members is distinct from 0 or b.span >= a.activation_time", "i.members is distinct from 0 or b.span > a.activation_time"),
    _full("uncommitted: counts although it is to count 0", "when a.invalid_is_zero then 0\n                else least(r", "when false then 0\n                else least(r"),
    _full("uncommitted: counts more than 1", "else least(r.stored, 1)", "else r.stored"),
    _fast("fast, strictness", "bool_and(k.lag > a.lag_threshold)", "bool_and(k.lag >= a.lag_threshold)"),
    _fast("fast, gap: none is seen", "<= a.gap_time, a.sustain = 0)", "is not null, a.sustain = 0)"),
    _fast("fast, resets and births: no new island", "and not coalesce(bool_or(k.starts_series) filter (where k.ts > k.anchor), false)", ""),
    _fast("fast, holes: an incomplete round proves calm", "and bool_and(k.complete) filter (where k.ts >= k.anchor)", ""),
    _fast("fast, sustain: short islands by the exact time", "> max(k.ts) - a.sustain_time", ">= max(k.ts) - a.sustain_time"),
    _fast("fast, births: no new island", "& (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0 as starts_series", "& :flag.RESET_BEGINS <> 0 as starts_series"),
    _fast("fast, resets: no new island", "& (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0 as starts_series", "& :flag.FIRST_SEEN <> 0 as starts_series"),
    _fast("fast, draining: it is not asked about", "when h.is_sustained and a.drain > 0 then 'undecided'", ""),
    _fast("fast, stuck: it is not asked about", "not g.decidable or m.maybe_stuck", "not g.decidable"),
    Breakage("fast, stuck: lost messages are overlooked", "part_maybe_stuck", " or c.flag & :flag.LOST <> 0)", ")"),
    Breakage("fast, stuck: a hole proves movement", "part_maybe_stuck", "p.then_lag is null or p.then_ending", "p.then_ending"),
    Breakage("fast, stuck: of twice the time", "part_maybe_stuck", "s.ts <= n.ts - a.stuck_time", "s.ts <= n.ts - a.stuck_time * 2"),
    Breakage("fast, stuck: earliest moves by itself", "part_maybe_stuck", "a.earliest\n        or (", "("),
    _gate("gate, lagging: uncommitted ones under latest", "sum(n.lagging + case when a.earliest then n.none_lagging else 0 end)", "sum(n.lagging + n.none_lagging)"),
    _fast("fast, uncommitted: latest reads from the start", "and not a.earliest then 0\n                    else r.lags", "and false then 0\n                    else r.lags"),
    _fast("fast, trailing: the newest round need not name it", "having max(k.newest) = max(k.ts)", ""),
    _fast("fast, brief: partitions that appear", "w.complete and w.parts = first_value(w.parts) over newest_first\n            and", "w.complete and"),
    _fast("fast, brief: across a gap", "<= a.gap_time as too_short", "is not null as too_short"),
    _fast("fast, brief: of several targets", "and a.targets[2] is null", ""),
    _gate("gate, strictness", "> case when a.by_time then 0 else a.lag_threshold end as above_threshold", "> case when a.by_time then 0 else a.lag_threshold + 1 end as above_threshold"),
    _gate("gate, freshness: holes are overlooked", "c.oldest >= a.now_at - a.stale_time and", ""),
    _gate("gate, missing: never sampled is calm", "c.whole and c.never = 0 and", "c.whole and"),
    _gate("gate, scope: rounds of different times", "min(n.ts) = max(n.ts) and", ""),
    _gate("gate, work: the edge of its time", "c.progress_at > c.at - a.work_time", "c.progress_at >= c.at - a.work_time"),
    _gate("gate, claim: one known target is enough", "when count(n.known_age) = count(*) then max(", "when true then max("),
    _gate("gate, scope: an empty one is measured", "and sum(n.parts) > 0, false) as whole", ", false) as whole"),
    _gate("gate, gap: a sample beyond it is counted", "and c.oldest >= c.at - a.gap_time\n            as decidable", "as decidable"),
    _gate("gate, members: not known is none", "d.members is distinct from 0", "d.members > 0"),
    _gate("gate, members: a reading of 180 s is too old", "n.members_age <= :limit.MEMBERS_MAX_AGE_MS", "n.members_age < :limit.MEMBERS_MAX_AGE_MS"),
    _gate("gate, uncommitted: counts although it is to count 0", "when a.invalid_is_zero then 0 else", "else"),
    _gate("gate, uncommitted: counts more than 1", "else n.none_lagging end", "else n.none_total end"),
    _gate("gate, uncommitted: latest reads from the start", "sum(n.total_lag + case when a.earliest then n.none_total else 0 end)", "sum(n.total_lag + n.none_total)"),
    _gate("gate, freshness: the exact age is stale", "c.at < a.now_at - a.stale_time", "c.at <= a.now_at - a.stale_time"),
    _gate("gate, backlog: exactly the level", "d.progresses or (d.activity_total > a.activation_lag", "d.progresses or (d.activity_total >= a.activation_lag"),
    _gate("gate, claim: known from the edge on", "c.coverage_at <= c.at - a.work_time", "c.coverage_at < c.at - a.work_time"),
    _gate("gate, missing: a target without a round", "count(n.ts) = count(*) and min", "min"),
    _gate("gate, scope: a partition decides for the total", "case when a.by_total then c.total else c.greatest_lag end", "c.greatest_lag"),
    _time("time, strictness", "when w.lower_bound > a.level or not", "when w.lower_bound >= a.level + 1000 or not"),
    _time("time, members need not be known", "when h.is_sustained and g.members is null then 'unknown'", ""),
    _time("time, stuck: it is not asked about", "or m.maybe_stuck or w.is_determined", "or w.is_determined"),
    _time("time, told: holes and falls are overlooked", "or w.is_determined is not true then", "then"),
    _time("time, told: a fall is none", "and coalesce(p.ending >= p.previous_ending, true)", ""),
    _time("time, told: another topic id is none", "s.epoch = n.epoch and cardinality(s.ends) = cardinality(n.ends) as comparable", "true as comparable"),
    _time("time, told: holes of the newest round are none", "n.oldest_age = 0 and k.upper is not null", "k.upper is not null"),
    _time("time, sustain: samples at the threshold go on", "r.read_at < k.ts - a.level", "r.read_at <= k.ts - a.level"),
    _time("time, sustain: ends are read at the stamp", "s.ts + coalesce(s.ends_answered, 0) * interval '1 millisecond' as read_at", "s.ts as read_at"),
    _time("time, sustain: what came before a birth counts", "and not bool_or(k.removed or k.flag & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0)", "and not bool_or(k.flag & :flag.RESET_BEGINS <> 0)"),
    _time("time, sustain: what came before it was named again counts", "bool_or(k.removed or k.flag & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0)", "bool_or(k.flag & (:flag.FIRST_SEEN | :flag.RESET_BEGINS) <> 0)"),
    _time("time, sustain: a gap goes on", "<= a.gap_time, a.sustain = 0)", "is not null, a.sustain = 0)"),
    _time("time, value: for one replica", "* greatest((coalesce(g.members, 0) + a.per_replica - 1) / a.per_replica, 1) as amount_milli", "as amount_milli"),
    _time("time, value: of the longest by its bound", "w.estimate::numeric", "w.lower::numeric"),
    Breakage("hold, window: the instant at its edge is lost", "sample_times", "r.ts >= %(since)s", "r.ts > %(since)s"),
    Breakage("hold, window: the instant asked is lost", "sample_times", "r.ts <= %(until)s", "r.ts < %(until)s"),
)  # fmt: skip
