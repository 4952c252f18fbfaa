"""Paths with special rules before the framework sees them, each declared once.

Ranking and feedback take the fast path. Access has special rules for them, for paths without keys, and for JSON bodies;
metrics count them by kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pydantic import BaseModel

from zoomrank import wire
from zoomrank.service.http import schema
from zoomrank.service.settings import NAME_PATTERN

_PARAMETER = re.compile(r"{(\w+)}")


@dataclass(frozen=True)
class RouteRule:
    """A path in the framework's notation."""

    path: str
    kind: str = "other"  # label in metrics
    is_ranking: bool = False  # a ranking, or feedback on one
    is_feedback: bool = False
    is_reading: bool = False  # a POST that changes nothing stored
    is_private: bool = False  # readable with an admin key only
    is_open: bool = False  # needs no key
    body: type[BaseModel] | None = None  # type of the JSON that is posted
    takes_lines: bool = False  # also accepts JSON lines

    @property
    def is_small(self) -> bool:
        """True if its bodies are small: all but those with documents."""
        return self.is_ranking or self.is_reading

    @property
    def pattern(self) -> re.Pattern[str]:
        """Regular expression of this path, with valid collection names."""
        return re.compile(_PARAMETER.sub(rf"(?P<\1>{NAME_PATTERN}(?:~{NAME_PATTERN}){{0,2}})", self.path))


RANK = RouteRule(wire.RANK, "rank", is_ranking=True, body=schema.RankRequest)
FEEDBACK = RouteRule(wire.FEEDBACK, "feedback", is_ranking=True, is_feedback=True, body=schema.FeedbackRequest)
FEEDBACK_BATCH = RouteRule(
    wire.FEEDBACK_BATCH, "feedback/batch", is_ranking=True, is_feedback=True, body=schema.BatchRequest
)
SEEN = RouteRule(wire.SEEN, "seen", is_ranking=True, is_feedback=True, body=schema.SeenRequest)
COPIES = RouteRule(wire.COPIES, "copies", is_reading=True, body=schema.CopyRequest)
COPY_RANK = RouteRule(wire.COPY_RANK, "copies", is_reading=True, body=schema.CopyRankRequest)
COPY_FEEDBACK = RouteRule(wire.COPY_FEEDBACK, "copies", is_reading=True, body=schema.BatchRequest)
COLLECTIONS = RouteRule(wire.COLLECTIONS, body=schema.NewCollection)
NEW_DOCUMENTS = RouteRule(wire.DOCUMENTS, body=schema.DocumentsRequest, takes_lines=True)
CHANGES = RouteRule(wire.CHANGES, body=schema.ChangesRequest, takes_lines=True)
VOID = RouteRule(wire.VOID, body=schema.VoidRequest)
EXPERIMENTS = RouteRule(wire.EXPERIMENTS, body=schema.NewExperiment)
STOP = RouteRule(wire.STOP, body=schema.StopRequest)
PROMOTE = RouteRule(wire.PROMOTE, body=schema.PromoteRequest)
EXPORT = RouteRule(wire.EXPORT, "export", is_private=True)
HEALTH = RouteRule(wire.HEALTH, "health", is_open=True)
READY = RouteRule(wire.READY, "ready", is_open=True)
PAGE = RouteRule("/", "page", is_open=True)
PAGE_FILE = RouteRule("/page/{file}", "page", is_open=True)

_CHANGES = (NEW_DOCUMENTS, CHANGES)
_COPIES = (COPIES, COPY_RANK, COPY_FEEDBACK)
_ALL = (
    *(RANK, FEEDBACK, FEEDBACK_BATCH, SEEN, *_COPIES, *_CHANGES, VOID, EXPORT, COLLECTIONS),
    *(EXPERIMENTS, STOP, PROMOTE),
    *(HEALTH, READY, PAGE, PAGE_FILE),
)
_ANY = re.compile("|".join(f"({_PARAMETER.sub('[^/]+', known.path)})" for known in _ALL))
_OTHER = RouteRule("")


def rule_for(path: str) -> RouteRule:
    """Return the rules of a request path, whatever its method and whether or not its names are valid."""
    found = _ANY.fullmatch(path)
    return _OTHER if found is None else _ALL[(found.lastindex or 0) - 1]
