"""`RootedTree`: documents, ancestors and subtrees, without distances. What all trees of documents have in common."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from zoomrank.errors import TreeError
from zoomrank.numbers import Array
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.trees.shape import Shape, least_common_ancestor


class RootedTree:
    """A tree of documents without distances. It never changes.

    Nodes are integers, the root is 0; documents go by the caller's ids.

    Parameters
    ----------
    shape : Shape
        Who is below whom.
    ids : DocumentIds
        The ids of the documents, left to right.
    names : sequence of str, optional
        A name for each node, for print only.

    Attributes
    ----------
    documents : DocumentIds
        The ids of the documents, left to right.
    given_numbers : ndarray or None
        If the tree was made from a caller's array of parents: how the caller numbered each node.

    Examples
    --------
    >>> from zoomrank.spaces import DocumentTree
    >>> tree = DocumentTree.from_paths(["Animals > Owls", "Animals > Pike", "Plants"])
    >>> isinstance(tree, RootedTree), tree.nodes, tree.depth
    (True, 5, 2)
    """

    root = 0

    def __init__(self, shape: Shape, ids: DocumentIds, names: Sequence[str] | None = None) -> None:
        for array in shape:
            array.flags.writeable = False
        self.shape = shape
        self.documents = ids
        self.names = names
        self.given_numbers: Array | None = None  # how the caller numbered the nodes, if from an array of parents

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.shape.leaf)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} documents, {self.nodes} nodes, depth {self.depth})"

    @property
    def nodes(self) -> int:
        """How many nodes there are, leaves included.

        Returns
        -------
        int
            The number of nodes.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2, branching=3).nodes
        13
        """
        return len(self.shape.parent)

    @cached_property
    def depth(self) -> int:
        """How many steps the deepest document is from the root.

        Returns
        -------
        int
            The depth; 0 for a single document.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2, branching=3).depth
        2
        """
        return sum(1 for _ in self.ancestors(self.nodes - 1)) - 1  # breadth first: the last node is a deepest one

    @cached_property
    def widest(self) -> int:
        """The largest number of children that any node has.

        Returns
        -------
        int
            1 at least, also for a single document.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2, branching=3).widest
        3
        """
        return max(int(np.diff(self.shape.child_start).max()), 1)

    def children(self, node: int) -> range:
        """List the children of a node, left to right.

        Parameters
        ----------
        node : int
            The node.

        Returns
        -------
        range
            The children; none for a document.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2).children(1)
        range(3, 5)
        """
        self._check_node(node)
        return range(int(self.shape.child_start[node]), int(self.shape.child_start[node + 1]))

    def leaf(self, document: DocumentId) -> int:
        """Find the node of a document.

        Parameters
        ----------
        document : DocumentId
            The document's id.

        Returns
        -------
        int
            Its node, which has no children.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2).leaf(0)
        3
        """
        return int(self.shape.leaf[self.documents.position(document)])

    def below(self, node: int) -> list[DocumentId]:
        """List the documents in the subtree of a node.

        Parameters
        ----------
        node : int
            The node.

        Returns
        -------
        list of DocumentId
            The documents, left to right.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> DocumentTree.exponential(depth=2).below(2)
        [2, 3]
        """
        self._check_node(node)
        first, end = int(self.shape.first_document[node]), int(self.shape.end_document[node])
        return [self.documents[position] for position in range(first, end)]

    def ancestors(self, node: int) -> Iterator[int]:
        """Climb from a node to the root.

        Parameters
        ----------
        node : int
            Where to begin.

        Yields
        ------
        int
            The node itself, its parent, and so on up to the root.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> list(DocumentTree.exponential(depth=2).ancestors(6))
        [6, 2, 0]
        """
        self._check_node(node)
        yield int(node)
        while node != self.root:
            node = int(self.shape.parent[node])
            yield node

    def common_ancestor(self, one: DocumentId, other: DocumentId) -> int:
        """Find the least common ancestor of two documents: the smallest subtree that holds both.

        Parameters
        ----------
        one, other : DocumentId
            The documents.

        Returns
        -------
        int
            A node; for a document and itself its leaf.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> tree = DocumentTree.exponential(depth=2)
        >>> tree.common_ancestor(2, 3), tree.common_ancestor(1, 2)
        (2, 0)
        """
        return int(least_common_ancestor(self.shape.parent, self.leaf(one), self.leaf(other)))

    def name(self, node: int) -> str:
        """Say what to call a node in print.

        Parameters
        ----------
        node : int
            The node.

        Returns
        -------
        str
            Its path of names where the tree has them, otherwise its number.

        Examples
        --------
        >>> from zoomrank.spaces import DocumentTree
        >>> tree = DocumentTree.from_paths(["Animals > Owls", "Animals > Pike", "Plants"])
        >>> tree.name(tree.leaf("Animals > Owls"))
        'Animals > Owls'
        """
        if self.names is None:
            return f"node {node}"
        return " > ".join(self.names[up] for up in reversed(list(self.ancestors(node))) if self.names[up])

    def _check_node(self, node: int) -> None:
        if not 0 <= node < self.nodes:
            raise TreeError(f"There is no node {node}; nodes are numbered 0 to {self.nodes - 1}.")


def ids_of_leaves(shape: Shape, order: Array, ids: Sequence[DocumentId] | None) -> DocumentIds:
    """Ids of the leaves, left to right, from a caller who lists them in the order of her own node numbers."""
    numbers = order[shape.leaf]
    if ids is None:
        return DocumentIds(len(numbers), numbers)
    DocumentIds(len(numbers), ids)  # refuses a wrong number of ids before they are shuffled
    rank = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return DocumentIds(len(numbers), [ids[i] for i in rank])
