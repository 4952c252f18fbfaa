"""The caller's own document ids, and where each document stands in the tree.

Inside zoomrank a document is its position among the leaves, left to right. Callers never see positions: they come with
ids of their own and get the same ids back. Integers are looked up in a sorted array, so ten million of them stay small.
"""

import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from zoomrank.errors import DuplicateDocumentError, EmptyCollectionError, UnknownDocumentError

DocumentId = Any  # whatever hashable thing the caller calls a document
Positions = np.ndarray[Any, np.dtype[np.int64]]


class DocumentIds(Sequence[DocumentId]):
    """The ids of the documents of a collection, in the order of the leaves of its tree.

    Parameters
    ----------
    count : int
        How many documents there are.
    ids : sequence of DocumentId, optional
        Their ids, all different; without them a document's id is its position.

    Examples
    --------
    >>> ids = DocumentIds(3, ["cats", "dogs", "fish"])
    >>> ids.position("dogs"), ids[2]
    (1, 'fish')
    """

    def __init__(self, count: int, ids: Sequence[DocumentId] | np.ndarray[Any, Any] | None = None) -> None:
        if count < 1:
            raise EmptyCollectionError("A collection needs at least one document.")
        if ids is not None and len(ids) != count:
            raise UnknownDocumentError(f"{len(ids)} ids were given for {count} documents.")
        self._count = count
        self._numbers: np.ndarray[Any, Any] | None = None
        self._things: list[DocumentId] | None = None
        if ids is None:
            return
        if isinstance(ids, np.ndarray) and ids.dtype.kind in "iu":
            self._remember_numbers(ids)
        else:
            self._remember_things(ids.tolist() if isinstance(ids, np.ndarray) else list(ids))

    def _remember_numbers(self, ids: np.ndarray[Any, Any]) -> None:
        if ids.dtype.kind == "u" and ids.size and ids.max() > np.iinfo(np.int64).max:
            raise UnknownDocumentError(f"The id {ids.max()} is too large; integer ids have 63 bits at most.")
        small = ids.dtype.kind == "i" and ids.dtype.itemsize <= 4
        self._numbers = ids.astype(np.int32 if small else np.int64)
        self._numbers.flags.writeable = False
        self._order = np.argsort(ids, kind="stable").astype(np.min_scalar_type(self._count))
        ascending = ids[self._order]
        twice = np.flatnonzero(ascending[1:] == ascending[:-1])
        if len(twice):
            raise DuplicateDocumentError(f"The id {ascending[twice[0]]} stands for two documents.")

    def _remember_things(self, ids: list[DocumentId]) -> None:
        self._things = ids
        self._position_of: dict[DocumentId, int] = {}
        for position, document in enumerate(ids):
            if not isinstance(document, Hashable):
                raise UnknownDocumentError(f"{document!r} cannot be an id: it is not hashable.")
            if self._position_of.setdefault(document, position) != position:
                raise DuplicateDocumentError(
                    f"The id {document!r} stands for two documents: "
                    f"number {self._position_of[document]} and number {position}."
                )

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[i] for i in range(*position.indices(self._count))]
        index = range(self._count)[position]
        if self._things is not None:
            return self._things[index]
        return index if self._numbers is None else int(self._numbers[index])

    def __iter__(self) -> Iterator[DocumentId]:
        """All at once: a million, asked for one by one, take most of a second."""
        if self._things is not None:
            return iter(self._things)
        return iter(range(self._count)) if self._numbers is None else iter(self._numbers.tolist())

    def __contains__(self, document: object) -> bool:
        try:
            self.position(document)
        except UnknownDocumentError:
            return False
        return True

    def position(self, document: DocumentId) -> int:
        """Say where a document stands among the leaves.

        Parameters
        ----------
        document : DocumentId
            The document's id.

        Returns
        -------
        int
            Its position, counted from 0.

        Examples
        --------
        >>> DocumentIds(3, [10, 20, 30]).position(20)
        1
        """
        if self._things is not None:
            position = self._position_of.get(document) if isinstance(document, Hashable) else None
            if position is not None:
                return position
        else:
            try:
                number = operator.index(document)
            except TypeError:
                number = None
            if number is None:
                pass
            elif self._numbers is None:
                if 0 <= number < self._count:
                    return number
            elif abs(number) <= np.iinfo(self._numbers.dtype).max:
                at = int(np.searchsorted(self._numbers, self._numbers.dtype.type(number), sorter=self._order))
                if at < self._count and self._numbers[self._order[at]] == number:
                    return int(self._order[at])
        raise UnknownDocumentError(f"No document has the id {document!r}; the first of {self._count} is {self[0]!r}.")

    def positions(self, documents: Iterable[DocumentId]) -> Positions:
        """Say where each of some documents stands; naming one twice is refused.

        Parameters
        ----------
        documents : iterable of DocumentId
            The documents' ids.

        Returns
        -------
        ndarray of int
            Their positions, in the same order.

        Examples
        --------
        >>> DocumentIds(3, ["cats", "dogs", "fish"]).positions(["fish", "cats"]).tolist()
        [2, 0]
        """
        found = [self.position(document) for document in documents]
        if len(set(found)) < len(found):
            twice = next(position for i, position in enumerate(found) if position in found[:i])
            raise DuplicateDocumentError(f"The document {self[twice]!r} is named twice.")
        return np.array(found, dtype=np.int64)

    def at(self, positions: Iterable[int]) -> list[DocumentId]:
        """List the ids of the documents at some positions.

        Parameters
        ----------
        positions : iterable of int
            Positions, counted from 0.

        Returns
        -------
        list of DocumentId
            Their ids, in the same order.

        Examples
        --------
        >>> DocumentIds(3, ["cats", "dogs", "fish"]).at([2, 0])
        ['fish', 'cats']
        """
        return [self[int(position)] for position in positions]
