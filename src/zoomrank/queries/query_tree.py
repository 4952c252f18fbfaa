"""`QueryTree`: similarity of queries. It grows with the queries, and every query belongs to a group.

Groups are nested like categories: the smaller the group that two queries share, the more similar they are. A placer
finds the group of a new query: by its path, its vector, or its words.

Vectors are grouped by leaders. Every group has the vector of the query that founded it, and takes in queries within its
radius; groups within it have a smaller radius. A new query descends from the root group: at each level into the group
of the nearest leader, if that is near enough, or else it founds a group of its own. So a tree grows query by query, and
the same queries in the same order make the same tree.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from zoomrank.errors import ParameterError, UnknownDocumentError, VectorError
from zoomrank.spaces import DocumentTree
from zoomrank.spaces.tree_shape import TaxonomyPath
from zoomrank.types import Array

RADII = (0.9, 0.7, 0.45, 0.2)  # radii of groups, from the widest: 1 less the cosine of the angle
DIMENSIONS = 128  # length of word vectors
_WORD = re.compile(r"\w+")
_LONG = 6  # letters of a word that counts in full


class QueryGroups:
    """Nested groups; 0 is the root, the group of all queries."""

    def __init__(self) -> None:
        self.parent = [0]
        self.label = [""]

    def add(self, parent: int, label: str = "") -> int:
        """Create a group in another one."""
        self.parent.append(parent)
        self.label.append(label)
        return len(self.parent) - 1

    def around(self, group: int) -> list[int]:
        """Return the groups that hold a group, itself first."""
        found = [group]
        while found[-1] != 0:
            found.append(self.parent[found[-1]])
        return found

    def name(self, group: int) -> str:
        """Return its labels from the widest down."""
        return " > ".join(self.label[each] for each in reversed(self.around(group)) if self.label[each])


class QueryPlacer:
    """Put every new query into the root group: without further knowledge."""

    kind = "beside"

    def __init__(self, groups: QueryGroups) -> None:
        self.groups = groups

    @property
    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {}

    @property
    def leaders(self) -> Array:
        """Leader vectors of all groups but the root; empty if groups have no vectors."""
        return np.zeros((0, 0), np.float32)

    def restore(self, groups: QueryGroups, leaders: Array) -> None:  # noqa: ARG002
        """Restore saved groups."""
        self.groups = groups

    def group(self, query: Any, about: Any) -> int:
        """Return the group of a new query."""
        if about is not None:
            raise ParameterError(f"The group of {query!r} is unknown: name a known query of that group with beside=.")
        return 0


class PathPlacer(QueryPlacer):
    """Place queries by their category."""

    kind = "paths"

    def __init__(self, separator: str = " > ") -> None:
        super().__init__(QueryGroups())
        self.separator = separator
        self._inside: dict[tuple[int, str], int] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """Constructor arguments."""
        return {"separator": self.separator}

    def restore(self, groups: QueryGroups, leaders: Array) -> None:  # noqa: ARG002
        """Restore saved groups."""
        self.groups = groups
        self._inside = {(groups.parent[at], groups.label[at]): at for at in range(1, len(groups.parent))}

    def group(self, query: Any, about: Any) -> int:  # noqa: ARG002
        """Return the group of a path; create it if it is new."""
        steps = about.split(self.separator) if isinstance(about, str) else list(about or ())
        group = 0
        for step in steps:
            key = (group, str(step).strip())
            if key not in self._inside:
                self._inside[key] = self.groups.add(*key)
            group = self._inside[key]
        return group


class VectorPlacer(QueryPlacer):
    """Place queries by their vector."""

    kind = "vectors"

    def __init__(self) -> None:
        super().__init__(QueryGroups())
        self._dimensions: int | None = None
        self._inside: dict[int, list[int]] = {}  # the groups within a group
        self._leaders: dict[int, Array] = {}  # and their leader vectors, with room for more

    @property
    def leaders(self) -> Array:
        """Leader vectors of all groups but the root."""
        rows = np.zeros((len(self.groups.parent) - 1, self._dimensions or 0), np.float32)
        for parent, inside in self._inside.items():
            if inside:
                rows[np.array(inside) - 1] = self._leaders[parent][: len(inside)]
        return rows

    def restore(self, groups: QueryGroups, leaders: Array) -> None:
        """Restore saved groups."""
        self.groups = groups
        self._dimensions = leaders.shape[1] or None
        for group in range(1, len(groups.parent)):
            self._inside.setdefault(groups.parent[group], []).append(group)
        self._leaders = {parent: leaders[np.array(inside) - 1] for parent, inside in self._inside.items()}

    def group(self, query: Any, about: Any) -> int:
        """Return the group of the nearest leaders; create it if none is near."""
        return 0 if about is None else self._near(self._checked(query, about))

    def _near(self, vector: Array) -> int:
        group = 0
        for radius in RADII:
            inside = self._inside.setdefault(group, [])
            nearest = -1
            if inside:
                closeness = self._leaders[group][: len(inside)] @ vector
                nearest = int(np.argmax(closeness))
            if nearest < 0 or 1.0 - closeness[nearest] > radius:
                nearest = self._found(group, vector)
            group = inside[nearest]
        return group

    def _found(self, parent: int, vector: Array) -> int:
        inside = self._inside[parent]
        leaders = self._leaders.get(parent, np.zeros((1, len(vector)), np.float32))
        if len(inside) == len(leaders):
            leaders = np.concatenate([leaders, np.zeros_like(leaders)])
        leaders[len(inside)] = vector
        self._leaders[parent] = leaders
        inside.append(self.groups.add(parent))
        return len(inside) - 1

    def _checked(self, query: Any, about: Any) -> Array:
        vector = np.asarray(about, dtype=np.float32)
        wanted = self._dimensions or vector.size
        length = float(np.linalg.norm(vector))
        if vector.shape != (wanted,) or not 0 < length < np.inf:
            raise VectorError(f"{query!r} needs a vector of {wanted} finite numbers, not all of them 0.")
        self._dimensions = wanted
        return vector / np.float32(length)


class WordPlacer(VectorPlacer):
    """Place queries by their words, and runs of three letters in them; short words count less."""

    kind = "words"

    def group(self, query: Any, about: Any) -> int:
        """Return the group of the queries with the most words in common."""
        vector = words_vector(str(query if about is None else about))
        self._dimensions = DIMENSIONS
        return self._near(vector) if vector.any() else 0


def words_vector(text: str) -> Array:
    """Return a vector of length 1 for a text: each of its pieces is hashed to a dimension."""
    vector = np.zeros(DIMENSIONS, np.float32)
    for word in _WORD.findall(text.casefold()):
        weight = min(len(word), _LONG) / _LONG
        padded = f" {word} "
        parts = [padded, *(padded[at : at + 3] for at in range(len(padded) - 2))]
        for part in parts:
            place = zlib.crc32(part.encode())
            vector[place % DIMENSIONS] += weight * weight * (1.0 if part is padded else 1.0 / len(parts))
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else vector


PLACERS = {kind.kind: kind for kind in (PathPlacer, VectorPlacer, WordPlacer)}


Query = str | int


class QueryTree:
    """Queries in nested groups.

    Usually made by `by_words`, `by_paths`, `by_vectors`, or `like` an existing tree.

    Parameters
    ----------
    placing : QueryPlacer
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
