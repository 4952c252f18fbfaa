"""What several routes take in their path or after the question mark, and how they refuse."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query

from zoomrank import wire
from zoomrank.service.http import schema

CollectionName = Annotated[schema.CollectionName, Path()]
CopyName = Annotated[schema.CopyName, Path()]
CopyLookedInto = Annotated[schema.CopyName | None, Query()]
QueryText = Annotated[schema.QueryText, Query()]
Seconds = Annotated[int, Query(ge=10, le=90 * 86_400)]
Points = Annotated[int, Query(ge=1, le=1000)]
Offset = Annotated[int, Query(ge=0, le=2**40)]
Limit = Annotated[int, Query(ge=1, le=1000)]


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Refusals that a route documents."""
    return {status: {"model": wire.ErrorResponse} for status in statuses}
