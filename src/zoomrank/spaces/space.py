"""`Space`: what everything that has distances can be asked; and `StretchedSpace`, any of them times a factor."""

from typing import Protocol

from zoomrank.errors import ParameterError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId, DocumentIds


class Space(Protocol):
    """Documents with distances: a `DocumentTree`, an `EdgeWeightedTree`, a `FiniteMetric`, or one of your own.

    Attributes
    ----------
    documents : DocumentIds
        The ids of the documents.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> space: Space = DocumentTree.exponential(depth=2)
    >>> space.distance(0, 3)
    1.0
    """

    documents: DocumentIds

    def __len__(self) -> int:
        """How many documents there are."""

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure D(x, y).

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            Their distance.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2).distance(0, 3)
        1.0
        """

    def distances(self, document: DocumentId) -> Array:
        """Measure D(x, y) from one document to all.

        Parameters
        ----------
        document : DocumentId
            The document x.

        Returns
        -------
        ndarray
            A distance for each document, in the order of `documents`.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=1).distances(0).tolist()
        [0.0, 1.0]
        """

    def distance_matrix(self) -> Array:
        """Measure D between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=1).distance_matrix().tolist()
        [[0.0, 1.0], [1.0, 0.0]]
        """


class StretchedSpace:
    """A space with all distances multiplied by one factor.

    Parameters
    ----------
    space : Space
        Where the distances come from.
    factor : float
        What they are multiplied by, above 0.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 2.2, the lemma of equivalence, which speaks of 2 · D.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> StretchedSpace(DocumentTree.exponential(depth=2), factor=2.0).distance(0, 3)
    2.0
    """

    def __init__(self, space: Space, factor: float) -> None:
        if not factor > 0:
            raise ParameterError(f"Distances can be stretched by a positive factor, not by {factor}.")
        self.space, self.factor, self.documents = space, factor, space.documents

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.documents)

    def distance(self, one: DocumentId, other: DocumentId) -> float:
        """Measure factor · D(x, y).

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        float
            Their distance.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> StretchedSpace(DocumentTree.exponential(depth=1), 0.5).distance(0, 1)
        0.5
        """
        return self.factor * self.space.distance(one, other)

    def distances(self, document: DocumentId) -> Array:
        """Measure factor · D(x, y) from one document to all.

        Parameters
        ----------
        document : DocumentId
            The document x.

        Returns
        -------
        ndarray
            A distance for each document, in the order of `documents`.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> StretchedSpace(DocumentTree.exponential(depth=1), 0.5).distances(0).tolist()
        [0.0, 0.5]
        """
        return self.factor * self.space.distances(document)

    def distance_matrix(self) -> Array:
        """Measure factor · D between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> StretchedSpace(DocumentTree.exponential(depth=1), 0.5).distance_matrix().tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        return self.factor * self.space.distance_matrix()
