"""`?dryRun=true`: the answer is what a change would come to, from a transaction that is rolled back.

A module of its own because the routes of five folders share it.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request


def _read_dry_run(
    request: Request,
    dry_run: Annotated[
        bool,
        Query(alias="dryRun", description="Answer what the change would come to, and make no change."),
    ] = False,
) -> None:
    request.state.dry_run = dry_run


#: For a route whose caller's transactions are rolled back where the request says `dryRun`.
SUPPORTS_DRY_RUN = Depends(_read_dry_run)
