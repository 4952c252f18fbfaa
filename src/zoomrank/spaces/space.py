"""`Space`: the interface of everything with distances; and `StretchedSpace`, a space times a factor."""

from typing import Protocol

from zoomrank.errors import ParameterError
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.types import Array


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
        """Return the number of documents."""

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
        """

    def distance_matrix(self) -> Array:
        """Measure D between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """


class StretchedSpace:
    """A space with all distances multiplied by one factor.

    Parameters
    ----------
    space : Space
        Space of the original distances.
    factor : float
        Factor on the distances, above 0.

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
            raise ParameterError(f"factor must be positive, not {factor}.")
        self.space, self.factor, self.documents = space, factor, space.documents

    def __len__(self) -> int:
        """Return the number of documents."""
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
        """
        return self.factor * self.space.distances(document)

    def distance_matrix(self) -> Array:
        """Measure factor · D between all pairs of documents.

        Returns
        -------
        ndarray
            A row and a column for each document, in the order of `documents`.
        """
        return self.factor * self.space.distance_matrix()
