"""`QueryTree`: which queries are alike. It grows while queries come, and every query stands in a group.

Groups lie in groups, as categories do: the smaller the group that two queries share, the more alike they are. Where a
new query belongs is said by its path, or found by its vector or its words (`placing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zoomrank.errors import ParameterError, UnknownDocumentError
from zoomrank.numbers import Array
from zoomrank.queries.placing import ByPath, ByVector, ByWords, Groups, Placing
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.trees.taxonomy import TaxonomyPath

Query = str | int


class QueryTree:
    """Queries in groups.

    Most are made by `by_words`, `by_paths`, `by_vectors`, or `like` a tree that there is.

    Parameters
    ----------
    placing : Placing
        How new queries find their groups.

    Examples
    --------
    >>> queries = QueryTree.by_paths({"jaguar speed": "Animals > Cats", "lion": "Animals > Cats", "hen": "Animals"})
    >>> len(queries), queries.shared("lion", "jaguar speed"), queries.shared("lion", "hen")
    (3, 'Animals > Cats', 'Animals')
    """

    def __init__(self, placing: Placing) -> None:
        self.placing = placing
        self.groups = placing.groups
        self.queries: list[Query] = []
        self.group: list[int] = []  # of each query
        self._number: dict[Query, int] = {}

    @classmethod
    def by_words(cls, queries: Iterable[str] = ()) -> QueryTree:
        """Queries are as alike as their words: nothing else has to be known of them.

        Parameters
        ----------
        queries : iterable of str
            Some that are known.

        Returns
        -------
        QueryTree
            Queries that come later stand beside those with the most words, and parts of words, in common.

        Examples
        --------
        >>> queries = QueryTree.by_words(["jaguar speed", "pizza oven", "top speed of a jaguar"])
        >>> near, far = (queries.steps_up("jaguar speed", other) for other in ("top speed of a jaguar", "pizza oven"))
        >>> near < far
        True
        """
        return cls(ByWords())._with((query, None) for query in queries)

    @classmethod
    def by_paths(cls, paths: Mapping[Query, TaxonomyPath] | None = None, *, separator: str = " > ") -> QueryTree:
        """Queries are alike that belong to the same category.

        Parameters
        ----------
        paths : mapping of TaxonomyPath, optional
            The categories of queries that are known; others say theirs when they come.
        separator : str
            What stands between the steps of a path.

        Returns
        -------
        QueryTree
            With a group for each category.

        Examples
        --------
        >>> queries = QueryTree.by_paths()
        >>> queries.add("lion", "Animals > Cats")
        0
        """
        return cls(ByPath(separator))._with((paths or {}).items())

    @classmethod
    def by_vectors(cls, vectors: Mapping[Query, Sequence[float] | Array] | None = None) -> QueryTree:
        """Queries are as alike as the directions of their vectors.

        Parameters
        ----------
        vectors : mapping of vectors, optional
            Those of queries that are known; others bring theirs when they come.

        Returns
        -------
        QueryTree
            Queries that come later stand beside those whose vectors are nearest.

        Examples
        --------
        >>> queries = QueryTree.by_vectors({"lion": [1, 0.1], "tiger": [1, 0], "pizza": [0, 1]})
        >>> queries.steps_up("lion", "tiger") < queries.steps_up("lion", "pizza")
        True
        """
        return cls(ByVector())._with((vectors or {}).items())

    @classmethod
    def like(cls, tree: DocumentTree) -> QueryTree:
        """Queries stand as the documents of a tree do: any that a `Collection` makes, from distances for example.

        Parameters
        ----------
        tree : DocumentTree
            Its documents are the queries. Others can come later, beside one of them.

        Returns
        -------
        QueryTree
            With a group for each subtree.

        Examples
        --------
        >>> from zoomrank.documents import Collection
        >>> apart = Collection.from_distances([[0, 1, 4], [1, 0, 4], [4, 4, 0]], ids=["lion", "tiger", "pizza"])
        >>> queries = QueryTree.like(apart.tree)
        >>> queries.steps_up("lion", "tiger") < queries.steps_up("lion", "pizza")
        True
        """
        shape, made = tree.shape, cls(Placing(Groups()))
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
        """The number of a query: they are counted as they come.

        Parameters
        ----------
        query : str or int
            One that is known.

        Returns
        -------
        int
            From 0 on.

        Examples
        --------
        >>> QueryTree.by_words(["lion", "tiger"]).number("tiger")
        1
        """
        try:
            return self._number[query]
        except KeyError:
            raise UnknownDocumentError(f"Nobody has asked {query!r} yet.") from None

    def add(self, query: Query, about: Any = None, *, beside: Query | None = None) -> int:
        """Let a query join, unless it is known already.

        Parameters
        ----------
        query : str or int
            What it goes by.
        about : TaxonomyPath, vector, str or None
            Its path in a tree by paths, its vector in one by vectors. In a tree by words the query itself is what
            counts, unless another text is given. None where nothing is known: it then stands in the group of all.
        beside : str or int, optional
            A known query whose group it joins instead.

        Returns
        -------
        int
            Its number.

        Examples
        --------
        >>> queries = QueryTree.by_paths({"lion": "Animals > Cats"})
        >>> queries.add("tiger", beside="lion"), queries.shared("tiger", "lion")
        (1, 'Animals > Cats')
        """
        if query in self._number:
            return self._number[query]
        if not isinstance(query, str | int):
            raise ParameterError(f"A query is a text or a number, not {query!r}.")
        return self.put(query, self.placing.group(query, about) if beside is None else self.group[self.number(beside)])

    def put(self, query: Query, group: int) -> int:
        """Let a query join that stands in a group; says its number.

        Parameters
        ----------
        query : str or int
            One that is not known.
        group : int
            The number of a group.

        Returns
        -------
        int
            The number of the query.

        Examples
        --------
        >>> QueryTree.by_paths().put("lion", 0)
        0
        """
        self._number[query] = len(self.queries)
        self.queries.append(query)
        self.group.append(group)
        return len(self.queries) - 1

    def shared(self, one: Query, other: Query) -> str:
        """The smallest group that holds two queries, by name.

        Parameters
        ----------
        one, other : str or int
            Two that are known.

        Returns
        -------
        str
            Its name; "" if it has none, as the group of all.

        Examples
        --------
        >>> QueryTree.by_paths({"lion": "Animals > Cats", "pizza": "Food"}).shared("lion", "pizza")
        ''
        """
        return self.groups.name(self._smallest(one, other))

    def steps_up(self, one: Query, other: Query) -> int:
        """How many groups lie around a query that do not hold another: the more, the less alike they are.

        Parameters
        ----------
        one, other : str or int
            Two that are known.

        Returns
        -------
        int
            0 if they stand in the same group.

        Examples
        --------
        >>> QueryTree.by_paths({"lion": "Animals > Cats", "hen": "Animals"}).steps_up("lion", "hen")
        1
        """
        around = self.groups.around(self.group[self.number(one)])
        return around.index(self._smallest(one, other))

    def _smallest(self, one: Query, other: Query) -> int:
        there = set(self.groups.around(self.group[self.number(other)]))
        return next(group for group in self.groups.around(self.group[self.number(one)]) if group in there)
