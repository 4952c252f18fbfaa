"""`ServedCollection`: a collection that is being served; its queries share a bandit, and know who is like whom."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from zoomrank.documents import Collection
from zoomrank.errors import UnknownDocumentError, ZoomrankError
from zoomrank.numbers import Array
from zoomrank.rankers.slot_bandits import check_eligible
from zoomrank.service.neighbours import About, Neighbours
from zoomrank.service.refusals import NotFoundError, UnusableError
from zoomrank.service.settings import LONGEST_QUERY, Settings
from zoomrank.service.storage.store_reader import StoredCollection
from zoomrank.spaces import DocumentId, Eligible

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_DESCRIBED = 10_000  # documents
_REMEMBERED = 64  # sets of eligible documents: pages ask for the same few again and again


class ServedCollection:
    """Documents, settings, and how to speak of both."""

    def __init__(self, stored: StoredCollection, settings: Settings, collection: Collection) -> None:
        self.stored = stored
        self.id, self.name = stored.id, stored.name
        self.settings = settings
        self.collection = collection
        self.tree = collection.tree
        self.bandit = self.settings.bandit(self.tree)
        self.neighbours = None if settings.similar == "off" else Neighbours(settings.similar, self.bandit)
        self._eligible = lru_cache(_REMEMBERED)(self._find_eligible)
        self.document = lru_cache(_DESCRIBED)(self._describe)  # what is shown is mostly what was shown before

    def query(self, asked: str) -> str:
        """The query that somebody asks, in the one spelling that all of them have, if it can be one."""
        query = self.settings.folded(asked)
        if not 1 <= len(query) <= LONGEST_QUERY:
            raise UnusableError(
                f"A query has 1 to {LONGEST_QUERY} letters when case, spaces and Unicode forms are folded; "
                f"this one has {len(query)}."
            )
        if not query.strip():
            raise UnusableError("A query has something besides spaces.")
        return query

    def about(self, said: About | None) -> str | None:
        """What a query says of itself, as JSON, if that is something that can be said here."""
        if self.neighbours is not None:
            return self.neighbours.checked(said)
        if said is not None:
            raise UnusableError("Queries of this collection learn alone (`similar` is off): leave `about` out.")
        return None

    def eligible(
        self, only: Sequence[DocumentId] | None, excluded: Sequence[DocumentId] | None, slots: int
    ) -> Eligible | None:
        """The documents that a request allows, of which there are enough for its slots; None if it allows all."""
        if only is None and not excluded:
            return None
        try:
            allowed = self._eligible(None if only is None else tuple(only), tuple(excluded or ()))
            check_eligible(self.bandit, allowed, slots)  # here already, so that no learner is made in vain
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        return allowed

    def _find_eligible(self, only: tuple[DocumentId, ...] | None, excluded: tuple[DocumentId, ...]) -> Eligible:
        ids = self.tree.documents
        allowed = Eligible.everything(ids) if only is None else Eligible.only(ids, only)
        return allowed.without(excluded) if excluded else allowed

    def describe(self, positions: Array) -> list[dict[str, Any]]:
        """Documents as a page shows them; not to be changed, since others are shown the same."""
        return [self.document(position) for position in positions.tolist()]

    def _describe(self, position: int) -> dict[str, Any]:
        titles, urls = self.collection.titles, self.collection.urls
        return {
            "id": self.tree.documents[position],
            "title": titles[position] if titles is not None else "",
            "url": urls[position] if urls is not None else "",
        }

    def position_of(self, named: str) -> int:
        """The position of a document by its id, as an address has it; NotFoundError if there is none."""
        ids = self.tree.documents
        wanted: DocumentId = named
        if not isinstance(ids[0], str):  # all ids of a collection are of one kind
            wanted = int(named) if _NUMBER.fullmatch(named) else None
        try:
            return ids.position(wanted)
        except UnknownDocumentError:
            raise NotFoundError(f"There is no document “{named}” in “{self.name}”, or no more.") from None

    def title(self, position: int) -> str:
        """What a document is called: its title, or else its id."""
        known = self.document(position)
        return known["title"] or str(known["id"])

    def path(self, position: int) -> list[str]:
        """The categories of a document, from the root down; empty if they have no names."""
        names, leaf = self.tree.names, int(self.tree.shape.leaf[position])
        if names is None:
            return []
        return [names[up] for up in reversed(list(self.tree.ancestors(leaf))) if up != leaf and names[up]]

    def label(self, node: int) -> str:
        """A short name of a part of the tree."""
        shape = self.tree.shape
        first, end = int(shape.first_document[node]), int(shape.end_document[node])
        if end - first == 1 and int(shape.leaf[first]) == node:
            return self.title(first)
        if node == 0:
            return self.name
        return self.tree.names[node] if self.tree.names is not None else f"{end - first} documents"
