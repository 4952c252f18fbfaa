"""`ServedCollection`: a collection that is being served, in its newest version, with its similar queries."""

from __future__ import annotations

import re
import unicodedata

from zoomrank.bandits import Bandit
from zoomrank.errors import UnknownDocumentError
from zoomrank.service.catalogue.neighbours import About, Neighbours
from zoomrank.service.catalogue.served_version import ServedVersion
from zoomrank.service.catalogue.settings import LONGEST_QUERY, Settings
from zoomrank.service.catalogue.version_history import VersionHistory
from zoomrank.service.errors import NotFoundError, UnprocessableError
from zoomrank.service.storage.store_reader import StoredCollection
from zoomrank.spaces import DocumentId, DocumentTree

_NUMBER = re.compile(r"-?[0-9]{1,19}")
_NOT_STORED = re.compile(r"[\x00\ud800-\udfff]")


class ServedCollection:
    """Documents, settings, and lookups of both."""

    def __init__(
        self,
        stored: StoredCollection,
        settings: Settings,
        versions: VersionHistory,
        home: ServedCollection | None = None,
    ) -> None:
        self.stored = stored
        self.id, self.name = stored.id, stored.name
        self.settings = settings
        self.versions = versions
        self.home = home or self  # the collection that owns the documents: for an arm of an experiment, another one
        self.arms: list[ServedCollection] = []  # arms of experiments, which share the documents
        self.removed = False
        self.neighbours = None if settings.similar == "off" else Neighbours(settings.similar, self.version)

    @property
    def version(self) -> ServedVersion:
        """The newest version, which all requests see from now on."""
        return self.versions.newest

    @property
    def tree(self) -> DocumentTree:
        """The tree of the newest version."""
        return self.version.tree

    @property
    def bandit(self) -> Bandit:
        """The bandit that all learners of the newest version share."""
        return self.version.bandit

    @property
    def family(self) -> list[ServedCollection]:
        """The collection and its arms: all that share the documents."""
        return [self.home, *self.home.arms]

    def check_exists(self) -> None:
        """Raise NotFoundError if the collection was removed meanwhile."""
        if self.removed:
            raise NotFoundError(f"There is no collection “{self.name}” any more.")

    def query(self, asked: str) -> str:
        """Return a query in its normalised spelling; UnusableError if it is empty or too long."""
        query = self.folded(asked)
        if not 1 <= len(query) <= LONGEST_QUERY:
            raise UnprocessableError(
                f"A query has 1 to {LONGEST_QUERY} letters when case, spaces and Unicode forms are folded; "
                f"this one has {len(query)}."
            )
        if not query.strip():
            raise UnprocessableError("A query has something besides spaces.")
        if _NOT_STORED.search(query):
            raise UnprocessableError(f"A query is text without NUL and without half of a character: {query[:100]!r}.")
        return query

    def about(self, said: About | None) -> str | None:
        """Return a query's `about` as JSON; UnusableError if this collection cannot use it."""
        if self.neighbours is not None:
            return self.neighbours.checked(said)
        if said is not None:
            raise UnprocessableError("Queries of this collection learn alone (`similar` is off): leave `about` out.")
        return None

    def position_of(self, named: str) -> int:
        """Return the position of a document by its id in a URL; NotFoundError if there is none."""
        ids = self.tree.documents
        wanted: DocumentId = named
        if not isinstance(ids[0], str):  # all ids of a collection are of one kind
            wanted = int(named) if _NUMBER.fullmatch(named) else None
        try:
            return ids.position(wanted)
        except UnknownDocumentError:
            raise NotFoundError(f"There is no document “{named}” in “{self.name}”, or no more.") from None

    def label(self, node: int) -> str:
        """Return a short name of a subtree."""
        return self.version.label(node, self.name)

    def folded(self, query: str) -> str:
        """Return a query in normalized spelling if spellings are folded."""
        return folded(query) if self.settings.fold else query


def folded(text: str) -> str:
    """Return a text in normalized spelling.

    >>> folded("  Stra\u00dfe  nach\u3000\uff32om ")
    'strasse nach rom'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    while (once := " ".join(unicodedata.normalize("NFKC", text).casefold().split())) != text:
        text = once  # until it is stable: a normalized query in a link must normalize to itself
    return text
