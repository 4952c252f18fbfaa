"""`QueryTree`: similarity of queries. It grows with the queries, and every query belongs to a group.

Groups are nested like categories: the smaller the group that two queries share, the more similar they are. The group of
a new query is given by its path, or found by its vector or its words (`placing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zoomrank.errors import ParameterError, UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.queries.placing import PathPlacer, QueryGroups, QueryPlacer, VectorPlacer, WordPlacer
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.trees.taxonomy import TaxonomyPath

Query = str | int


class QueryTree:
    """Queries in nested groups.

    Usually made by `by_words`, `by_paths`, `by_vectors`, or `like` an existing tree.

    Parameters
    ----------
    placing : Placing
        Method that places new queries.

    Examples
    --------
    >>> queries = QueryTree.by_paths({"jaguar speed": "Animals > Cats", "lion": "Animals > Cats", "hen": "Animals"})
    >>> len(queries), queries.shared("lion", "jaguar speed"), queries.shared("lion", "hen")
    (3, 'Animals > Cats', 'Animals')
    """

    def __init__(self, placing: QueryPlacer) -> None:
        self.placing = placing
        self.groups = placing.groups
        self.queries: list[Query] = []
        self.group: list[int] = []  # of each query
        self._number: dict[Query, int] = {}

    @classmethod
    def by_words(cls, queries: Iterable[str] = ()) -> QueryTree:
        """Group queries by their words, without other knowledge.

        Parameters
        ----------
        queries : iterable of str
            Known queries.

        Returns
        -------
        QueryTree
            Later queries join those with the most words, and parts of words, in common.
        """
        return cls(WordPlacer())._with((query, None) for query in queries)

    @classmethod
    def by_paths(cls, paths: Mapping[Query, TaxonomyPath] | None = None, *, separator: str = " > ") -> QueryTree:
        """Group queries by their categories.

        Parameters
        ----------
        paths : mapping of TaxonomyPath, optional
            Categories of known queries; later queries bring theirs.
        separator : str
            Separator between the steps of a path.

        Returns
        -------
        QueryTree
            Tree with a group for each category.
        """
        return cls(PathPlacer(separator))._with((paths or {}).items())

    @classmethod
    def by_vectors(cls, vectors: Mapping[Query, Sequence[float] | Array] | None = None) -> QueryTree:
        """Group queries by the directions of their vectors.

        Parameters
        ----------
        vectors : mapping of vectors, optional
            Vectors of known queries; later queries bring theirs.

        Returns
        -------
        QueryTree
            Later queries join those with the nearest vectors.
        """
        return cls(VectorPlacer())._with((vectors or {}).items())

    @classmethod
    def like(cls, tree: DocumentTree) -> QueryTree:
        """Group queries as the documents of a tree, for example one that a `Collection` made from distances.

        Parameters
        ----------
        tree : DocumentTree
            Tree whose documents are the queries. Later queries join beside one of them.

        Returns
        -------
        QueryTree
            Tree with a group for each subtree.
        """
        shape, made = tree.shape, cls(QueryPlacer(QueryGroups()))
        names = tree.names
        group = {0: 0}
        for node in range(1, tree.nodes):
            if shape.child_start[node] != shape.child_start[node + 1]:
                parent = group[int(shape.parent[node])]
                group[node] = made.groups.add(parent, "" if names is None else names[node])
        for query, leaf in zip(tree.documents, shape.leaf.tolist(), strict=True):
            made.put(query, group[int(shape.parent[leaf])])
        return made

    def _with(self, known: Iterable[tuple[Query, Any]]) -> QueryTree:
        for query, about in known:
            self.add(query, about)
        return self

    def __len__(self) -> int:
        return len(self.queries)

    def __contains__(self, query: object) -> bool:
        return query in self._number

    def number(self, query: Query) -> int:
        """Return the number of a query, in order of arrival.

        Parameters
        ----------
        query : str or int
            A known query.

        Returns
        -------
        int
            Number from 0 on.
        """
        try:
            return self._number[query]
        except KeyError:
            raise UnknownDocumentError(f"The query {query!r} is unknown: it was never asked.") from None

    def add(self, query: Query, about: Any = None, *, beside: Query | None = None) -> int:
        """Add a query, unless it is known already.

        Parameters
        ----------
        query : str or int
            The query.
        about : TaxonomyPath, vector, str or None
            Its path in a tree by paths, its vector in one by vectors. In a tree by words the query itself counts,
            unless another text is given. None if unknown: it then joins the root group.
        beside : str or int, optional
            Known query whose group it joins instead.

        Returns
        -------
        int
            Number of the query.
        """
        if query in self._number:
            return self._number[query]
        if not isinstance(query, str | int):
            raise ParameterError(f"A query must be a string or a number, not {query!r}.")
        return self.put(query, self.placing.group(query, about) if beside is None else self.group[self.number(beside)])

    def put(self, query: Query, group: int) -> int:
        """Add a query to a group; return its number.

        Parameters
        ----------
        query : str or int
            A new query.
        group : int
            Number of the group.

        Returns
        -------
        int
            Number of the query.
        """
        self._number[query] = len(self.queries)
        self.queries.append(query)
        self.group.append(group)
        return len(self.queries) - 1

    def shared(self, one: Query, other: Query) -> str:
        """Return the name of the smallest group that holds two queries.

        Parameters
        ----------
        one, other : str or int
            Two known queries.

        Returns
        -------
        str
            Name of the group; "" for one without a name, like the root group.
        """
        return self.groups.name(self._smallest(one, other))

    def steps_up(self, one: Query, other: Query) -> int:
        """Count the groups around a query that do not hold another: the more, the less similar they are.

        Parameters
        ----------
        one, other : str or int
            Two known queries.

        Returns
        -------
        int
            Number of groups; 0 if both are in the same group.
        """
        around = self.groups.around(self.group[self.number(one)])
        return around.index(self._smallest(one, other))

    def _smallest(self, one: Query, other: Query) -> int:
        there = set(self.groups.around(self.group[self.number(other)]))
        return next(group for group in self.groups.around(self.group[self.number(one)]) if group in there)
