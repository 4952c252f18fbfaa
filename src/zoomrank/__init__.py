"""zoomrank learns, from clicks alone, a short and diverse ranking over a large collection of documents."""

from zoomrank import errors, spaces, users
from zoomrank.spaces import DocumentTree, EdgeWeightedTree, FiniteMetric

__all__ = ["DocumentTree", "EdgeWeightedTree", "FiniteMetric", "errors", "spaces", "users"]
__version__ = "0.1.0.dev0"
