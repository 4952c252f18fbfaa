"""Document spaces: trees, widths and distances; independent of visitors and learners."""

from zoomrank.spaces.contexts import context_distance
from zoomrank.spaces.covering import (
    Covering,
    Dimension,
    contextual_covering_dimension,
    contextual_zooming_dimension,
    covering_dimension,
    covering_number,
    zooming_dimension,
)
from zoomrank.spaces.document_tree import DocumentTree, Remap
from zoomrank.spaces.edge_weighted_tree import EdgeWeightedTree, random_tree
from zoomrank.spaces.eligible import Eligible
from zoomrank.spaces.finite_metric import FiniteMetric
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.rooted_tree import RootedTree
from zoomrank.spaces.space import Space, StretchedSpace
from zoomrank.spaces.tree_shape import Shape

__all__ = [
    "Covering",
    "Dimension",
    "DocumentId",
    "DocumentIds",
    "DocumentTree",
    "EdgeWeightedTree",
    "Eligible",
    "FiniteMetric",
    "Remap",
    "RootedTree",
    "Shape",
    "Space",
    "StretchedSpace",
    "context_distance",
    "contextual_covering_dimension",
    "contextual_zooming_dimension",
    "covering_dimension",
    "covering_number",
    "random_tree",
    "zooming_dimension",
]
