"""`ServedEdition`: a collection as it is between two changes of its documents, as learners and pages need it.

The log and the learners' rankings in it name documents by numbers that never change; kernels and pages know them by
where they stand in the tree of this edition. Here the ones become the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from zoomrank.documents import Collection
from zoomrank.documents.editions import Edition
from zoomrank.errors import SlotsError, UnknownDocumentError, ZoomrankError
from zoomrank.numbers import Array
from zoomrank.queries.reports import Report, below_their_parents, with_nodes
from zoomrank.rankers.leading import places_of
from zoomrank.rankers.ranking_arrays import RankingArrays
from zoomrank.rankers.slot_bandits import check_eligible
from zoomrank.service.refusals import UnusableError
from zoomrank.service.settings import Settings
from zoomrank.spaces import DocumentId, DocumentIds, Eligible

_DESCRIBED = 10_000  # documents
_MOST_CROWDS = 5
_REMEMBERED = 64  # sets of eligible documents: pages ask for the same few again and again


class ServedEdition:
    """Documents in their tree, the bandit of all who learn there, and how to speak of them."""

    def __init__(self, number: int, edition: Edition, settings: Settings, revision: int | None = None) -> None:
        self.number = number
        self.settings = settings
        self.tree = edition.collection.tree
        self.bandit = settings.bandit(self.tree)
        # Requests mostly repeat earlier ones, so results are cached. The caches hold no reference to this version: it
        # is freed as soon as no learner needs it, however large it is.
        self._eligible = lru_cache(_REMEMBERED)(partial(_find_eligible, self.tree.documents))
        self.take_metadata(edition, number if revision is None else revision)

    def take_metadata(self, edition: Edition, revision: int) -> None:
        """Serve other titles, urls and texts from now on; the tree, the numbers and the learners stay."""
        self.revision = revision  # the last change of the collection that is served
        self.edition = edition
        self.collection = edition.collection
        self.document = lru_cache(_DESCRIBED)(partial(_describe, self.collection))

    def prepare(self) -> None:
        """Find out what takes long to find out, before anybody waits for it."""
        _ = self.tree.fingerprint, self.crowded, self._as_numbered, self._nodes_as_numbered

    # Numbers that never change, and where documents stand.

    @cached_property
    def _as_numbered(self) -> bool:
        """Whether all documents stand where their numbers say, as they do before anything was changed."""
        return bool((self.edition.documents == np.arange(len(self.tree))).all())

    def numbered(self, ranking: RankingArrays) -> RankingArrays:
        """A ranking whose documents have their numbers, for the log."""
        if self._as_numbered:
            return ranking
        documents = self.edition.documents
        return ranking._replace(shown=documents[ranking.shown], pick=documents[ranking.pick])

    def placed(self, ranking: RankingArrays) -> RankingArrays:
        """A ranking of the log, whichever edition it was made in, with its documents where they stand: -1 for those
        that are gone.
        """
        if self._as_numbered and int(max(ranking.shown.max(), ranking.pick.max(), 0)) < len(self.tree):
            return ranking
        shown, pick = (self._positions(row) for row in (ranking.shown[0], ranking.pick[0]))
        return ranking._replace(shown=shown.reshape(1, -1), pick=pick.reshape(1, -1))

    def _positions(self, numbers: Array) -> Array:
        known = numbers >= 0  # what another ranker showed may not have been known when it was learned
        places = np.full(len(numbers), -1, np.int64)
        places[known] = self.edition.positions(numbers[known])
        return places

    def numbers(self, positions: Iterable[int]) -> tuple[int, ...]:
        """The numbers of documents, -1 for those that are not known here."""
        documents = self.edition.documents
        return tuple(int(documents[position]) if position >= 0 else -1 for position in positions)

    def ids(self, numbers: Array) -> list[DocumentId]:
        """The ids of documents by their numbers, also of those that are gone; None for what was never known here."""
        return [one["id"] for one in self.describe_numbered(numbers)]

    # What queries tell each other.

    def numbered_report(self, report: Report) -> Report:
        """A report whose subtrees have their numbers, to be kept."""
        return report if self._nodes_as_numbered else with_nodes(report, self.edition.nodes[report.node])

    def placed_report(self, report: Report) -> Report:
        """A report that was kept, with its subtrees where they are; without those that are gone, or that have come
        below others of which it tells nothing.
        """
        if self._nodes_as_numbered and int(report.node.max(initial=0)) < self.tree.nodes:
            return report
        return below_their_parents(report, self.edition.index[report.node], self.tree.shape.parent)

    @cached_property
    def _nodes_as_numbered(self) -> bool:
        return bool((self.edition.nodes == np.arange(self.tree.nodes)).all())

    @cached_property
    def crowded(self) -> list[str]:
        """Where the tree no longer fits, in words; no more than a few places."""
        return [crowd.says for crowd in self.edition.crowded()[:_MOST_CROWDS]]

    # What may be shown.

    def order(self, ids: Sequence[DocumentId] | None) -> list[int] | None:
        """Where the documents of an order stand that the caller has, if she has one; those not here are skipped."""
        if ids is not None and not self.bandit.counts_visits:
            raise UnusableError("The algorithm of this collection cannot begin with an `order`: leave it out.")
        return None if ids is None else places_of(self.tree.documents, ids)

    def eligible(
        self, only: Sequence[DocumentId] | None, excluded: Sequence[DocumentId] | None, skip: bool = False
    ) -> Eligible | None:
        """The documents that a request allows; None if it allows all. Ids that nobody knows are refused, or skipped."""
        if only is None and not excluded:
            return None
        try:
            return self._eligible(None if only is None else tuple(only), tuple(excluded or ()), skip)
        except UnknownDocumentError as error:
            raise UnusableError(f'{error} To have such ids left out, say "unknown": "skip".') from error
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error

    def fillable(self, allowed: Eligible | None, slots: int, fewer: bool = False) -> int:
        """How many slots can be filled: as many as are wanted, or fewer if that will do."""
        if allowed is None:
            return slots
        filled = min(slots, len(allowed)) if fewer else slots
        try:
            check_eligible(self.bandit, allowed, filled)  # here already, so that no learner is made in vain
        except SlotsError as error:
            raise UnusableError(f'{error} To be shown as many as there are, say "fewer": true.') from error
        except ZoomrankError as error:
            raise UnusableError(str(error)) from error
        return filled

    # How to speak of documents.

    def describe(self, positions: Array) -> list[dict[str, Any]]:
        """Documents as a page shows them; not to be changed, since others are shown the same."""
        return [self.document(position) for position in positions.tolist()]

    def describe_numbered(self, numbers: Array) -> list[dict[str, Any]]:
        """Documents of the log as a page shows them; of those that are gone there is the id, of what was never known
        here not even that.
        """
        positions = numbers if self._as_numbered else self._positions(numbers)
        return [
            self.document(at) if 0 <= at < len(self.tree) else self._gone(number)
            for at, number in zip(positions.tolist(), numbers.tolist(), strict=True)
        ]

    def _gone(self, number: int) -> dict[str, Any]:
        return {"id": self.edition.id_of(number) if number >= 0 else None, "title": "", "url": ""}

    def title(self, position: int) -> str:
        """What a document is called: its title, or else its id."""
        known = self.document(position)
        return str(known["title"] or known["id"])

    def path(self, position: int) -> list[str]:
        """The categories of a document, from the root down; empty if they have no names."""
        names, leaf = self.tree.names, int(self.tree.shape.leaf[position])
        if names is None:
            return []
        return [names[up] for up in reversed(list(self.tree.ancestors(leaf))) if up != leaf and names[up]]

    def label(self, node: int, root: str) -> str:
        """A short name of a part of the tree, whose root is called so."""
        shape = self.tree.shape
        first, end = int(shape.first_document[node]), int(shape.end_document[node])
        if end - first == 1 and int(shape.leaf[first]) == node:
            return self.title(first)
        if node == 0:
            return root
        return self.tree.names[node] if self.tree.names is not None else f"{end - first} documents"


def _find_eligible(
    ids: DocumentIds, only: tuple[DocumentId, ...] | None, excluded: tuple[DocumentId, ...], skip: bool
) -> Eligible:
    if skip:
        only = None if only is None else tuple(ids.known(only))
        excluded = tuple(ids.known(excluded))
    allowed = Eligible.everything(ids) if only is None else Eligible.only(ids, only)
    return allowed.without(excluded) if excluded else allowed


def _describe(collection: Collection, position: int) -> dict[str, Any]:
    titles, urls = collection.titles, collection.urls
    return {
        "id": collection.tree.documents[position],
        "title": titles[position] if titles is not None else "",
        "url": urls[position] if urls is not None else "",
    }
