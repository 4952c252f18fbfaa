"""Where documents live: trees, widths and distances; nothing here knows of users or learners."""

from zoomrank.spaces.contexts import Space, context_distance
from zoomrank.spaces.covering import (
    Covering,
    Dimension,
    contextual_covering_dimension,
    contextual_zooming_dimension,
    covering_dimension,
    covering_number,
    zooming_dimension,
)
from zoomrank.spaces.eligible import Eligible
from zoomrank.spaces.frt import random_tree
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.metric import FiniteMetric
from zoomrank.spaces.topology import RootedTree, Shape
from zoomrank.spaces.tree import DocumentTree
from zoomrank.spaces.weighted import EdgeWeightedTree

__all__ = [
    "Covering",
    "Dimension",
    "DocumentId",
    "DocumentIds",
    "DocumentTree",
    "EdgeWeightedTree",
    "Eligible",
    "FiniteMetric",
    "RootedTree",
    "Shape",
    "Space",
    "context_distance",
    "contextual_covering_dimension",
    "contextual_zooming_dimension",
    "covering_dimension",
    "covering_number",
    "random_tree",
    "zooming_dimension",
]
