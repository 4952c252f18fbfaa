"""Paths of which something must be known before the framework looks at them, each declared once.

Ranking and feedback take a fast path around it. Access has other rules for them, for what needs no key, and for what
takes JSON; metrics count them by kind.
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
class KnownPath:
    """A path, as the framework writes it."""

    path: str
    kind: str = "other"  # in metrics
    is_ranking: bool = False  # or feedback on one
    is_feedback: bool = False
    is_reading: bool = False  # though something is posted: it changes nothing that is kept
    is_private: bool = False  # what is read there is for those who own everything
    is_open: bool = False  # to everybody
    body: type[BaseModel] | None = None  # the JSON that is posted to it
    takes_lines: bool = False  # of JSON, too

    @property
    def is_small(self) -> bool:
        """Whether its bodies are: all but those that bring documents."""
        return self.is_ranking or self.is_reading

    @property
    def pattern(self) -> re.Pattern[str]:
        """This path, with a name that a collection may have where one is needed."""
        return re.compile(_PARAMETER.sub(rf"(?P<\1>{NAME_PATTERN}(?:~{NAME_PATTERN}){{0,2}})", self.path))


RANK = KnownPath(wire.RANK, "rank", is_ranking=True, body=schema.RankRequest)
FEEDBACK = KnownPath(wire.FEEDBACK, "feedback", is_ranking=True, is_feedback=True, body=schema.FeedbackRequest)
FEEDBACK_BATCH = KnownPath(
    wire.FEEDBACK_BATCH, "feedback/batch", is_ranking=True, is_feedback=True, body=schema.BatchRequest
)
SEEN = KnownPath(wire.SEEN, "seen", is_ranking=True, is_feedback=True, body=schema.SeenRequest)
COPIES = KnownPath(wire.COPIES, "copies", is_reading=True, body=schema.CopyRequest)
COPY_RANK = KnownPath(wire.COPY_RANK, "copies", is_reading=True, body=schema.CopyRankRequest)
COPY_FEEDBACK = KnownPath(wire.COPY_FEEDBACK, "copies", is_reading=True, body=schema.BatchRequest)
COLLECTIONS = KnownPath(wire.COLLECTIONS, body=schema.NewCollection)
NEW_DOCUMENTS = KnownPath(wire.DOCUMENTS, body=schema.DocumentsRequest, takes_lines=True)
CHANGES = KnownPath(wire.CHANGES, body=schema.ChangesRequest, takes_lines=True)
VOID = KnownPath(wire.VOID, body=schema.VoidRequest)
EXPERIMENTS = KnownPath(wire.EXPERIMENTS, body=schema.NewExperiment)
STOP = KnownPath(wire.STOP, body=schema.StopRequest)
PROMOTE = KnownPath(wire.PROMOTE, body=schema.PromoteRequest)
EXPORT = KnownPath(wire.EXPORT, "export", is_private=True)
HEALTH = KnownPath(wire.HEALTH, "health", is_open=True)
READY = KnownPath(wire.READY, "ready", is_open=True)
PAGE = KnownPath("/", "page", is_open=True)
PAGE_FILE = KnownPath("/page/{file}", "page", is_open=True)

_CHANGES = (NEW_DOCUMENTS, CHANGES)
_COPIES = (COPIES, COPY_RANK, COPY_FEEDBACK)
_ALL = (
    *(RANK, FEEDBACK, FEEDBACK_BATCH, SEEN, *_COPIES, *_CHANGES, VOID, EXPORT, COLLECTIONS),
    *(EXPERIMENTS, STOP, PROMOTE),
    *(HEALTH, READY, PAGE, PAGE_FILE),
)
_ANY = re.compile("|".join(f"({_PARAMETER.sub('[^/]+', known.path)})" for known in _ALL))
_OTHER = KnownPath("")


def known_path(path: str) -> KnownPath:
    """What is known of the path of a request, whatever its method and whether or not its names are good ones."""
    found = _ANY.fullmatch(path)
    return _OTHER if found is None else _ALL[(found.lastindex or 0) - 1]
