"""`RankOptions`: the options of a ranking, from the body of a request to the engine; and the caller who sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints, Tag

from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import (
    LONGEST_STEP,
    MOST_DIMENSIONS,
    MOST_NAMED,
    MOST_SLOTS,
    MOST_STEPS,
    DocumentName,
    Settings,
)
from zoomrank.service.errors import UnprocessableError
from zoomrank.spaces import DocumentId, Eligible


def _kind(about: Any) -> str | None:
    """Return the kind of a description of a query: a path as a text, the steps of one, or a vector."""
    if isinstance(about, list):
        return "steps" if about and isinstance(about[0], str) else "vector"
    return "path" if isinstance(about, str) else None


PathText = Annotated[str, StringConstraints(min_length=1, max_length=MOST_STEPS * (LONGEST_STEP + 3))]
PathStep = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_STEP)]
Path = Annotated[list[PathStep], Field(min_length=1, max_length=MOST_STEPS)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(min_length=1, max_length=MOST_DIMENSIONS)]
About = Annotated[
    Annotated[PathText, Tag("path")] | Annotated[Path, Tag("steps")] | Annotated[Vector, Tag("vector")],
    Discriminator(_kind, "about", "It is a path, as a text or as a list of its steps, or a vector of numbers"),
]
if TYPE_CHECKING:
    Ids = Sequence[DocumentId]  # lists of either kind of id
else:
    Ids = list[DocumentName]


class Caller(NamedTuple):
    """The sender of a request."""

    digest: bytes | None = None  # of the key with which it was let in
    idempotency_key: str | None = None  # under which the same request may be sent again


class RankOptions(BaseModel):
    """Options of a ranking; `http.schema.RankRequest` says what each is for."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: About | None = None
    slots: int | None = Field(default=None, ge=1, le=MOST_SLOTS)
    eligible: Ids | None = Field(default=None, max_length=MOST_NAMED)
    excluded: Ids | None = Field(default=None, max_length=MOST_NAMED)
    unknown: Literal["refuse", "skip"] = "refuse"
    fewer: bool = False
    order: Ids | None = Field(default=None, max_length=MOST_NAMED)
    visitor: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None

    def fingerprint(self, query: str) -> bytes:
        """Return all that a request asks for; a digest of it is in the log, so its form can never change."""
        among = (self.slots, self.eligible, self.excluded, self.about, self.unknown, self.fewer)
        return repr((query, *among, self.order, self.visitor)).encode()

    def without_order(self) -> RankOptions:
        """Return the same options without the caller's order."""
        return self.model_copy(update={"order": None})

    def resolve(self, version: ServedVersion, settings: Settings) -> ResolvedOptions:
        """Return the documents that the options allow in a version of the catalogue."""
        order, is_exact = self.order, settings.shows != "learned"
        if is_exact and settings.shows != "order":
            order = list(settings.shows)
        elif is_exact and order is None:
            raise UnprocessableError("This collection shows the order that you bring: send `order`.")
        positions = version.order(order)
        allowed = version.eligible(self.eligible, self.excluded, self.unknown == "skip")
        slots = version.fillable(allowed, settings.slots if self.slots is None else self.slots, self.fewer)
        return ResolvedOptions(slots, allowed, positions, is_exact)


DEFAULTS = RankOptions()


class ResolvedOptions(NamedTuple):
    """The documents that a ranking is chosen among, in a version of the catalogue."""

    slots: int  # that can be filled; 0 if no document may be shown
    allowed: Eligible | None  # None: all
    order: list[int] | None
    is_exact: bool  # True if the order is shown as it is
