"""Similar queries help each other: a tree of queries, their reports and loans, and a ranker for all of them."""

from zoomrank.queries.query_rank import QueryRank, Support
from zoomrank.queries.query_tree import Query, QueryTree

__all__ = ["Query", "QueryRank", "QueryTree", "Support"]
