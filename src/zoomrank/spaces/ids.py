"""The caller's own document ids, and where each document stands in the tree.

Inside zoomrank a document is its position among the leaves, left to right. Callers never see positions: they come with
ids of their own and get the same ids back. Integers are looked up in a sorted array, so ten million of them stay small.
"""

import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, cast

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
        with suppress(TypeError):  # something that is not hashable: it is named below
            self._position_of = dict(zip(ids, range(len(ids)), strict=True))
            if len(self._position_of) == len(ids):
                return
        self._position_of = {}
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
        found = self._all_at_once(documents := list(documents))
        if found is None:
            found = [self.position(document) for document in documents]
        if len(set(found)) < len(found):
            twice = next(position for i, position in enumerate(found) if position in found[:i])
            raise DuplicateDocumentError(f"The document {self[twice]!r} is named twice.")
        return np.array(found, dtype=np.int64)

    def _all_at_once(self, documents: list[DocumentId]) -> list[int] | None:
        """Where documents stand, looked up without a call for each; None if it takes one to say."""
        if self._things is not None:
            with suppress(TypeError):  # something that is not hashable
                found = list(map(self._position_of.get, documents))
                return None if None in found else cast("list[int]", found)
        return None

    def known(self, documents: Iterable[DocumentId]) -> list[DocumentId]:
        """Leave out whatever is no document's id.

        Parameters
        ----------
        documents : iterable of DocumentId
            Ids, some of which nobody may have.

        Returns
        -------
        list of DocumentId
            Those that documents have, in the same order.

        Examples
        --------
        >>> DocumentIds(3, ["cats", "dogs", "fish"]).known(["fish", "owls", "cats"])
        ['fish', 'cats']
        """
        documents = list(documents)
        if self._things is not None:
            with suppress(TypeError):  # something that is not hashable
                return list(filter(self._position_of.__contains__, documents))
        return [document for document in documents if document in self]

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

    def rearranged(self, source: Positions, more: Sequence[DocumentId] = ()) -> "DocumentIds":
        """Put ids into another order, leave some out, and take others in.

        Parameters
        ----------
        source : ndarray of int
            For each new position the old one; positions beyond the last stand for ids of `more`.
        more : sequence of DocumentId
            Ids that were not there before.

        Returns
        -------
        DocumentIds
            The ids in their new order.

        Examples
        --------
        >>> list(DocumentIds(3, ["cats", "dogs", "fish"]).rearranged(np.array([3, 0]), ["owls"]))
        ['owls', 'cats']
        """
        if self._things is None:
            numbers = np.arange(self._count) if self._numbers is None else self._numbers
            more_numbers = np.array(more, np.int64)
            return DocumentIds(
                len(source), np.concatenate([numbers, more_numbers])[source] if len(more) else numbers[source]
            )
        things = np.empty(self._count + len(more), object)
        things[: self._count] = self._things
        things[self._count :] = list(more)
        return DocumentIds(len(source), things[source].tolist())

    @property
    def are_numbers(self) -> bool:
        """Whether all ids are whole numbers.

        Returns
        -------
        bool
            False if they are anything else.

        Examples
        --------
        >>> DocumentIds(3, ["cats", "dogs", "fish"]).are_numbers, DocumentIds(3).are_numbers
        (False, True)
        """
        if self._things is None:
            return True
        return all(
            isinstance(document, int | np.integer) and not isinstance(document, bool) for document in self._things
        )
