"""`Independent`: every document is relevant independently of the others, as in the example of Section 5.1."""

from collections.abc import Iterable, Mapping

import numpy as np

from zoomrank.numbers import Array
from zoomrank.spaces import DocumentId, RootedTree, Space
from zoomrank.spaces.trees.shape import breadth_first_shape
from zoomrank.users.distribution import mean_array
from zoomrank.users.models.tree_network import TreeNetwork


class Independent(TreeNetwork):
    """Visitors without correlations: a network that is a star, whose root is never relevant.

    Parameters
    ----------
    space : Space or RootedTree
        The documents.
    mean : mapping, sequence or array of float
        μ(x), by document or in the order of `space.documents`.

    References
    ----------
    Slivkins, Radlinski, Gollapudi, JMLR 2013: Section 5.1, the example of three documents.
    """

    def __init__(self, space: Space | RootedTree, mean: Mapping[DocumentId, float] | Iterable[float] | Array) -> None:
        means = mean_array(space.documents, mean)
        shape, _ = breadth_first_shape(np.array([-1] + [0] * len(means)))
        appears = np.concatenate([[0.0], means])
        self._assemble(RootedTree(shape, space.documents), 0.0, appears, np.zeros_like(appears))
