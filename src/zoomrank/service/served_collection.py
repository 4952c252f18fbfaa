"""`ServedCollection`: a collection that is being served, in its newest edition; its queries know who is like whom."""

from __future__ import annotations

from zoomrank.bandits import Bandit
from zoomrank.rankers import SlotExplanation
from zoomrank.service.edition_history import EditionHistory
from zoomrank.service.neighbours import About, Neighbours
from zoomrank.service.refusals import UnusableError
from zoomrank.service.served_edition import ServedEdition
from zoomrank.service.settings import LONGEST_QUERY, Settings
from zoomrank.service.storage.store_reader import StoredCollection
from zoomrank.spaces import DocumentTree

_NOTICEABLE = 0.05  # between what was seen of a document in its slot and its record


class ServedCollection:
    """Documents, settings, and how to speak of both."""

    def __init__(self, stored: StoredCollection, settings: Settings, editions: EditionHistory) -> None:
        self.stored = stored
        self.id, self.name = stored.id, stored.name
        self.settings = settings
        self.editions = editions
        self.removed = False
        self.neighbours = None if settings.similar == "off" else Neighbours(settings.similar, self.edition)

    @property
    def edition(self) -> ServedEdition:
        """The newest edition: who asks from now on sees it."""
        return self.editions.newest

    @property
    def tree(self) -> DocumentTree:
        """The tree of the newest edition."""
        return self.edition.tree

    @property
    def bandit(self) -> Bandit:
        """What all learners of the newest edition share."""
        return self.edition.bandit

    def label(self, node: int) -> str:
        """A short name of a part of the newest edition's tree."""
        return self.edition.label(node, self.name)

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

    def why(self, slot: int, reason: SlotExplanation, label: str) -> str:
        """One sentence on why a document is where it is."""
        where = "it" if reason.documents == 1 else f"“{label}” ({reason.documents} documents)"
        told = f"{reason.clicks} of {reason.plays} visitors who looked at {where} in this slot clicked"
        if reason.plays == 0:
            told = f"Nobody has looked at {where} in this slot yet"
        if reason.trial:
            return f"On trial: {told[0].lower()}{told[1:]}; {_hope(reason)}."
        if slot > 0 and reason.cap < reason.index + 1e-9 and reason.cap < 1:
            return f"{told}; it is at most {reason.cap:.2f} away from what stands above, which bounds what it can add."
        if reason.trial is False and reason.record is not None and abs(reason.record - reason.mean) > _NOTICEABLE:
            others = "other slots" if self.neighbours is None else "other slots, similar queries"
            return f"{told}; counting what {others} and those like it have seen, it earns {reason.record:.2f}."
        if reason.trial is None and reason.index > reason.mean + 0.1:
            return f"{told}; it may be as good as {min(reason.index, 1):.2f}, so it is worth finding out."
        return f"{told}."


def _hope(reason: SlotExplanation) -> str:
    """Why a document is tried, in words."""
    hope = f"it may be as good as {min(reason.index, 1):.2f}"
    if reason.record is None:
        return f"{hope}, and nothing better is known"
    if reason.index > reason.record:
        return f"{hope}, and the best that is known for this slot earns {reason.record:.2f}"
    return f"it stands in for one like it that earns {reason.record:.2f}, to see which is the better one"
