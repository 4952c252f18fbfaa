"""`Eligible`: the documents that may be shown. A running count gives their number in a subtree by one subtraction."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.types import Array


class Eligible:
    """A set of documents of one collection, made once and used for many rankings.

    Usually made by `only` or `everything`, and changed by `without` and `&`.

    Parameters
    ----------
    documents : DocumentIds
        The ids of all documents.
    chosen : ndarray of bool
        True for those that may be shown, by position.

    Attributes
    ----------
    counts : ndarray
        `counts[i]` is the number of eligible documents before position i.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> tree = DocumentTree.exponential(depth=3)
    >>> some = Eligible.only(tree.documents, [1, 5, 6])
    >>> len(some), 5 in some, len(some.without([5]))
    (3, True, 2)
    """

    def __init__(self, documents: DocumentIds, chosen: Array) -> None:
        self.documents = documents
        self.chosen = chosen
        self.counts = np.zeros(len(chosen) + 1, np.uint32)
        np.cumsum(chosen, dtype=np.uint32, out=self.counts[1:])

    @classmethod
    def only(cls, documents: DocumentIds, wanted: Iterable[DocumentId]) -> Eligible:
        """Choose only some documents.

        Parameters
        ----------
        documents : DocumentIds
            The ids of all documents.
        wanted : iterable of DocumentId
            Documents that may be shown.

        Returns
        -------
        Eligible
            The set.
        """
        chosen = np.zeros(len(documents), bool)
        chosen[documents.positions(wanted)] = True
        return cls(documents, chosen)

    @classmethod
    def everything(cls, documents: DocumentIds) -> Eligible:
        """Choose all documents.

        Parameters
        ----------
        documents : DocumentIds
            The ids of all documents.

        Returns
        -------
        Eligible
            The set.
        """
        return cls(documents, np.ones(len(documents), bool))

    def without(self, unwanted: Iterable[DocumentId]) -> Eligible:
        """Leave some documents out.

        Parameters
        ----------
        unwanted : iterable of DocumentId
            Documents that must not be shown.

        Returns
        -------
        Eligible
            A set without them.
        """
        chosen = self.chosen.copy()
        chosen[self.documents.positions(unwanted)] = False
        return Eligible(self.documents, chosen)

    def __and__(self, other: Eligible) -> Eligible:
        return Eligible(self.documents, self.chosen & other.chosen)

    def __len__(self) -> int:
        return int(self.counts[-1])

    def __contains__(self, document: object) -> bool:
        return bool(self.chosen[self.documents.position(document)])
