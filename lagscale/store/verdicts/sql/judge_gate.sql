-- Judges each ask from the scalars of its targets' newest rows alone, where these can tell; else says "undecided".
-- Tenants: each ask names its tenant, and only that tenant's rows of its targets are read.
with
-- include part_asks
select
    a.ask,
    case
        when g.stale then 'unknown'
        when not g.decidable or g.above_threshold or not (g.is_active or g.is_idle or g.undetermined) then 'undecided'
        when g.undetermined then 'unknown'
        else 'calm'
    end as verdict,
    case
        when g.stale then 'stale'
        when g.undetermined then 'activity_untold'
        else 'no_breach'
    end as reason,
    case when g.is_active or g.is_idle then 0.0::float8 end as value,
    case when g.is_active then true when g.is_idle then false end as active,
    g.at,
    a.now_at,
    case when g.stale then 0 else g.total end as total,
    g.partitions,
    case when g.stale then g.partitions else 0 end as missing,
    g.stale as incomplete,
    case when g.stale then 0 else g.lagging end as lagging,
    g.members,
    g.absent
from asks as a
-- include part_gate
