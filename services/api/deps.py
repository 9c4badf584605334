"""What the routers share of a request: the page that is wanted, the parts of the app."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from lagscale.domain.tenancy import is_name
from lagscale.errors import NotFound
from lagscale.store.registry.paging import MOST, Wanted
from lagscale.store.registry.versions import Outcome
from services.api.operations import Operations
from services.api.verdicts.evidence import Evidence


def _operations(request: Request) -> Operations:
    found: Operations = request.app.state.operations
    return found


def _evidence(request: Request) -> Evidence:
    found: Evidence = request.app.state.evidence
    return found


def _page(
    limit: Annotated[int, Query(ge=1, le=MOST, description="Items of one page.")] = 100,
    cursor: Annotated[str | None, Query(max_length=1000, description="`next` of the page before.")] = None,
) -> Wanted:
    return Wanted(limit, cursor)


def _tenant(tenant: Annotated[str, Path(description="The tenant's name.")]) -> str:
    return existing(tenant)


def existing(name: str) -> str:
    """The name from a URL; one that no object can have is answered like one that no object has.

    Raises:
        NotFound: no object can have it.
    """
    if not is_name(name):
        raise NotFound
    return name


def tag(response: Response, version: int) -> None:
    """Tell the version of the object in the answer."""
    response.headers["ETag"] = f'"{version}"'


def tell(response: Response, outcome: Outcome) -> None:
    """Tell whether it was created, and the version."""
    response.status_code = 201 if outcome.created else 200
    tag(response, int(outcome.row["version"]))


OperationsPart = Annotated[Operations, Depends(_operations)]
EvidencePart = Annotated[Evidence, Depends(_evidence)]
WantedPage = Annotated[Wanted, Depends(_page)]
Tenant = Annotated[str, Depends(_tenant)]
