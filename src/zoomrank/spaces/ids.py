"""The caller's document ids, and the position of each document in the tree.

Inside zoomrank a document is its position among the leaves, left to right. Callers never see positions: they pass their
own ids and get the same ids back. `kept_ids` stores millions of them compactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from zoomrank.errors import DuplicateDocumentError, EmptyCollectionError, UnknownDocumentError
from zoomrank.spaces.kept_ids import NOBODY, NumberIds, ObjectIds, PositionIds, StoredIds, StringIds
from zoomrank.spaces.packed_strings import PackedStrings

DocumentId = Any  # any hashable object
Positions = np.ndarray[Any, np.dtype[np.int64]]


class DocumentIds(Sequence[DocumentId]):
    """The ids of the documents of a collection, in the order of the leaves of its tree.

    Parameters
    ----------
    count : int
        Number of documents.
    ids : sequence of DocumentId, optional
        Their ids, all different; by default a document's id is its position.

    Examples
    --------
    >>> ids = DocumentIds(3, ["cats", "dogs", "fish"])
    >>> ids.position("dogs"), ids[2]
    (1, 'fish')
    """

    def __init__(
        self, count: int, ids: Sequence[DocumentId] | np.ndarray[Any, Any] | PackedStrings | None = None
    ) -> None:
        if count < 1:
            raise EmptyCollectionError("There are no documents: a collection needs at least one.")
        if ids is not None and len(ids) != count:
            raise UnknownDocumentError(f"{len(ids)} ids were given for {count} documents.")
        self._count = count
        self._kept = _kept(count, ids)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(self._count))]
        return self._kept.at(range(self._count)[position])

    def __iter__(self) -> Iterator[DocumentId]:
        return iter(self._kept)

    def __contains__(self, document: object) -> bool:
        return self._kept.find(document) != NOBODY

    def position(self, document: DocumentId) -> int:
        """Return the position of a document among the leaves.

        Parameters
        ----------
        document : DocumentId
            The document's id.

        Returns
        -------
        int
            Its position, counted from 0.
        """
        position = self._kept.find(document)
        if position == NOBODY:
            raise UnknownDocumentError(
                f"No document has the id {document!r}; the first of {self._count} is {self[0]!r}."
            )
        return position

    def positions(self, documents: Iterable[DocumentId]) -> Positions:
        """Return the positions of documents; raise an error if one is named twice.

        Parameters
        ----------
        documents : iterable of DocumentId
            The documents' ids.

        Returns
        -------
        ndarray of int
            Their positions, in the same order.
        """
        found = self.places(documents := list(documents))
        if (found == NOBODY).any():
            self.position(documents[int(np.argmin(found))])  # raises the error
        seen = set[int]()
        for position in found.tolist() if len(np.unique(found)) < len(found) else ():
            if position in seen:
                raise DuplicateDocumentError(f"The document {self[position]!r} is named twice.")
            seen.add(position)
        return found

    def places(self, documents: Iterable[DocumentId]) -> Positions:
        """Return the positions of documents, -1 for unknown ids.

        Parameters
        ----------
        documents : iterable of DocumentId
            Ids, known or not; one may be named twice.

        Returns
        -------
        ndarray of int
            Their positions, in the same order; -1 for unknown ids.
        """
        return self._kept.find_all(list(documents))

    def known(self, documents: Iterable[DocumentId]) -> list[DocumentId]:
        """Filter out unknown ids.

        Parameters
        ----------
        documents : iterable of DocumentId
            Ids, known or not.

        Returns
        -------
        list of DocumentId
            Known ids, in the same order.
        """
        documents = list(documents)
        return [documents[at] for at in np.flatnonzero(self.places(documents) != NOBODY).tolist()]

    def at(self, positions: Iterable[int]) -> list[DocumentId]:
        """Return the ids of the documents at some positions.

        Parameters
        ----------
        positions : iterable of int
            Positions, counted from 0.

        Returns
        -------
        list of DocumentId
            Their ids, in the same order.
        """
        return [self[int(position)] for position in positions]

    def rearranged(self, source: Positions, more: Sequence[DocumentId] = ()) -> "DocumentIds":
        """Reorder ids, leave some out, and add others.

        Parameters
        ----------
        source : ndarray of int
            Old position for each new one; positions beyond the last refer to `more`.
        more : sequence of DocumentId
            New ids.

        Returns
        -------
        DocumentIds
            The ids in their new order.

        Examples
        --------
        >>> list(DocumentIds(3, ["cats", "dogs", "fish"]).rearranged(np.array([3, 0]), ["owls"]))
        ['owls', 'cats']
        """
        ids = DocumentIds.__new__(DocumentIds)
        ids._count, ids._kept = len(source), self._kept.rearranged(source, more)
        return ids

    @property
    def column(self) -> "list[DocumentId] | np.ndarray[Any, Any] | PackedStrings":
        """All ids, as stored.

        Returns
        -------
        ndarray of int, PackedStrings or list
            An array of whole numbers, packed strings, or a list of objects; read-only.
        """
        column: list[DocumentId] | np.ndarray[Any, Any] | PackedStrings = self._kept.all
        return column

    @property
    def are_numbers(self) -> bool:
        """True if all ids are whole numbers.

        Returns
        -------
        bool
            False for any other type.
        """
        return self._kept.are_numbers


def _kept(count: int, ids: Sequence[DocumentId] | np.ndarray[Any, Any] | PackedStrings | None) -> StoredIds:
    if ids is None:
        return PositionIds(count)
    if isinstance(ids, PackedStrings):
        return StringIds(ids)
    if not isinstance(ids, np.ndarray):
        return ObjectIds(list(ids))
    return NumberIds(ids) if ids.dtype.kind in "iu" else ObjectIds(ids.tolist())
