"""Routes of the service by subject: declarations only, no logic. Here: what they share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Depends, Header, Path, Query, Request

from zoomrank import wire
from zoomrank.service.http import schema
from zoomrank.service.http.fast_path import IDEMPOTENCY_KEY, caller_of
from zoomrank.service.rank_options import Caller


def _caller(
    request: Request,
    idempotency_key: Annotated[str | None, Header(pattern=f"^{IDEMPOTENCY_KEY}$")] = None,  # noqa: ARG001  (for the schema)
) -> Caller:
    return caller_of(request.scope)


CollectionName = Annotated[schema.ServedName, Path()]
CopyName = Annotated[schema.CopyName, Path()]
DocumentText = Annotated[str, Path(max_length=1000)]
ANY_DOCUMENT = wire.DOCUMENT.replace("{document}", "{document:path}")  # ids may contain slashes
CopyParameter = Annotated[schema.CopyName | None, Query()]
QueryText = Annotated[schema.QueryText, Query()]
RequestCaller = Annotated[Caller, Depends(_caller)]
Seconds = Annotated[int, Query(ge=10, le=90 * 86_400)]
Points = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=2**40)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Search = Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")]
Sort = Annotated[Literal["asked", "worst", "newest", "trend"], Query()]


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses that a route documents."""
    return {status: {"model": wire.ErrorResponse} for status in statuses}
