"""Create the parameter of the verdict with every key. pre: replicas of the version before go on with `verdict_ask`."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("set local role lagscale_owner")
    # A type of its own: a record of the old one's length is still what a running replica sends.
    op.execute(
        """
        create type full_ask as (
          ask                int,           -- echoed in the answer
          tenant_id          int,
          targets            int[],
          upto               timestamptz,   -- NULL: every stored row counts
          judged_at          timestamptz,   -- NULL: the database's clock
          lag_threshold      bigint,        -- messages; seconds of time lag
          target_lag         float8,
          sustain            bigint,
          max_gap            bigint,
          stale_after        bigint,
          activation_lag     bigint,
          activation_sustain bigint,
          work               bigint,
          lookback           bigint,
          by_total           boolean,       -- persistenceScope: total
          earliest           boolean,       -- offsetResetPolicy: earliest
          invalid_is_zero    boolean,       -- scaleToZeroOnInvalidOffset
          allow_idle         boolean,
          per_replica        int,           -- consumersPerReplica
          limit_lagging      boolean,       -- limitToPartitionsWithLag
          even_split         boolean,       -- ensureEvenDistributionOfPartitions
          stuck_after        bigint,        -- 0: off
          drain              bigint,        -- 0: off
          by_time            boolean        -- metric: timeLag
        )
        """
    )
    op.execute("reset role")


def downgrade() -> None:
    raise NotImplementedError("Lagscale's migrations go forward only; restore a backup to go back.")
