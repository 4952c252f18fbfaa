"""`RootedTree`: documents, ancestors and subtrees, without distances: the base of all document trees."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from zoomrank.errors import TreeError
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.tree_shape import Shape, least_common_ancestor
from zoomrank.types import Array


class RootedTree:
    """A tree of documents without distances. Immutable.

    Nodes are integers, the root is 0; documents have the caller's ids.

    Parameters
    ----------
    shape : Shape
        Parents and children of the tree.
    ids : DocumentIds
        The ids of the documents, left to right.
    names : sequence of str, optional
        Name of each node, for display only.

    Attributes
    ----------
    documents : DocumentIds
        The ids of the documents, left to right.
    given_numbers : ndarray or None
        Caller's number of each node, if the tree was made from an array of parents.

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
        self.given_numbers: Array | None = None  # the caller's numbers of the nodes

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.shape.leaf)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} documents, {self.nodes} nodes, depth {self.depth})"

    @property
    def nodes(self) -> int:
        """Number of nodes, leaves included.

        Returns
        -------
        int
            The number of nodes.
        """
        return len(self.shape.parent)

    @cached_property
    def depth(self) -> int:
        """Number of steps from the root to the deepest document.

        Returns
        -------
        int
            The depth; 0 for a single document.
        """
        return sum(1 for _ in self.ancestors(self.nodes - 1)) - 1  # breadth first: the last node is a deepest one

    @cached_property
    def widest(self) -> int:
        """Largest number of children of any node.

        Returns
        -------
        int
            1 at least, also for a single document.
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
        """
        self._check_node(node)
        first, end = int(self.shape.first_document[node]), int(self.shape.end_document[node])
        return [self.documents[position] for position in range(first, end)]

    def ancestors(self, node: int) -> Iterator[int]:
        """Climb from a node to the root.

        Parameters
        ----------
        node : int
            First node.

        Yields
        ------
        int
            The node itself, its parent, and so on up to the root.
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
        """
        return int(least_common_ancestor(self.shape.parent, self.leaf(one), self.leaf(other)))

    def name(self, node: int) -> str:
        """Return the display name of a node.

        Parameters
        ----------
        node : int
            The node.

        Returns
        -------
        str
            Its path of names where the tree has them, otherwise its number.
        """
        if self.names is None:
            return f"node {node}"
        return " > ".join(self.names[up] for up in reversed(list(self.ancestors(node))) if self.names[up])

    def _check_node(self, node: int) -> None:
        if not 0 <= node < self.nodes:
            raise TreeError(f"There is no node {node}: nodes are numbered 0 to {self.nodes - 1}.")


def ids_of_leaves(shape: Shape, order: Array, ids: Sequence[DocumentId] | None) -> DocumentIds:
    """Return the ids of the leaves, left to right, from ids in the order of the caller's node numbers."""
    numbers = order[shape.leaf]
    if ids is None:
        return DocumentIds(len(numbers), numbers)
    DocumentIds(len(numbers), ids)  # checks the number of ids before they are reordered
    rank = np.argsort(np.argsort(numbers, kind="stable"), kind="stable")
    return DocumentIds(len(numbers), [ids[i] for i in rank])
