"""What the routers share of a request: the page that is wanted, the parts of the app."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response

from lagscale.domain.tenancy import is_name
from lagscale.errors import NotFound
from lagscale.store.registry.paging import MAX_PAGE_SIZE, PageRequest
from lagscale.store.registry.versions import WriteResult
from services.api.operations import Operations
from services.api.verdicts.reader import VerdictReader


def _get_operations(request: Request) -> Operations:
    part: Operations = request.app.state.operations
    return part


def _get_verdict_reader(request: Request) -> VerdictReader:
    part: VerdictReader = request.app.state.verdict_reader
    return part


def _read_page_request(
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Items of one page.")] = 100,
    cursor: Annotated[str | None, Query(max_length=1000, description="`next` of the page before.")] = None,
) -> PageRequest:
    return PageRequest(limit, cursor)


def _check_tenant_name(tenant: Annotated[str, Path(description="The tenant's name.")]) -> str:
    return check_name(tenant)


def check_name(name: str) -> str:
    """The name from a URL; one that no object can have is answered like one that no object has.

    Raises:
        NotFound: no object can have it.
    """
    if not is_name(name):
        raise NotFound
    return name


def set_etag(response: Response, version: int) -> None:
    """Tell the version of the object in the answer."""
    response.headers["ETag"] = f'"{version}"'


def set_status_and_etag(response: Response, outcome: WriteResult) -> None:
    """Tell whether it was created, and the version."""
    response.status_code = 201 if outcome.created else 200
    set_etag(response, int(outcome.row["version"]))


OperationsPart = Annotated[Operations, Depends(_get_operations)]
VerdictReaderPart = Annotated[VerdictReader, Depends(_get_verdict_reader)]
PageQuery = Annotated[PageRequest, Depends(_read_page_request)]
Tenant = Annotated[str, Depends(_check_tenant_name)]
