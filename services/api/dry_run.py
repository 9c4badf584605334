"""`?dryRun=true`: what a change would come to, answered from a transaction that is undone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Query

from lagscale.store.registry.session import DRY_RUN
from services.api.auth.authenticator import Viewer


async def _set_dry_run(
    # Who calls is found out before: that a key was used is remembered, whatever it was used for.
    _caller: Viewer,
    dry_run: Annotated[
        bool,
        Query(alias="dryRun", description="Answer what the change would come to, and make no change."),
    ] = False,
) -> AsyncIterator[None]:
    token = DRY_RUN.set(dry_run)
    try:
        yield
    finally:
        DRY_RUN.reset(token)


#: For a route that can be asked what it would come to.
SUPPORTS_DRY_RUN = Depends(_set_dry_run)
