"""Contextual zooming over queries and documents, word by word: Algorithm 4 with a set of active pairs."""

from __future__ import annotations

import math
from typing import Any

from zoomrank import DocumentTree

Pair = tuple[int, int, Any]  # a node of the tree of documents, its level, and a group of queries


class ActivePairs:
    """One slot; `chain` says which groups hold a query, from that of all down to itself, and how wide each is."""

    def __init__(self, tree: DocumentTree, exploration: float, scale: float) -> None:
        self.tree, self.exploration, self.scale = tree, exploration, scale
        self.refined: set[Pair] = set()
        self.n: dict[Pair, int] = {}
        self.r: dict[Pair, int] = {}

    def context(self, chain: list[tuple[Any, float]], level: int) -> tuple[Any, float]:
        """The widest group that is no wider than the subtrees of documents at a level."""
        if level == 0:
            return chain[0]
        if level > self.tree.depth:
            return chain[-1]
        widest = max(self.tree.width[u] for u in range(self.tree.nodes) if self.depth(u) == level)
        return next(group for group in chain if group[1] <= widest)

    def depth(self, u: int) -> int:
        return 0 if u == 0 else 1 + self.depth(int(self.tree.shape.parent[u]))

    def children(self, u: int) -> list[int]:
        start = self.tree.shape.child_start
        return list(range(int(start[u]), int(start[u + 1]))) or [u]

    def active(self, chain: list[tuple[Any, float]], u: int = 0, level: int = 0) -> list[tuple[Pair, float]]:
        """The active pairs that hold a query, in the order of their documents, and how wide they are."""
        group, width = self.context(chain, level)
        pair = u, level, group
        if pair not in self.refined:
            return [(pair, self.scale * (float(self.tree.width[u]) + width))]
        return [found for child in self.children(u) for found in self.active(chain, child, level + 1)]

    def radius(self, pair: Pair) -> float:
        return math.sqrt(self.exploration / (1 + self.n.get(pair, 0)))

    def index(self, pair: Pair, width: float) -> float:
        n = self.n.get(pair, 0)
        return width + (self.r[pair] / n if n else 0.0) + self.radius(pair)

    def select(self, chain: list[tuple[Any, float]]) -> tuple[Pair, float]:
        """The first with the best index."""
        return max(self.active(chain), key=lambda found: self.index(*found))

    def update(self, pair: Pair, width: float, reward: int) -> None:
        self.n[pair] = self.n.get(pair, 0) + 1
        self.r[pair] = self.r.get(pair, 0) + reward
        if self.radius(pair) < width:
            self.refined.add(pair)
