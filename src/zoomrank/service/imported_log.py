"""`ImportedLog`: an uploaded click log of another ranker: checked, counted, and read visit by visit."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, field
from itertools import islice
from typing import IO

import numpy as np

from zoomrank.documents.logged_impressions import impressions_of
from zoomrank.errors import ZoomrankError
from zoomrank.numbers import Array
from zoomrank.rankers.logged_visits import LoggedVisit, VisitReader
from zoomrank.service.refusals import UnprocessableError
from zoomrank.service.served_collection import ServedCollection

HELD_OUT = 10  # the last 1 in 10 visits
_PIECE = 2**20


@dataclass
class ImportedLog:
    """An open upload and what it contains."""

    served: ServedCollection
    file: IO[bytes]
    kind: str  # file extension
    unknown: str  # how to treat documents that the collection lacks
    digest: str = ""
    impressions: int = 0
    clicks: int = 0
    left_out: int = 0  # occurrences of unknown documents
    queries: set[str] = field(default_factory=set)
    looks_by_slot: list[int] = field(default_factory=list)
    clicks_by_slot: list[int] = field(default_factory=list)

    def check(self) -> None:
        """Read the whole log, so that errors are raised before anything is learned."""
        self.digest = self._digest()
        slots = self.served.settings.slots
        looks, clicks = [0] * slots, [0] * slots
        self.impressions = sum(1 for _ in self.visits())
        for visit in islice(self.visits(), self.first_held_out):
            for slot in range(len(visit.shown) if visit.click is None else visit.click + 1):
                looks[slot] += 1
            if visit.click is not None:
                clicks[visit.click] += 1
        for visit in self.visits():
            self.queries.add(visit.query)
            self.clicks += visit.click is not None
            self.left_out += visit.shown.count(-1)
        self.looks_by_slot, self.clicks_by_slot = looks, clicks
        if not self.impressions:
            raise UnprocessableError("The log contains no impressions.")

    @property
    def first_held_out(self) -> int:
        """Index of the first visit that is held out for evaluation."""
        return self.impressions - self.impressions // HELD_OUT

    @property
    def usual(self) -> Array:
        """Click rate per slot among visitors who look at it, before the held-out visits."""
        return (np.array(self.clicks_by_slot) + 0.5) / (np.array(self.looks_by_slot) + 1.0)

    def visits(self) -> Generator[LoggedVisit, None, None]:
        """Yield the visits in order, with normalized queries and document numbers."""
        edition = self.served.edition
        reader = VisitReader(edition.tree.documents, self.served.settings.slots, self.unknown)
        try:
            for visit in reader.visits(impressions_of(self.file, kind=self.kind)):
                yield visit._replace(query=self.served.query(visit.query), shown=edition.numbers(visit.shown))
        except ZoomrankError as error:
            if isinstance(error, UnprocessableError):
                raise
            raise UnprocessableError(str(error)) from error

    def _digest(self) -> str:
        digest = hashlib.blake2b(digest_size=16)
        self.file.seek(0)
        while piece := self.file.read(_PIECE):
            digest.update(piece)
        return digest.hexdigest()
