"""`ServedVersion`: one version of a collection's tree, as learners and pages need it, with the newest metadata.

The log and the rankings in it name documents by numbers that never change; kernels and pages use positions in the tree
of this version. Here the ones are translated to the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from zoomrank.documents import Collection
from zoomrank.documents.versions import CollectionVersion
from zoomrank.errors import SlotsError, UnknownDocumentError, ZoomrankError
from zoomrank.queries.loans import QueryReport, remapped_report, with_nodes
from zoomrank.rankers.ranking import RankingArrays
from zoomrank.rankers.slot_bandits import check_eligible, order_positions
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.errors import UnprocessableError
from zoomrank.spaces import DocumentId, DocumentIds, Eligible
from zoomrank.types import Array

_DESCRIBED = 10_000  # documents
_MOST_CROWDS = 5
_REMEMBERED = 64  # sets of eligible documents: requests repeat the same few


class ServedVersion:
    """Documents in their tree, the bandit of its learners, and descriptions of documents."""

    def __init__(
        self, number: int, catalogue: CollectionVersion, settings: Settings, revision: int | None = None
    ) -> None:
        self.number = number
        self.settings = settings
        self.tree = catalogue.collection.tree
        self.bandit = settings.bandit(self.tree)
        # Requests mostly repeat earlier ones, so results are cached. The caches hold no reference to this version: it
        # is freed as soon as no learner needs it, however large it is.
        self._eligible = lru_cache(_REMEMBERED)(partial(_find_eligible, self.tree.documents))
        self.take_metadata(catalogue, number if revision is None else revision)

    def take_metadata(self, catalogue: CollectionVersion, revision: int) -> None:
        """Serve other titles, urls and texts from now on; the tree, the numbers and the learners stay."""
        self.revision = revision  # the last change of the collection that is served
        self.catalogue = catalogue
        self.collection = catalogue.collection
        self.document = lru_cache(_DESCRIBED)(partial(_describe, self.collection))

    def prepare(self) -> None:
        """Compute what takes long, before a request waits for it."""
        _ = self.tree.fingerprint, self.crowded, self._as_numbered, self._nodes_as_numbered

    # Numbers that never change, and positions.

    @cached_property
    def _as_numbered(self) -> bool:
        """True if positions equal numbers, as they do before the first change."""
        return bool((self.catalogue.documents == np.arange(len(self.tree))).all())

    def numbered(self, ranking: RankingArrays) -> RankingArrays:
        """Return a ranking with documents by number, for the log."""
        if self._as_numbered:
            return ranking
        documents = self.catalogue.documents
        return ranking._replace(shown=documents[ranking.shown], pick=documents[ranking.pick])

    def placed(self, ranking: RankingArrays) -> RankingArrays:
        """Return a ranking of the log, from whichever version, with documents by position: -1 for removed ones."""
        if self._as_numbered and int(max(ranking.shown.max(), ranking.pick.max(), 0)) < len(self.tree):
            return ranking
        shown, pick = (self._positions(row) for row in (ranking.shown[0], ranking.pick[0]))
        return ranking._replace(shown=shown.reshape(1, -1), pick=pick.reshape(1, -1))

    def _positions(self, numbers: Array) -> Array:
        known = numbers >= 0  # an imported ranking may have documents that were not known
        places = np.full(len(numbers), -1, np.int64)
        places[known] = self.catalogue.positions(numbers[known])
        return places

    def numbers(self, positions: Iterable[int]) -> tuple[int, ...]:
        """Return the numbers of documents, -1 for unknown ones."""
        documents = self.catalogue.documents
        return tuple(int(documents[position]) if position >= 0 else -1 for position in positions)

    def ids(self, numbers: Array) -> list[DocumentId]:
        """Return the ids of documents by number, also of removed ones; None for unknown ones."""
        return [one["id"] for one in self.describe_numbered(numbers)]

    # Reports that queries exchange.

    def numbered_report(self, report: QueryReport) -> QueryReport:
        """Return a report with nodes by number, to be stored."""
        return report if self._nodes_as_numbered else with_nodes(report, self.catalogue.nodes[report.node])

    def placed_report(self, report: QueryReport) -> QueryReport:
        """Return a stored report with nodes of this tree; without those that are gone, or whose parents are not in it
        any more.
        """
        if self._nodes_as_numbered and int(report.node.max(initial=0)) < self.tree.nodes:
            return report
        return remapped_report(report, self.catalogue.index[report.node], self.tree.shape.parent)

    @cached_property
    def _nodes_as_numbered(self) -> bool:
        return bool((self.catalogue.nodes == np.arange(self.tree.nodes)).all())

    @cached_property
    def crowded(self) -> list[str]:
        """Sentences on the first few places where the tree no longer fits."""
        return [crowd.says for crowd in self.catalogue.crowded()[:_MOST_CROWDS]]

    # Eligible documents.

    def order(self, ids: Sequence[DocumentId] | None) -> list[int] | None:
        """Return the positions of a caller's order, if there is one; unknown documents are skipped."""
        if ids is not None and not self.bandit.counts_visits:
            raise UnprocessableError("The algorithm of this collection cannot begin with an `order`: leave it out.")
        return None if ids is None else order_positions(self.tree.documents, ids)

    def eligible(
        self, only: Sequence[DocumentId] | None, excluded: Sequence[DocumentId] | None, skip: bool = False
    ) -> Eligible | None:
        """Return the documents that a request allows; None if it allows all. Unknown ids are an error, or skipped."""
        if only is None and not excluded:
            return None
        try:
            return self._eligible(None if only is None else tuple(only), tuple(excluded or ()), skip)
        except UnknownDocumentError as error:
            raise UnprocessableError(f'{error} To have such ids left out, say "unknown": "skip".') from error
        except ZoomrankError as error:
            raise UnprocessableError(str(error)) from error

    def fillable(self, allowed: Eligible | None, slots: int, fewer: bool = False) -> int:
        """Return the number of slots that can be filled: `slots`, or fewer if that is allowed."""
        if allowed is None:
            return slots
        filled = min(slots, len(allowed)) if fewer else slots
        try:
            check_eligible(self.bandit, allowed, filled)  # before a learner is created
        except SlotsError as error:
            raise UnprocessableError(f'{error} To be shown as many as there are, say "fewer": true.') from error
        except ZoomrankError as error:
            raise UnprocessableError(str(error)) from error
        return filled

    # Descriptions of documents.

    def describe(self, positions: Array) -> list[dict[str, Any]]:
        """Describe documents for a page; the dicts are shared between requests, so do not change them."""
        return [self.document(position) for position in positions.tolist()]

    def describe_numbered(self, numbers: Array) -> list[dict[str, Any]]:
        """Describe documents of the log for a page; removed ones have the id alone, unknown ones None."""
        positions = numbers if self._as_numbered else self._positions(numbers)
        return [
            self.document(at) if 0 <= at < len(self.tree) else self._gone(number)
            for at, number in zip(positions.tolist(), numbers.tolist(), strict=True)
        ]

    def _gone(self, number: int) -> dict[str, Any]:
        return {"id": self.catalogue.id_of(number) if number >= 0 else None, "title": "", "url": ""}

    def title(self, position: int) -> str:
        """Return the title of a document, or else its id."""
        known = self.document(position)
        return str(known["title"] or known["id"])

    def path(self, position: int) -> list[str]:
        """Return the categories of a document, from the root down; empty if they have no names."""
        names, leaf = self.tree.names, int(self.tree.shape.leaf[position])
        if names is None:
            return []
        return [names[up] for up in reversed(list(self.tree.ancestors(leaf))) if up != leaf and names[up]]

    def label(self, node: int, root: str) -> str:
        """Return a short name of a subtree; that of the whole tree is `root`."""
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
